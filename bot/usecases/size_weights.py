"""Weights per rank: what the question gives, else what config.json implies."""

from collections.abc import Sequence

from bot.usecases.size_question import Asked, integer, per_rank


def weights_of(asked: Asked) -> tuple[Sequence[int] | None, list[str]]:
    """(bytes of parameters and buffers per rank, or None; what was assumed)."""
    ranks = asked.grid.ranks
    given = per_rank(asked.arguments, "weights_bytes", ranks)
    if given is not None:
        return given, []
    whole = integer(asked.arguments, "checkpoint_bytes")
    if whole is not None:
        return [whole // ranks] * ranks, [f"weights split evenly over {ranks} ranks"]
    return None, []
