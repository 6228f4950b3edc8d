"""The [weights] table of a family's file: how its tensors are made and placed, per engine version."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from bot.rulebook.family import WeightExample
from bot.rulebook.versions import holds, is_range
from bot.rulebook.weight_options import OPTIONS

CONDITIONS = frozenset({"vllm", "architectures", "not_gpus", "sources"})
"""Keys of a change that say when it holds; the others are what it changes."""
EXAMPLES = frozenset({"change", "example"})
"""Tables in a table."""


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


def unlike(files: Mapping[str, Mapping[str, Any]]) -> Iterable[str]:
    """Every option that one place alone gives another kind of value than the others do; a table, by kind of layer, may always stand."""
    tables = [(name, table) for name, weights in files.items() for table in (weights, *weights.get("change", ()))]
    given = [(name, key, _kind(value)) for name, table in tables for key, value in table.items() if key in OPTIONS]
    often = Counter((key, kind) for _, key, kind in given)
    for name, key, kind in given:
        others = sorted({other for named, other in often if named == key} - {kind, "table"})
        if kind != "table" and often[key, kind] == 1 and others:
            yield f"{name}.toml: [weights] {key} is a {kind}, and a {' or '.join(others)} everywhere else"


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
