"""Bytes that a quantized matrix takes as it is loaded; later repacking for a kernel is not run here."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Online = Literal["layer", "whole"]


@dataclass(frozen=True, slots=True)
class Storage:
    """How one matrix is stored.

    `bits` per weight; scales one per input `group`, per `block` (outputs, inputs) or per output `channel`, of `scale_bytes`;
    `zero_bits` per group; `scalars` float32 values per merged matrix; `orders` int32 index vectors over the inputs;
    `pad` rounds an expert's dealt intermediate size up (`pad_whole`: also an undivided one), `pad_hidden` its hidden size.
    `whole_blocks`: an expert is dealt in whole blocks or not at all.
    """

    title: str
    bits: int = 16
    group: int | None = None
    block: tuple[int, int] | None = None
    channel: bool = False
    scale_bytes: int = 2
    zero_bits: int = 0
    scalars: int = 0
    orders: int = 0
    expert_orders: int = 0
    whole_scales: bool = False
    pad: int = 1
    pad_whole: bool = False
    pad_hidden: int = 1
    whole_blocks: bool = False

    def matrix(self, inputs: int, outputs: int, merged: int = 1, scale_inputs: int | None = None) -> int:
        """Bytes of an outputs × inputs matrix made of `merged` ones; `scale_inputs` when scales stay whole on every rank."""
        count = -(-inputs * outputs * self.bits // 8) + 4 * self.scalars * merged + 4 * self.orders * inputs
        if self.group:
            groups = -(-(scale_inputs or inputs) // self.group) if self.group > 0 else 1
            count += groups * outputs * self.scale_bytes + groups * -(-outputs * self.zero_bits // 8)
        if self.block:
            count += -(-outputs // self.block[0]) * -(-inputs // self.block[1]) * self.scale_bytes
        if self.channel:
            count += outputs * self.scale_bytes
        return count


def tail(name: str) -> str:
    """The part of a module's name that every wrapper of the model leaves alone."""
    at = name.find("layers.")
    if at >= 0 and (at == 0 or name[at - 1] == ".") and "mtp" not in name[:at]:
        return name[at:]
    return name.removeprefix("model.")


def with_experts_as_one(name: str) -> str:
    """The same part; what stands below `experts` is left out, since their tensors and those named beside them are one module."""
    short = tail(name)
    at = short.find(".experts.")
    return short if at < 0 else short[: at + len(".experts")]


@dataclass(frozen=True, slots=True)
class Names:
    """Module names, exact, by prefix (`layers.3.self_attn*`), by part (`lm_head`, `mlp.gate`) or by pattern (`re:…`, `*`)."""

    exact: frozenset[str] = frozenset()
    prefixes: frozenset[str] = frozenset()
    lengths: tuple[int, ...] = ()
    runs: tuple[str, ...] = ()
    pattern: re.Pattern[str] | None = None
    by_layer: bool = False

    @staticmethod
    def of(entries: Sequence[str]) -> "Names":
        """Reads a list as the quantization settings of checkpoints write it."""
        exact, prefixes, runs, patterns = set(), set(), [], []
        for entry in entries:
            if entry.startswith("re:"):
                patterns.append(f"(?:{entry[3:]})")
            elif "*" not in entry:
                exact.add(tail(entry))
                if "." in entry and "layers." not in entry:
                    runs.append(f".{entry}.")
            elif entry.endswith("*") and "*" not in entry[:-1] and not entry.startswith("*"):
                prefixes.add(tail(entry)[:-1])
            else:
                patterns.append("(?:.*" + ".*".join(re.escape(piece) for piece in tail(entry).split("*")) + r"(?:\..*)?$)")
        lengths = tuple(sorted({len(p) for p in prefixes}))
        pattern = re.compile("|".join(patterns)) if patterns else None
        by_layer = any("layers" in e for e in entries)
        return Names(frozenset(exact), frozenset(prefixes), lengths, tuple(runs), pattern, by_layer)

    def holds(self, name: str) -> bool:
        """Is this module, or one that contains it, named?"""
        if not (self.exact or self.prefixes or self.pattern):
            return False
        if self.exact:
            if name in self.exact:
                return True
            pieces = name.split(".")
            if any(piece in self.exact for piece in pieces if not piece.isdigit()):
                return True
            for end in range(len(pieces) - 1, 1, -1):
                if ".".join(pieces[:end]) in self.exact:
                    return True
        if any(run in f".{name}." for run in self.runs):
            return True
        if any(name[:length] in self.prefixes for length in self.lengths):
            return True
        return self.pattern is not None and self.pattern.match(f"model.{name}") is not None


@dataclass(frozen=True, slots=True)
class Quantization:
    """Which modules are stored how. `linear` and `experts` for what nothing else names; `assigned` by module name wins, then the first of
    `matched` whose names hold it (None: it keeps the model's dtype).

    `head` quantizes the output table too. `online`: the checkpoint is wider and is converted, layer by layer while it loads or after all
    of it (`whole`) has been loaded; None where it is stored as it is used.
    """

    title: str = "not quantized"
    linear: Storage | None = None
    experts: Storage | None = None
    excluded: Names = field(default_factory=Names)
    assigned: Mapping[str, Storage] = field(default_factory=dict)
    matched: tuple[tuple[Names, Storage | None], ...] = ()
    head: bool = False
    online: Online | None = None

    @property
    def by_layer(self) -> bool:
        """Can two layers of the same kind be stored differently?"""
        return bool(self.assigned or self.matched) or self.excluded.by_layer

    def of(self, names: Sequence[str], *, experts: bool = False) -> Storage | None:
        """The storage of a module, by the names of its parts in the checkpoint; None when it keeps the model's dtype."""
        for name in names:
            found = self.assigned.get(name)
            if found is not None:
                return found
        said = (names[0], *(f"{names[0]}.0.{one}" for one in ("gate_proj", "w1"))) if experts else names[:1]
        if any(self.excluded.holds(name) for name in said):
            return None
        for held, storage in self.matched:
            if any(held.holds(name) for name in said):
                return storage
        return self.experts if experts else self.linear
