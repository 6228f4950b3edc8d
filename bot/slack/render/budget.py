"""The memory that a rank reported, as a small table: one rank downwards, several ranks across."""

from collections.abc import Mapping, Sequence
from typing import Any

from bot.slack.render.blocks import Block, bold, line, rich, table
from bot.slack.render.wording import gib, number
from bot.usecases.budget_rows import at_the_error, of_what_failed

COMPONENTS = (
    ("total_bytes", "Device"),
    ("free_at_start_bytes", "Free at start"),
    ("requested_bytes", "Budget"),
    ("weights_bytes", "Weights"),
    ("consumed_bytes", "Weights + non-torch"),
    ("activation_peak_bytes", "Activations (peak)"),
    ("non_torch_bytes", "Non-torch"),
    ("graph_bytes", "CUDA graphs"),
    ("graph_estimate_bytes", "CUDA graphs (estimate)"),
    ("other_reserved_bytes", "Other reserved"),
    ("kv_cache_bytes", "KV cache"),
    ("needed_bytes", "One full request needs"),
    ("outside_budget_bytes", "Outside the budget"),
)
# What a start-up usually reports: absent ones are named, so that a gap is seen.
EXPECTED = ("total_bytes", "weights_bytes", "activation_peak_bytes", "kv_cache_bytes")
MANY = 8


def budget_blocks(document: Mapping[str, Any]) -> list[Block]:
    """A table of the failing rank, or of all ranks that reported; a sentence on what is missing and whether it adds up."""
    budgets = [budget for budget in of_what_failed(document) if _reported(budget)]
    if not budgets:
        return _at_the_error(document)
    failing = _failing(document)
    if len(budgets) == 1:
        return [_downwards(budgets[0]), *_remarks(budgets[0])]
    shown = budgets if len(budgets) <= MANY else _telling(budgets, failing)
    mine = next((b for b in budgets if b["rank"] == failing and failing is not None), budgets[0])
    return [_across(shown, failing), *_remarks(mine, _where(mine))]


def _at_the_error(document: Mapping[str, Any]) -> list[Block]:
    """Where the engine reported nothing: what the failed request said of its card."""
    rows = [[label[:1].upper() + label[1:], gib(size)] for label, size in at_the_error(document)]
    return [table([["At the first error", "GiB"], *rows])] if rows else []


def _reported(budget: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(key, label) for key, label in COMPONENTS if budget.get(key) is not None]


def _failing(document: Mapping[str, Any]) -> int | None:
    rank = document.get("rank")
    return None if rank is None else rank.get("number")


def name_of(budget: Mapping[str, Any]) -> str:
    """Which rank a budget belongs to, as people say it."""
    own = f"Rank {budget['rank']}" if budget.get("rank") is not None else (budget.get("label") or "Engine")
    return f"{budget['engine_label']}: {own}" if budget.get("engine_label") else own


def _downwards(budget: Mapping[str, Any]) -> Block:
    lines = budget.get("lines") or {}
    rows = [[f"{name_of(budget)}, GiB", "Reported", "Line"]]
    rows += [[label, gib(budget[key]), str(lines[key]) if key in lines else "–"] for key, label in _reported(budget)]
    for key, label in (("kv_tokens", "KV cache, tokens"), ("max_concurrency", "Full-length requests")):
        if budget.get(key) is not None:
            rows.append([label, number(budget[key]), str(lines[key]) if key in lines else "–"])
    return table(rows)


def _across(budgets: Sequence[Mapping[str, Any]], failing: int | None) -> Block:
    columns = [(key, label) for key, label in COMPONENTS if any(budget.get(key) is not None for budget in budgets)][:7]
    rows = [["GiB", *(label for _, label in columns), "Status"]]
    for budget in budgets:
        status = "failed" if failing is not None and budget.get("rank") == failing else "reported"
        rows.append([name_of(budget), *(gib(budget.get(key)) for key, _ in columns), status])
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
    lines = budget.get("lines") or {}
    read = [f"{_inside(label)} {lines[key]}" for key, label in _reported(budget) if key in lines]
    return f"{name_of(budget)} by line: {', '.join(read)}. " if read else ""


def _inside(label: str) -> str:
    """A label inside a sentence."""
    return label if label.startswith(("KV", "CUDA")) else label[0].lower() + label[1:]


def _remarks(budget: Mapping[str, Any], where: str = "") -> list[Block]:
    said: list[str | Block] = [where] if where else []
    labels = [label for key, label in COMPONENTS if key in EXPECTED and budget.get(key) is None]
    missing = [_inside(label) for label in labels]
    if missing:
        said.append(f"Not in the log: {', '.join(missing)}. ")
    if budget.get("closes") is False and budget.get("residual_bytes") is not None:
        said += [bold("The figures do not add up: "), f"{gib(abs(budget['residual_bytes']))} GiB are unaccounted for. "]
    if budget.get("reported_by_rank") is not None and budget["reported_by_rank"] != budget.get("rank"):
        said.append(f"Only rank {budget['reported_by_rank']} prints these figures.")
    return [rich(line(*said))] if said else []
