"""Accelerators by any name that logs, nvidia-smi, Kubernetes, clouds and people give them, and the memory torch reports for each."""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import rtoml

from bot.domain.size import GIB
from bot.rulebook.gpu_names import Names
from bot.rulebook.load import RulebookError, rules_folder

_NOISE = frozenset(["nvidia", "amd", "intel", "geforce", "tesla", "instinct", "radeon", "gpu", "gpus", "graphics", "shared", "each"])
_FORM = re.compile(r"(sxm\d?|pcie?|hbm\d?e?|oam|hgx|vram|ram|memory)$")
_SIZED = re.compile(r"(\d+(?:\.\d+)?)(gb|gib|g)$")
_NEAR, _NEAR_SHARE = 6 * GIB // 10, 0.012  # how far a printed total may lie from those seen: drivers and ECC move it


@dataclass(frozen=True, slots=True)
class GpuSpec:
    """One card. `total` as torch prints it, in bytes; None where it is a setting of the machine. `seen`: lowest and highest in logs.

    `compute`: CUDA compute capability or architecture. `rare`: not meant by a shared name unless the size says so. `part_of`: MIG parent.
    """

    id: str
    vendor: str
    compute: str
    names: tuple[str, ...]
    short: tuple[str, ...]
    labels: tuple[str, ...]
    cloud: Mapping[str, int]
    nominal_gb: int
    total: int | None
    seen: tuple[int, int] | None
    unified: bool
    rare: bool
    verified: bool
    part_of: str | None


def capability(compute: str) -> tuple[int, int] | None:
    """A CUDA compute capability in figures, `8.6` as (8, 6); None for another maker's architecture, or where none is known."""
    major, _, minor = compute.partition(".")
    return (int(major), int(minor)) if major.isdigit() and minor.isdigit() else None


@dataclass(frozen=True, slots=True)
class Mention:
    """A card named in a text: one spec, or several when the name is shared. `count` None where the text gives none."""

    specs: tuple[GpuSpec, ...]
    count: int | None
    text: str
    start: int
    end: int


class _Row(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A row of the file. `smi_mib`, `fp8` and `note` are for whoever reads it; nothing here asks for them."""

    id: str
    vendor: str
    compute: str
    names: list[str]
    short: list[str]
    nominal_gb: int
    fp8: str
    verified: bool
    labels: list[str] = []
    cloud: dict[str, int] = {}
    total_gib: float | None = None
    total_bytes: int | None = None
    seen_gib: tuple[float, float] | None = None
    smi_mib: int | None = None
    unified: bool = False
    rare: bool = False
    part_of: str | None = None
    note: str = ""


class Gpus:
    """All cards of rules/gpus.toml, looked up by name, by total and in running text."""

    def __init__(self, specs: Iterable[GpuSpec]) -> None:
        self.specs = tuple(specs)
        self.by_id: Mapping[str, GpuSpec] = {spec.id: spec for spec in self.specs}
        self._labels = _index((name.lower(), spec) for spec in self.specs for name in (*spec.labels, *spec.cloud))
        self._exact = _index((_key(name), spec) for spec in self.specs for name in (spec.id, *spec.names))
        self._short = _index((_key(name), spec) for spec in self.specs for name in spec.short)
        self._clouds = {name.lower(): count for spec in self.specs for name, count in spec.cloud.items()}
        self._named_in = Names(name for spec in self.specs for name in (*spec.short, *spec.names, spec.id, *spec.cloud)).found

    def find(self, name: str) -> GpuSpec | tuple[GpuSpec, ...] | None:
        """The card of a name; several when the name does not decide (`A100`), to be asked back; None when it is none."""
        found = self._named(name)
        usual = tuple(spec for spec in found if not spec.rare) or found
        return usual[0] if len(usual) == 1 else usual or None

    def devices(self, cloud_type: str) -> int | None:
        """How many devices a cloud's instance type has; None when it is no such type."""
        return self._clouds.get(cloud_type.lower())

    def nearest(self, name: str, count: int = 3) -> tuple[str, ...]:
        """The ids that a mistyped name resembles most, best first."""
        keys = {**{k: v for k, v in self._exact.items() if k}, **self._short}
        close = difflib.get_close_matches(_key(name), keys, n=count, cutoff=0.6)
        return tuple(dict.fromkeys(spec.id for key in close for spec in keys[key]))[:count]

    def by_total(self, total: int) -> tuple[GpuSpec, ...]:
        """Every card that reports about so many bytes, the nearest first; whole cards before slices of one."""
        room = max(_NEAR, int(total * _NEAR_SHARE) if total >= 64 * GIB else 0)
        near = [spec for spec in self.specs if spec.total is not None and _distance(spec, total) <= room]
        return tuple(sorted(near, key=lambda s: (s.part_of is not None, _distance(s, total), not s.verified, abs((s.total or 0) - total))))

    def decide(self, name: str, total: int | None) -> GpuSpec | None:
        """One card from a name and, where the name is shared, the total that torch printed; None when both together do not decide."""
        found = self._named(name)
        if total is not None and len(found) > 1:
            return min(found, key=lambda spec: _distance(spec, total)) if any(_distance(s, total) <= 2 * GIB for s in found) else None
        usual = [spec for spec in found if not spec.rare] or list(found)
        return usual[0] if len(usual) == 1 else None

    def mentions(self, text: str) -> tuple[Mention, ...]:
        """Cards named in a text, in order, each with the count beside it: `2x RTX 3090`, `8xH20`, `dual 4090`, `H100 x8`."""
        return tuple(self._mentions(text))

    def _mentions(self, text: str) -> Iterator[Mention]:
        for named in self._named_in(text):
            found = self.find(named.name)
            if found is not None:
                specs = found if isinstance(found, tuple) else (found,)
                yield Mention(specs, self.devices(named.name) or named.count, named.text, named.start, named.end)

    def _named(self, name: str) -> tuple[GpuSpec, ...]:
        return self._labels.get(name.lower()) or self._exact.get(_key(name)) or self._by_words(name)

    def _by_words(self, name: str) -> tuple[GpuSpec, ...]:
        words = _words(name)
        size = next((float(m[1]) for word in words if (m := _SIZED.match(word))), None)
        bare = [word for word in words if not _SIZED.match(word)]
        cards = self._short.get("".join(bare)) or self._short.get("".join(word for word in bare if not _FORM.match(word))) or ()
        fitting = tuple(spec for spec in cards if size is None or abs(size - spec.nominal_gb) <= 0.12 * spec.nominal_gb)
        return fitting or cards


def _words(name: str) -> list[str]:
    text = re.sub(r"\((?:r|tm)\)", " ", name.lower())
    text = re.sub(r"(?<=\d)\s+(?=(?:gib|gb|g)\b)", "", text)
    return [word for word in re.findall(r"[a-z0-9.]+", text) if word not in _NOISE]


def _key(name: str) -> str:
    return "".join(_words(name))


def _index(pairs: Iterable[tuple[str, GpuSpec]]) -> dict[str, tuple[GpuSpec, ...]]:
    table: dict[str, dict[str, GpuSpec]] = {}
    for key, spec in pairs:
        table.setdefault(key, {})[spec.id] = spec
    return {key: tuple(specs.values()) for key, specs in table.items()}


def _distance(spec: GpuSpec, total: int) -> int:
    low, high = spec.seen or (spec.total or 0, spec.total or 0)
    return max(low - total, total - high, 0)


def _spec(row: _Row) -> GpuSpec:
    total = row.total_bytes or (None if row.total_gib is None else round(row.total_gib * GIB))
    seen = None if row.seen_gib is None else (round(row.seen_gib[0] * GIB), round(row.seen_gib[1] * GIB))
    return GpuSpec(
        id=row.id, vendor=row.vendor, compute=row.compute, names=tuple(row.names), short=tuple(row.short), labels=tuple(row.labels),
        cloud=row.cloud, nominal_gb=row.nominal_gb, total=total, seen=seen, unified=row.unified, rare=row.rare,
        verified=row.verified, part_of=row.part_of,
    )  # fmt: skip


@cache
def load_gpus(folder: Path | None = None) -> Gpus:
    """The cards of a rules folder; RulebookError naming every row that is wrong."""
    path = (folder or rules_folder()) / "gpus.toml"
    try:
        rows: list[dict[str, Any]] = rtoml.load(path)["gpu"]
    except (OSError, ValueError, KeyError) as error:
        raise RulebookError([f"gpus.toml: no [[gpu]] rows could be read from {path}: {error}"]) from error
    specs: dict[str, GpuSpec] = {}
    problems: list[str] = []
    for row in rows:
        label = row.get("id", "without id")
        try:
            spec = _spec(msgspec.convert(row, _Row))
        except msgspec.ValidationError as error:
            problems.append(f"gpus.toml: [[gpu]] {label}: {error}")
            continue
        problems += [f"gpus.toml: [[gpu]] {label}: {problem}" for problem in _problems(spec, specs)]
        specs[spec.id] = spec
    orphans = (spec for spec in specs.values() if spec.part_of and spec.part_of not in specs)
    problems += [f"gpus.toml: [[gpu]] {spec.id}: part_of {spec.part_of!r} is no card" for spec in orphans]
    if problems:
        raise RulebookError(problems)
    return Gpus(specs.values())


def _problems(spec: GpuSpec, before: Mapping[str, GpuSpec]) -> Iterator[str]:
    if spec.id in before:
        yield "the id is taken"
    if spec.total is None and not spec.unified:
        yield "total_gib is missing (only unified memory may leave it to the machine)"
    if spec.total is not None and spec.seen is not None and not spec.seen[0] - GIB // 20 <= spec.total <= spec.seen[1] + GIB // 20:
        yield "total_gib lies outside seen_gib"
