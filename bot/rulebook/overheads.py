"""rules/accounting/overheads.toml: the coefficients of activations, graphs and the rest, for one version, runner and grid."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from bot.domain.overheads import Measured, OverheadFigures, Runner, Span
from bot.rulebook.gpus import capability
from bot.rulebook.load import RulebookError, one_file
from bot.rulebook.versions import holds, is_range

FILE = "accounting/overheads.toml"
_TRIED = ("0.6.6", "0.8.5", "0.10.2", "0.11.0", "0.14.1", "0.19.1", "0.20.2", "0.22.1", "0.26.0", "0.27.1", "0.28.0", "0.33.0")


class _Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    vllm: str
    source: str
    runner: list[Runner] = []
    vendor: list[str] = []
    tp: Literal["one", "several", ""] = ""
    unified: bool = False
    methods: list[str] = []


class _Coefficient(_Row, frozen=True, forbid_unknown_fields=True, kw_only=True):
    span: Span
    rows: int


class _Switch(_Row, frozen=True, forbid_unknown_fields=True, kw_only=True):
    charged: bool


class _RunnerRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    runner: Runner
    vllm: str
    source: str
    below: str = ""
    dense: bool = False
    architectures: list[str] = []


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    runner: list[_RunnerRow]
    sampler: list[_Coefficient]
    forward: list[_Coefficient]
    encoder: list[_Coefficient]
    context: list[_Coefficient]
    non_torch: list[_Coefficient]
    baseline: list[_Coefficient]
    first_graph: list[_Coefficient]
    graph: list[_Coefficient]
    repacked: list[_Coefficient]
    graphs: list[_Switch]
    full_graphs: list[_Switch]


_COEFFICIENTS = ("sampler", "forward", "encoder", "context", "non_torch", "baseline", "first_graph", "graph", "repacked")


class Overheads:
    """The file, asked for one start at a time."""

    def __init__(self, file: _File) -> None:
        self.file = file

    def runner(self, version: str, compute: str, architecture: str, *, dense: bool) -> Runner:
        """Which model runner serves this model on a device of that compute capability (`9.0`, or an architecture's name)."""
        return next(row.runner for row in self.file.runner if _serves(row, version, compute, architecture, dense))

    def figures(self, version: str, runner: Runner, vendor: str, tp: int, *, unified: bool = False, method: str = "") -> OverheadFigures:
        """Every coefficient of that version; pick the runner first.

        `unified`: the device shares one memory with the host. `method`: how the weights are quantized, empty when they are not.
        """
        where = Where(version, runner, vendor, tp, unified, method)
        found = {name: _first(getattr(self.file, name), where) for name in _COEFFICIENTS}
        return OverheadFigures(
            runner=runner,
            graphs_charged=_switch(self.file.graphs, where),
            full_graphs=_switch(self.file.full_graphs, where),
            profiled="prompt" if runner == "v0" else "batch",
            **found,
        )


class Where(NamedTuple):
    """What rows are chosen by."""

    version: str
    runner: Runner
    vendor: str
    tp: int
    unified: bool = False
    method: str = ""


def _serves(row: _RunnerRow, version: str, compute: str, architecture: str, dense: bool) -> bool:
    if not holds(row.vllm, version) or (row.dense and not dense) or (row.architectures and architecture not in row.architectures):
        return False
    has = capability(compute)
    return not row.below or (has is not None and has < (capability(row.below) or has))


def _fits(row: _Row, where: Where) -> bool:
    grid = (not row.tp or (row.tp == "one") == (where.tp == 1)) and (not row.unified or where.unified)
    maker = (not row.runner or where.runner in row.runner) and (not row.vendor or where.vendor in row.vendor)
    return grid and maker and (not row.methods or where.method in row.methods) and holds(row.vllm, where.version)


def _first(rows: Sequence[_Coefficient], where: Where) -> Measured:
    row = next(row for row in rows if _fits(row, where))
    return Measured(row.span, row.rows, row.source)


def _switch(rows: Sequence[_Switch], where: Where) -> bool:
    return next(row.charged for row in rows if _fits(row, where))


@cache
def load_overheads(folder: Path | None = None) -> Overheads:
    """The coefficients of a rules folder; RulebookError with every problem, a version without an answer too."""
    file = one_file(FILE, _File, folder)
    if problems := _problems(file):
        raise RulebookError([f"{FILE}: {problem}" for problem in problems])
    return Overheads(file)


def _problems(file: _File) -> list[str]:
    tables: dict[str, Sequence[_Row]] = {name: getattr(file, name) for name in (*_COEFFICIENTS, "graphs", "full_graphs")}
    rows = [(name, row) for name, table in tables.items() for row in table]
    ranges = [f"[[{name}]] vllm = {row.vllm!r} is not a version range" for name, row in rows if not is_range(row.vllm)]
    if ranges:
        return ranges
    fallen = [(name, row) for name, row in rows if isinstance(row, _Coefficient) and list(row.span) != sorted(row.span)]
    return [f"[[{name}]] {row.vllm}: its span does not rise" for name, row in fallen] + list(_silent(tables))


def _silent(tables: Mapping[str, Sequence[_Row]]) -> Iterator[str]:
    runners: tuple[Runner, ...] = ("v0", "v1", "v2")
    starts = [Where(*start) for start in product(_TRIED, runners, ("nvidia", "amd"), (1, 2))]
    for name, rows in tables.items():
        yield from (f"[[{name}]] no row holds for {where}" for where in starts if not any(_fits(row, where) for row in rows))
