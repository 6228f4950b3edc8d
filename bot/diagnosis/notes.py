"""What a reader should know about the figures: how the version is known, whose they are, and what does not add up."""

from collections.abc import Iterator, Sequence

from bot.domain.diagnosis import ReportedBudget
from bot.domain.evidence import Evidence
from bot.domain.rank import Rank
from bot.domain.size import gib

MOST_REASONS = 2
"""The last steps took the most away."""


def notes_of(evidence: Evidence, budgets: Sequence[ReportedBudget], rank: Rank | None) -> tuple[str, ...]:
    """A sentence each, the most useful first."""
    return (*_version(evidence), *_borrowed(budgets, rank), *_unclosed(budgets))


def _version(evidence: Evidence) -> Iterator[str]:
    if evidence.engine_version_range and evidence.version_because:
        reasons = "; ".join(evidence.version_because[-MOST_REASONS:])
        yield f"No version is printed. It is vLLM {evidence.engine_version_range.replace(',', ', ')} by what the log says ({reasons})."


def _borrowed(budgets: Sequence[ReportedBudget], rank: Rank | None) -> Iterator[str]:
    failing = next((b for b in budgets if rank is not None and rank.number is not None and b.rank == rank.number), None)
    if failing is not None and failing.reported_by_rank is not None and failing.reported_by_rank != failing.rank:
        yield (
            f"Only rank {failing.reported_by_rank} printed a memory report, as this version does: its figures need not be those of "
            f"rank {failing.rank}."
        )


def _unclosed(budgets: Sequence[ReportedBudget]) -> Iterator[str]:
    for row in budgets:
        who = f"rank {row.rank}" if row.rank is not None else row.label
        if row.closes is False and row.residual_bytes is not None:
            side = "are in no reported term" if row.residual_bytes > 0 else "are reported twice or beyond the budget"
            yield f"The terms that {who} reports do not add up to its budget: {gib(abs(row.residual_bytes))} {side}."
        elif row.closes is None and row.residual_bytes is not None and "graph_estimate_bytes" in row.missing:
            yield (
                f"{gib(row.residual_bytes)} of the budget of {who} are in no reported term: this version takes an estimate for CUDA graphs "
                "out of the budget, and that line (Estimated CUDA graph memory) is not in the paste."
            )
