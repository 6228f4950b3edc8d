"""The memory that a rank reported, as a small table: one rank downwards, several ranks across."""

from collections.abc import Mapping, Sequence
from typing import Any

from bot.slack.render.blocks import Block, bold, figure, line, rich, table
from bot.slack.render.wording import gib, number
from bot.usecases.budget_rows import FIGURES, at_the_error, not_reported, of_what_failed

SHOWN = (
    "total_bytes", "free_at_start_bytes", "requested_bytes", "weights_bytes", "consumed_bytes", "activation_peak_bytes", "non_torch_bytes",
    "graph_bytes", "graph_estimate_bytes", "other_reserved_bytes", "kv_cache_bytes", "needed_bytes", "outside_budget_bytes",
)  # fmt: skip
"""What a table of GiB holds, in this order."""
_BY = ("kv_cache_bytes", "activation_peak_bytes", "weights_bytes", *SHOWN)
MANY = 8


def budget_blocks(document: Mapping[str, Any]) -> list[Block]:
    """A table of the failing rank, or of all ranks that reported; a sentence on what is missing and whether it adds up."""
    budgets = [budget for budget in of_what_failed(document) if _reported(budget)]
    if not budgets:
        return _at_the_error(document)
    failing = _failing(document)
    if len(budgets) == 1:
        return [_downwards(budgets[0]), *_remarks(budgets[0])]
    mine = _mine(budgets, failing)
    failed = failing is not None and mine["rank"] == failing
    if len(budgets) <= MANY:
        return [_across([(b, "failed" if b is mine and failed else "reported") for b in budgets]), *_remarks(mine)]
    left = f"{len(budgets)} ranks reported: Show evidence has all of them. "
    return [_across(_telling(budgets, mine if failed else None)), *_remarks(mine, left)]


def _at_the_error(document: Mapping[str, Any]) -> list[Block]:
    """Where the engine reported nothing: what the failed request said of its card."""
    rows = [[_heading(label), _gib(size)] for label, size in at_the_error(document)]
    return [table([["At the first error", "GiB"], *rows])] if rows else []


def _reported(budget: Mapping[str, Any]) -> list[str]:
    return [name for name in SHOWN if budget.get(name) is not None]


def _heading(label: str) -> str:
    """A label at the head of a row or column."""
    return label[:1].upper() + label[1:]


def _failing(document: Mapping[str, Any]) -> int | None:
    rank = document.get("rank")
    return None if rank is None else rank.get("number")


def name_of(budget: Mapping[str, Any]) -> str:
    """Which rank a budget belongs to, as people say it."""
    own = f"Rank {budget['rank']}" if budget.get("rank") is not None else (budget.get("label") or "Engine")
    return f"{budget['engine_label']}: {own}" if budget.get("engine_label") else own


def _downwards(budget: Mapping[str, Any]) -> Block:
    rows: list[list[str | Block]] = [[f"{name_of(budget)}, GiB", "Reported", "Line"]]
    figures = [(name, _gib(budget[name])) for name in _reported(budget)]
    figures += [
        (name, figure(budget[name], number(budget[name]))) for name in ("kv_tokens", "max_concurrency") if budget.get(name) is not None
    ]
    rows += [[_heading(FIGURES[name].label), cell, read_at(budget, name) or "–"] for name, cell in figures]
    return table(rows)


def _gib(count: int | None) -> str | Block:
    return gib(count) if count is None else figure(round(count / 2**30, 2), gib(count))


def read_at(budget: Mapping[str, Any], name: str) -> str:
    """The line that a figure stands in, and its source where that is not the first; nothing where no line says it."""
    line, source = (budget.get("lines") or {}).get(name), (budget.get("sources") or {}).get(name)
    return "" if line is None else f"{line} of source {source}" if source else str(line)


def _across(budgets: Sequence[tuple[Mapping[str, Any], str]]) -> Block:
    """A row for each budget, with its status."""
    columns = [name for name in SHOWN if any(budget.get(name) is not None for budget, _ in budgets)][:7]
    rows: list[list[str | Block]] = [["Rank, GiB", *(_heading(FIGURES[name].label) for name in columns), "Status"]]
    rows += [[name_of(budget), *(_gib(budget.get(name)) for name in columns), status] for budget, status in budgets]
    return table(rows)


def _telling(budgets: Sequence[Mapping[str, Any]], failed: Mapping[str, Any] | None) -> list[tuple[Mapping[str, Any], str]]:
    """Of many ranks: the one that failed, and those with least, middle and most of the figure that most of them report."""
    by = max(_BY, key=lambda name: sum(b.get(name) is not None for b in budgets))  # of equals the first
    ordered = sorted((b for b in budgets if b.get(by) is not None), key=lambda b: (b[by], b["rank"] or 0))
    label = FIGURES[by].label
    told = [(failed, "failed")] if failed else []
    middle = [("least", ordered[0]), ("median", ordered[(len(ordered) - 1) // 2]), ("most", ordered[-1])] if ordered else []
    for word, budget in middle:
        same = next((at for at, (known, _) in enumerate(told) if known is budget), None)
        if same is None:
            told.append((budget, f"{word} {label}"))
        else:
            told[same] = (budget, f"{told[same][1]}, {word}" if label in told[same][1] else f"{told[same][1]}, {word} {label}")
    return told


def _mine(budgets: Sequence[Mapping[str, Any]], failing: int | None) -> Mapping[str, Any]:
    """Of the rank that failed; where it is not known or did not report, the first."""
    return next((b for b in budgets if failing is not None and b.get("rank") == failing), budgets[0])


def missing_figures(document: Mapping[str, Any]) -> Sequence[str]:
    """What the rank that failed did not report of what its engine usually does."""
    budgets = [budget for budget in of_what_failed(document) if _reported(budget)]
    return not_reported(document, _mine(budgets, _failing(document))) if budgets else ()


def _remarks(budget: Mapping[str, Any], more: str = "") -> list[Block]:
    said: list[str | Block] = [more] if more else []
    if budget.get("closes") is False and budget.get("residual_bytes") is not None:
        said += [bold("The figures do not add up: "), f"{gib(abs(budget['residual_bytes']))} GiB are unaccounted for. "]
    if budget.get("reported_by_rank") is not None and budget["reported_by_rank"] != budget.get("rank"):
        said.append(f"Only rank {budget['reported_by_rank']} prints these figures.")
    return [rich(line(*said))] if said else []
