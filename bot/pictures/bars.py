"""What a picture shows: one bar per rank, read from a sizing or a diagnosis document."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from bot.domain.rank import runs

Kind = Literal["weights", "other", "pool", "outside", "unknown"]
NAMES: Mapping[Kind, str] = {
    "weights": "weights",
    "other": "other",
    "pool": "KV pool",
    "outside": "outside",
    "unknown": "not reported",
}


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a bar, in bytes; never negative."""

    kind: Kind
    bytes: int


@dataclass(frozen=True, slots=True)
class Bar:
    """One rank, or several alike. `total`: the device in bytes, or all that was reported where `whole` is off; `missing`: bytes that a
    negative pool falls short by.

    `pool_range`: lowest and highest pool where it is estimated. `budget`: what the utilization allows, None where nobody said.
    """

    label: str
    total: int
    parts: tuple[Part, ...]
    budget: int | None = None
    missing: int = 0
    pool_range: tuple[int, int] | None = None
    whole: bool = True

    @property
    def claimed(self) -> int:
        """Bytes that the parts take together; more than the device when they do not fit."""
        return sum(part.bytes for part in self.parts)


def bars_of(document: Mapping[str, Any]) -> tuple[Bar, ...]:
    """The bars of a sizing document's `ranks` or a diagnosis document's `budgets`; ranks that say too little for a bar are left out."""
    if beside := document.get("side_by_side"):
        return tuple(bar for answer in beside["answers"] if (bar := _of_answer(answer)))
    made = [_with_range(bar, rank, document) for rank in document.get("ranks") or () if (bar := _of_rank(rank))]
    failed = document.get("container")
    budgets = [b for b in document.get("budgets") or () if not failed or b.get("engine_label") in (None, failed)]
    made += [bar for budget in budgets if (bar := _of_budget(budget)) and not _mostly_unknown(bar)]
    return tuple(_merged(made))


def _mostly_unknown(bar: Bar) -> bool:
    """Would more than half of the bar only say that nothing was reported?"""
    return any(part.kind == "unknown" and part.bytes > bar.total / 2 for part in bar.parts)


def _of_answer(answer: Mapping[str, Any]) -> Bar | None:
    """Answers held side by side show one bar each: the rank that limits."""
    ranks = answer.get("ranks") or ()
    limiting = next((rank for rank in ranks if rank.get("rank") == (answer.get("limiting_rank") or 0)), None)
    bar = _of_rank(limiting) if limiting else None
    return replace(_with_range(bar, limiting, answer), label=str(answer["of"])) if bar and limiting else None


def _with_range(bar: Bar, rank: Mapping[str, Any], document: Mapping[str, Any]) -> Bar:
    """The range is the limiting rank's; ranks with the same pool share it."""
    spread = (document.get("range") or {}).get("kv_pool_bytes")
    pools = {one.get("rank"): one.get("kv_pool_bytes") for one in document["ranks"]}
    if spread is None or rank.get("kv_pool_bytes") != pools.get(document.get("limiting_rank") or 0):
        return bar
    return replace(bar, pool_range=(spread[0], spread[1]))


def _of_rank(rank: Mapping[str, Any]) -> Bar | None:
    total = rank.get("total_bytes")
    if not total:
        return None
    known = (rank.get("weights_bytes"), rank.get("other_bytes"), rank.get("kv_pool_bytes"))
    return _bar(f"rank {rank.get('rank')}", total, known, rank.get("outside_budget_bytes"), rank.get("budget_bytes"))


def _of_budget(budget: Mapping[str, Any]) -> Bar | None:
    weights, pool, asked = (budget.get(name) for name in ("weights_bytes", "kv_cache_bytes", "requested_bytes"))
    if weights is None:
        weights = budget.get("consumed_bytes")
    other = _other(budget, weights, pool, asked)
    outside = budget.get("outside_budget_bytes")
    total = budget.get("total_bytes") or sum(value for value in (weights, other, pool, outside) if value and value > 0)
    if not total or (weights is None and pool is None):
        return None
    if outside is None and asked is not None and budget.get("total_bytes"):
        outside = total - asked
    label = budget.get("label") or ("an unnamed rank" if budget.get("rank") is None else f"rank {budget['rank']}")
    return replace(_bar(label, total, (weights, other, pool), outside, asked), whole=bool(budget.get("total_bytes")))


def _other(budget: Mapping[str, Any], weights: int | None, pool: int | None, asked: int | None) -> int | None:
    """What the budget leaves between weights and pool; without a budget, the terms that were reported, none of them twice."""
    if asked is not None and weights is not None and pool is not None:
        return int(max(0, asked - weights - pool))
    inside = ["activation_peak_bytes", "other_reserved_bytes"]
    inside += ["non_torch_bytes"] if budget.get("weights_bytes") is not None else []
    inside += ["graph_estimate_bytes"] if budget.get("graphs_inside_budget") else []
    terms = [budget[name] for name in inside if budget.get(name) is not None]
    return max(0, sum(terms)) if terms else None


def _bar(label: str, total: int, known: Sequence[int | None], outside: int | None, budget: int | None) -> Bar:
    kinds: tuple[Kind, ...] = ("weights", "other", "pool")
    parts = [Part(kind, max(0, value)) for kind, value in zip(kinds, known, strict=True) if value is not None]
    pool = known[2]
    taken = sum(part.bytes for part in parts)
    if None in known:
        rest = max(0, total - taken - max(0, outside or 0))
        parts.append(Part("unknown", rest))
    spare = total - sum(part.bytes for part in parts)
    parts += [Part("outside", spare)] if spare > 0 else []
    return Bar(label, total, tuple(part for part in parts if part.bytes), budget, max(0, -(pool or 0)))


def _merged(bars: Sequence[Bar]) -> Iterator[Bar]:
    """Neighbouring ranks with the same figures share one bar."""
    start = 0
    for end in range(1, len(bars) + 1):
        if end < len(bars) and replace(bars[end], label="") == replace(bars[start], label=""):
            continue
        alike = bars[start:end]
        yield alike[0] if len(alike) == 1 else replace(alike[0], label=_joined([bar.label for bar in alike]))
        start = end


def _joined(labels: Sequence[str]) -> str:
    """rank 0 … rank 3 -> ranks 0 to 3; Worker_TP0, Worker_TP1, Worker_TP3 -> Worker_TP0, 1, 3; of labels of several kinds the first."""
    found = [re.fullmatch(r"(.*\D)(\d+)", label) for label in labels]
    stems = {one[1] for one in found if one}
    if None in found or len(stems) > 1:
        return f"{labels[0]} and {len(labels) - 1} more"
    stem = stems.pop()
    numbers = sorted(int(one[2]) for one in found if one)
    return ("ranks " if stem == "rank " else stem) + ", ".join(runs(numbers, " to ", least=2 if len(numbers) == 2 else 3))
