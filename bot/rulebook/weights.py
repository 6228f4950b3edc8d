"""The [weights] tables of rules/models/*.toml: how each family's tensors are made and placed, per engine version."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import rtoml

from bot.rulebook.load import RulebookError
from bot.rulebook.models import GENERAL, family_files
from bot.rulebook.versions import holds, is_range
from bot.rulebook.weight_options import OPTIONS

CONDITIONS = frozenset({"vllm", "architectures", "not_gpus", "sources"})
"""Keys of a change that say when it holds; the others are what it changes."""
EXAMPLES = frozenset({"change", "example"})
"""Tables in a table."""


class WeightExample(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A config.json excerpt, and the bytes that the engine counted on the first rank of this grid."""

    config: dict[str, Any]
    vllm: str
    bytes: int
    tp: int = 1
    pp: int = 1


class UnknownWeights(ValueError):
    """No [weights] table knows this architecture; the message names it and says what to do."""


def narrowed(weights: Mapping[str, Any], version: str, gpu: str = "", architecture: str = "") -> dict[str, Any]:
    """A [weights] table as it stands for one engine version, GPU and architecture.

    Each `[[weights.change]]` is laid over it whose `vllm` range holds, whose `architectures` name this one, and whose `not_gpus`
    are no part of the GPU's name (an unknown GPU counts as one of them).
    """
    table = {key: value for key, value in weights.items() if key not in EXAMPLES}
    for change in weights.get("change", ()):
        if "vllm" in change and not holds(change["vllm"], version):
            continue
        if "architectures" in change and architecture not in change["architectures"]:
            continue
        if "not_gpus" in change and (not gpu or any(name in gpu for name in change["not_gpus"])):
            continue
        table |= {key: value for key, value in change.items() if key not in CONDITIONS}
    return table


@dataclass(frozen=True, slots=True)
class WeightFamily:
    """One file's [weights]; `wraps` another family's language model, `silent` what that one's config leaves out, by model_type."""

    family: str
    table: Mapping[str, Any]
    wraps: bool = False
    silent: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def examples(self) -> list[WeightExample]:
        """What the engine was seen to count."""
        return msgspec.convert(self.table.get("example", []), list[WeightExample])


@dataclass(frozen=True, slots=True)
class WeightRules:
    """All families by architecture and by model_type, and what holds for every one."""

    general: Mapping[str, Any]
    by_architecture: Mapping[str, WeightFamily]
    by_type: Mapping[str, WeightFamily]

    def table(self, config: Mapping[str, Any], text: Mapping[str, Any], version: str, gpu: str = "") -> Mapping[str, Any]:
        """What holds for one config.json; `text` is its language part. UnknownWeights when no file knows the architecture."""
        outer, architecture = self.family(config)
        inner: dict[str, Any] = {}
        if outer.wraps and text is not config:
            family, inside = self.family(text)
            inner = narrowed(family.table, version, gpu, inside)
            inner |= {"defaults": {**inner.get("defaults", {}), **outer.silent.get(str(text.get("model_type")), {})}}
        return {**narrowed(self.general, version, gpu, architecture), **inner, **narrowed(outer.table, version, gpu, architecture)}

    def family(self, config: Mapping[str, Any]) -> tuple[WeightFamily, str]:
        """The family of a config and its architecture, as the file says or as its model_type implies."""
        kind = str(config.get("model_type") or "")
        implied = "".join(piece.capitalize() for piece in kind.split("_")) + "ForCausalLM" if kind else ""
        for name in [*(config.get("architectures") or ()), implied]:
            if name in self.by_architecture:
                return self.by_architecture[name], name
        if kind in self.by_type:
            return self.by_type[kind], implied
        said = ", ".join(config.get("architectures") or ()) or kind or "(none named)"
        raise UnknownWeights(
            f"no [weights] in rules/models for the architecture {said}: add them to its family's file, or give --weights-bytes"
        )


@cache
def load_weights(folder: Path | None = None) -> WeightRules:
    """The [weights] of every family of a rules folder; RulebookError with every problem."""
    problems: list[str] = []
    files = {path.name: _read(path, problems) for path in family_files(folder)}
    problems += [f"{name}: {problem}" for name, file in files.items() for problem in check(file.get("weights", {}))]
    problems += _unlike({name: file.get("weights", {}) for name, file in files.items()})
    if problems:
        raise RulebookError(f"models/{problem}" for problem in problems)
    by_architecture: dict[str, WeightFamily] = {}
    by_type: dict[str, WeightFamily] = {}
    for name, file in files.items():
        if name == GENERAL or "weights" not in file:
            continue
        traits = file.get("traits", {})
        table = _with_head_size(file)
        one = WeightFamily(str(file.get("family", name)), table, bool(traits.get("language")), traits.get("silent", {}))
        by_architecture |= dict.fromkeys(file.get("architectures", ()), one)
        by_type |= dict.fromkeys(file.get("model_types", ()), one)
    return WeightRules(files.get(GENERAL, {}).get("weights", {}), by_architecture, by_type)


def _read(path: Path, problems: list[str]) -> dict[str, Any]:
    try:
        return rtoml.load(path)
    except ValueError as error:
        problems.append(f"{path.name}: {error}")
        return {}


def _with_head_size(file: Mapping[str, Any]) -> Mapping[str, Any]:
    """[weights] with the head's size where config.json is silent, as [fields] has it for the cache."""
    said = file.get("fields", {}).get("head_dim")
    if not isinstance(said, Mapping) or said.get("key") != ["head_dim"] or "default" not in said:
        return dict(file["weights"])
    return {**file["weights"], "defaults": {"head_dim": said["default"], **file["weights"].get("defaults", {})}}


def _unlike(files: Mapping[str, Mapping[str, Any]]) -> Iterable[str]:
    """Every option that one place alone gives another kind of value than the others do; a table, by kind of layer, may always stand."""
    tables = [(name, table) for name, weights in files.items() for table in (weights, *weights.get("change", ()))]
    given = [(name, key, _kind(value)) for name, table in tables for key, value in table.items() if key in OPTIONS]
    often = Counter((key, kind) for _, key, kind in given)
    for name, key, kind in given:
        others = sorted({other for named, other in often if named == key} - {kind, "table"})
        if kind != "table" and often[key, kind] == 1 and others:
            yield f"{name}: [weights] {key} is a {kind}, and a {' or '.join(others)} everywhere else"


def _kind(value: Any) -> str:
    kinds = ((bool, "yes or no"), (int | float, "number"), (str, "text"), (list, "list"), (Mapping, "table"))
    return next((kind for of, kind in kinds if isinstance(value, of)), "date")


def check(weights: Mapping[str, Any]) -> Iterable[str]:
    """Every key that nothing reads, and every version range that is not one."""
    for table in (weights, *weights.get("change", ())):
        known = set(OPTIONS) | (EXAMPLES if table is weights else CONDITIONS)
        yield from (f"[weights] has no {key!r}; known: {', '.join(sorted(known))}" for key in table if key not in known)
        if not is_range(table.get("vllm", ">=0")):
            yield f"[weights] not a version range: {table['vllm']!r} (write it as >=0.20,<0.32)"
        try:
            msgspec.convert(table.get("example", []), list[WeightExample])
        except ValueError as error:
            yield f"[weights] {error}"
