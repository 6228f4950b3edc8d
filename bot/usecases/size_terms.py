"""The terms of the budget beside weights and pool: what the question gives, and what is estimated where it gives nothing."""

from dataclasses import dataclass

from bot.usecases.size_question import Asked, integer


@dataclass(frozen=True, slots=True)
class Term:
    """Bytes per rank inside the budget, and how they are known. `low` and `high` when it is an estimate."""

    name: str
    bytes: int
    basis: str
    low: int | None = None
    high: int | None = None


def other_terms(asked: Asked) -> tuple[Term, ...]:
    """All other consumption inside the budget; empty when nothing is known. --other-bytes overrides every estimate."""
    given = integer(asked.arguments, "other_bytes")
    return () if given is None else (Term("other", given, "given"),)
