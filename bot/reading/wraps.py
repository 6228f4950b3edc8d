"""Wraps undone: a terminal broke long lines at one width, also inside words, or a chat broke them between words."""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

NARROWEST, WIDEST, FEWEST = 50, 400, 3
USUAL = frozenset({80, 100, 120, 132})
"""Widths of terminals and of what wraps for them: there one line is enough."""
LONGEST_WORD = 60
_NEW_RECORD = re.compile(
    r"""\s{0,12}(?:File\ ["~/]|Traceback\ |During\ handling|The\ above\ exception|\([A-Za-z]\w*\ pid=|\[rank\d|\[\.\.\.
    |(?:INFO|ERROR|WARNING|DEBUG|CRITICAL)\b|(?:[a-z_]\w*\.){0,4}[A-Z]\w*(?:Error|Exception)(?::|\(|$)
    |\$\ |\#\ |[-*•]\ |\d+\.\ |\|)|\s{4}|[~^\s]+$""",
    re.VERBOSE,
)
_NEW_SIGNED = re.compile(r'\s{0,12}(?:File ["~/]|Traceback |\([A-Za-z]\w* pid=|\[rank\d|(?:INFO|ERROR|WARNING|DEBUG|CRITICAL) \d)')
_HALF = re.compile(
    r'F(?<=\bF)ile(?: "(?P<tight>[^"]*)| "[^"]*",(?: line(?: \d+,)?)?(?: in)?\s*|\s*)$'
    r"|E(?<=[a-z]E)(?:rror|xception):(?: \w+){0,3}\s*$"
)
"""Each form begins with a letter, so that the others are passed quickly."""
_SENTENCES = re.compile(r"out of memory|Tried to allocate|total capacity|is free|No available memory|To serve at least")


class Wrap(NamedTuple):
    """How the text was wrapped: `width` in characters, 0 when it was not; `words` when only between words; `sure` by several lines."""

    width: int = 0
    words: bool = False
    sure: bool = False

    def broke(self, width: int, continuation: str) -> bool:
        """Was a line of this width broken before this continuation?"""
        if not self.words:
            return width == self.width
        return width <= self.width < width + 1 + min(len(continuation.split(" ", 1)[0]), LONGEST_WORD)


def wrap_of(widths: Sequence[int], texts: Sequence[str], bare: Sequence[bool], carried: Sequence[bool]) -> Wrap:
    """The wrap that the lines show; per line its width, its text, whether no engine signed it, and whether a container or chat did.

    Hard: at least three lines (one at a usual width) have exactly the greatest width and go on unsigned.
    Between words: nearly every unsigned line after a signed one starts with a word that had no room there.
    """
    going = [n for n in range(1, len(widths)) if bare[n] and NARROWEST <= widths[n - 1] <= WIDEST and texts[n].strip()]
    ends, every = Counter(widths[n - 1] for n in going), sorted(widths)
    for width in sorted(ends, reverse=True)[:5]:
        hard = ends[width]
        below = bisect_right(every, width)
        if (len(every) - below) * 4 > hard:
            continue
        soft = Wrap(width, words=True)
        after = [n for n in going if not bare[n - 1] and not texts[n][:1].isspace()]
        room = [n for n in after if soft.broke(widths[n - 1], texts[n])]
        exact = sum(widths[n - 1] == width for n in after)
        if len(room) >= FEWEST and len(room) >= 0.9 * len(after) and exact * 2 < len(room):
            return soft
        if hard >= FEWEST or (width in USUAL and not any(carried)):
            exactly = below - bisect_left(every, width)
            return Wrap(width, sure=hard >= FEWEST) if hard * 2 >= exactly else Wrap()
    return Wrap()


def _rows(text: str, continuation: str) -> bool:
    """Is it a row of a table with edges, such as nvidia-smi's? Its rows are as wide as each other and not wrapped."""
    edges = ("|", "+")
    return text.endswith(edges) and (continuation.startswith(edges) or text.startswith(edges))


def may_stop(text: str) -> bool:
    """May the line be a frame or an exception that stops half way?"""
    return "File" in text or "Error:" in text or "Exception:" in text


def joint(text: str, continuation: str, wrap: Wrap, width: int) -> str | None:
    """What stood between a line of this width and the unsigned line after it: nothing, a space, or None when each stands for itself.

    A frame or an exception that plainly stops half way goes on at any width.
    """
    broken = wrap.width and wrap.broke(width, continuation) and not text.endswith(("╮", "╯")) and not _rows(text, continuation)
    half = _HALF.search(text[-600:]) if may_stop(text) else None
    if not broken and half is None:
        return None
    new = bool((_NEW_SIGNED if wrap.sure and not wrap.words else _NEW_RECORD).match(continuation))
    if broken and (not new or not text.strip()):
        return " " if wrap.words else ""
    if half is not None and half["tight"] is not None:
        return ""
    if half is not None and not new:
        seam = text[-24:] + continuation[:24]
        whole = _SENTENCES.search(text[-24:]) or _SENTENCES.search(continuation[:24])
        return "" if _SENTENCES.search(seam) and not whole else " "
    return None
