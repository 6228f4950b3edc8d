"""One failure that stands twice: as the end of a log, or in a few words, and in the log that shows it whole, which counts."""

from collections.abc import Collection, Sequence

from bot.domain.diagnosis import ERROR_KINDS
from bot.domain.evidence import Evidence, Fact

BARE = ("torch.oom-bare", "cuda.oom")
"""What people write too."""
_KINDS = frozenset(ERROR_KINDS) - {"host_kill"}  # who is killed and who tells of it are two lines of one log


def is_headline(fact: Fact, candidates: Sequence[Fact], logged: Collection[tuple[int, int]]) -> bool:
    """Does a line that nothing signs stand alone above the log that shows the same failure with its figures or its worker?

    `logged`: (source, line) of what a program printed.
    """
    if fact.speaker.label or fact.at or any(source == fact.source and line <= fact.line for source, line in logged):
        return False
    if fact.id in BARE and _shown_below(fact, candidates, logged):
        return True
    below = (f for f in candidates if f.source == fact.source and f.line > fact.line)
    return bool(fact.fields) and any(_shows_more(f, fact) and _fullness(f)[:2] > _fullness(fact)[:2] for f in below)


def where_it_is_whole(first: Fact, candidates: Sequence[Fact]) -> Fact:
    """The first failure of the paste that shows this one with more of it, whichever paste came first; this one where none does."""
    seen = {first.source}
    while more := [f for f in candidates if f.source not in seen and _shows_more(f, first)]:
        source = max(more, key=_fullness).source
        seen.add(source)
        first = min((f for f in candidates if f.source == source), key=lambda f: f.order)
    return first


def logged(evidence: Evidence) -> Collection[tuple[int, int]]:
    """(source, line) of what a program printed: the first line of each who signs, frames."""
    signed = {(line.source, line.number) for line in evidence.speakers if line.signed or line.speaker.label}
    return signed | {(frame.source, frame.line) for frame in evidence.frames}


def _shown_below(fact: Fact, candidates: Sequence[Fact], logged: Collection[tuple[int, int]]) -> bool:
    """Does a log stand below that shows an allocation that failed with its figures or its worker?"""
    place = (fact.source, fact.line)
    return any(
        (f.source, f.line) > place
        and "allocation-failed" in f.kinds
        and ("without-figures" not in f.kinds or f.speaker.role == "worker")
        and any(place < one <= (f.source, f.line) for one in logged)
        for f in candidates
    )


def _shows_more(other: Fact, fact: Fact) -> bool:
    """Is it of the same failure, as far as the fact tells, and tells who failed, more figures, or what stands above it?"""
    if not fact.kinds & other.kinds & _KINDS or not fact.fields.items() <= other.fields.items():
        return False
    if fact.at and other.at and fact.at != other.at:
        return False
    unsigned = not fact.speaker.label or (fact.speaker.role == "engine-core" and other.speaker.role == "worker")
    return (unsigned or fact.speaker.key == other.speaker.key) and _fullness(other) > _fullness(fact)


def _fullness(fact: Fact) -> tuple[bool, int, int]:
    return fact.speaker.role == "worker", len(fact.fields), fact.line
