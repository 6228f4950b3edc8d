"""Which of several workers failed first where their lines do not stand in the order of their stamps, as in joined logs of pods."""

import re
from collections.abc import Sequence
from datetime import datetime

from bot.domain.evidence import Fact

_STAMP = re.compile(r"(?:(\d{4})-)?(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)")
ONE_FAILURE = 600
"""Seconds within which the workers of one engine fail; a stamp from further back is another run's."""


def earlier_by_the_clock(first: Fact, others: Sequence[Fact]) -> Fact:
    """The failure of another worker whose stamp is earlier by a second at least, or `first`, the earliest by line.

    Only where both carry a date of the same form and no machine of its own: clocks of two machines say nothing of an order. An engine
    core only repeats what a worker logged in the same second or before, also where each stands in a paste of its own.
    """
    if "allocation-failed" not in first.kinds or (mine := _moment(first.at)) is None:
        return first
    least = 0 if first.speaker.role == "engine-core" else 1
    earlier = [(lead, f) for f in others if (lead := _lead(mine, f, first)) is not None and least <= lead <= ONE_FAILURE]
    return max(earlier, key=lambda one: one[0])[1] if earlier else first


def _lead(mine: tuple[bool, datetime], other: Fact, first: Fact) -> float | None:
    """By how many seconds the other failed before."""
    theirs = _moment(other.at)
    signed = bool(first.speaker.key and other.speaker.key) and first.speaker.key != other.speaker.key
    if theirs is None or theirs[0] != mine[0] or not signed or "allocation-failed" not in other.kinds:
        return None
    repeated = first.speaker.role == "engine-core" and other.speaker.role == "worker"
    if (other.source != first.source and not repeated) or other.speaker.ip != first.speaker.ip:
        return None
    return (mine[1] - theirs[1]).total_seconds()


def seconds_between(earlier: str | None, later: str | None) -> float | None:
    """Of two stamps of one form; None where one is missing or of another form."""
    began, ended = _moment(earlier), _moment(later)
    return None if began is None or ended is None or began[0] != ended[0] else (ended[1] - began[1]).total_seconds()


def _moment(stamp: str | None) -> tuple[bool, datetime] | None:
    """(is the year printed, when); without a year, in a leap year, so that each day exists."""
    read = _STAMP.match(stamp or "")
    if read is None:
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in read.groups())
    try:
        return bool(year), datetime(year or 2000, month, day, hour, minute, second)
    except ValueError:
        return None
