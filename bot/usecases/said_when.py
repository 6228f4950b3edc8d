"""Words count by when they were said: chat may deliver one minutes after a later one."""

from collections.abc import Sequence

from bot.domain.incident import ABOUT_THE_RANK, Contribution


def in_order_said(contributions: Sequence[Contribution]) -> list[Contribution]:
    """The same, each outcome and each word on the rank before all that was said after it. Logs stay: their numbers are quoted."""
    ordered: list[Contribution] = []
    for one in contributions:
        later = (place for place, other in enumerate(ordered) if _is_word(one) and said_after(other, one))
        ordered.insert(next(later, len(ordered)), one)
    return ordered


def said_after(other: Contribution, one: Contribution) -> bool:
    """Only of two messages: their moments are of one clock."""
    return bool(one.message and other.message and one.at and other.at and other.at > one.at)


def _is_word(one: Contribution) -> bool:
    name = (one.text or "").partition("=")[0].strip()
    return one.kind == "outcome" or (one.kind == "answer" and name in ABOUT_THE_RANK)
