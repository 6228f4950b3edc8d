"""The memory that a rank reported, as a small table: one rank downwards, several ranks across."""

from collections.abc import Mapping, Sequence
from typing import Any

from bot.slack.render.blocks import Block, bold, line, rich, table
from bot.slack.render.wording import gib, number
from bot.usecases.budget_rows import FIGURES, at_the_error, not_reported, of_what_failed

SHOWN = (
    "total_bytes", "free_at_start_bytes", "requested_bytes", "weights_bytes", "consumed_bytes", "activation_peak_bytes", "non_torch_bytes",
    "graph_bytes", "graph_estimate_bytes", "other_reserved_bytes", "kv_cache_bytes", "needed_bytes", "outside_budget_bytes",
)  # fmt: skip
"""What a table of GiB holds, in this order."""
MANY = 8


def budget_blocks(document: Mapping[str, Any]) -> list[Block]:
    """A table of the failing rank, or of all ranks that reported; a sentence on what is missing and whether it adds up."""
    budgets = [budget for budget in of_what_failed(document) if _reported(budget)]
    if not budgets:
        return _at_the_error(document)
    failing = _failing(document)
    if len(budgets) == 1:
        return [_downwards(budgets[0]), *_remarks(document, budgets[0])]
    shown = budgets if len(budgets) <= MANY else _telling(budgets, failing)
    mine = next((b for b in budgets if b["rank"] == failing and failing is not None), budgets[0])
    return [_across(shown, failing), *_remarks(document, mine, _where(mine))]


def _at_the_error(document: Mapping[str, Any]) -> list[Block]:
    """Where the engine reported nothing: what the failed request said of its card."""
    rows = [[_heading(label), gib(size)] for label, size in at_the_error(document)]
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
    rows = [[f"{name_of(budget)}, GiB", "Reported", "Line"]]
    figures = [(name, gib(budget[name])) for name in _reported(budget)]
    figures += [(name, number(budget[name])) for name in ("kv_tokens", "max_concurrency") if budget.get(name) is not None]
    rows += [[_heading(FIGURES[name].label), figure, _read_at(budget, name) or "–"] for name, figure in figures]
    return table(rows)


def _read_at(budget: Mapping[str, Any], name: str) -> str:
    """The line that a figure stands in, and its source where that is not the first; nothing where no line says it."""
    line, source = (budget.get("lines") or {}).get(name), (budget.get("sources") or {}).get(name)
    return "" if line is None else f"{line} of source {source}" if source else str(line)


def _across(budgets: Sequence[Mapping[str, Any]], failing: int | None) -> Block:
    columns = [name for name in SHOWN if any(budget.get(name) is not None for budget in budgets)][:7]
    rows = [["GiB", *(_heading(FIGURES[name].label) for name in columns), "Status"]]
    for budget in budgets:
        status = "failed" if failing is not None and budget.get("rank") == failing else "reported"
        rows.append([name_of(budget), *(gib(budget.get(name)) for name in columns), status])
    return table(rows)


def _telling(budgets: Sequence[Mapping[str, Any]], failing: int | None) -> list[Mapping[str, Any]]:
    """Of many ranks: the failing one, and those with least, middle and most left for the KV cache."""
    ordered = sorted(budgets, key=lambda b: (b.get("kv_cache_bytes") is None, b.get("kv_cache_bytes") or 0))
    picked = [b for b in budgets if failing is not None and b.get("rank") == failing]
    for candidate in (ordered[0], ordered[len(ordered) // 2], ordered[-1]):
        if candidate not in picked:
            picked.append(candidate)
    return picked


def _where(budget: Mapping[str, Any]) -> str:
    """Where the figures of one of several ranks stand: a table of many has no room for it."""
    read = [f"{FIGURES[name].label} {_read_at(budget, name)}" for name in _reported(budget) if _read_at(budget, name)]
    return f"{name_of(budget)} by line: {', '.join(read)}. " if read else ""


def _remarks(document: Mapping[str, Any], budget: Mapping[str, Any], where: str = "") -> list[Block]:
    said: list[str | Block] = [where] if where else []
    if missing := not_reported(document, budget):
        said.append(f"Not in the log: {', '.join(missing)}. ")
    if budget.get("closes") is False and budget.get("residual_bytes") is not None:
        said += [bold("The figures do not add up: "), f"{gib(abs(budget['residual_bytes']))} GiB are unaccounted for. "]
    if budget.get("reported_by_rank") is not None and budget["reported_by_rank"] != budget.get("rank"):
        said.append(f"Only rank {budget['reported_by_rank']} prints these figures.")
    return [rich(line(*said))] if said else []
