"""Wraps undone: a terminal broke long lines at one width, also inside words, or a chat broke them between words."""

import re
from collections.abc import Sequence
from typing import NamedTuple

NARROWEST, WIDEST, FEWEST = 50, 400, 3
USUAL = frozenset({80, 90, 96, 100, 110, 120, 128, 132, 140, 150, 160, 180, 200})
"""Widths of terminals and of what wraps for them: there one line is enough."""
LONGEST_WORD = 60
_NEW_RECORD = re.compile(
    r"""\s{0,12}(?:File\ ["~/]|Traceback\ |During\ handling|The\ above\ exception|\([A-Za-z]\w*\ pid=|\[rank\d|\[\.\.\.
    |(?:INFO|ERROR|WARNING|DEBUG|CRITICAL)\b|[\w.]*(?:Error|Exception)(?::|\(|$)|\$\ |\#\ |[-*•]\ |\d+\.\ |\|)|\s{4}|[~^\s]+$""",
    re.VERBOSE,
)
_OPEN_FRAME = re.compile(r'\bFile "[^"]*$|\bFile "[^"]*", line \d*,?(?: in)?\s*$|\bFile "[^"]*", lin?e?\s*$|\bFile$')


class Wrap(NamedTuple):
    """How the text was wrapped: `width` in characters, 0 when it was not; `words` when only between words."""

    width: int = 0
    words: bool = False

    def broke(self, width: int, continuation: str) -> bool:
        """Was a line of this width broken before this continuation?"""
        if not self.width:
            return False
        if not self.words:
            return width == self.width
        return width <= self.width < width + 1 + min(len(continuation.split(" ", 1)[0]), LONGEST_WORD)


def wrap_of(widths: Sequence[int], texts: Sequence[str], bare: Sequence[bool], signed_before: Sequence[bool]) -> Wrap:
    """The wrap that the lines show; per line its width, its text, whether it is unsigned, and whether an engine signed the one before.

    Hard: at least three lines (one at a usual width) have exactly the greatest width and go on unsigned.
    Between words: nearly every unsigned line after a signed one starts with a word that had no room there.
    """
    going = [n for n in range(1, len(widths)) if bare[n] and texts[n].strip() and NARROWEST <= widths[n - 1] <= WIDEST]
    candidates = sorted({widths[n - 1] for n in going}, reverse=True)[:5]
    for width in candidates:
        hard = sum(widths[n - 1] == width for n in going)
        soft = Wrap(width, words=True)
        if sum(w > width for w in widths) * 4 > hard:
            continue
        after = [n for n in going if signed_before[n] and not texts[n][:1].isspace()]
        room = [n for n in after if soft.broke(widths[n - 1], texts[n])]
        exact = sum(widths[n - 1] == width for n in after)
        if len(room) >= FEWEST and len(room) >= 0.9 * len(after) and exact * 2 < len(room):
            return soft
        if hard >= FEWEST or width in USUAL:
            exactly = sum(w == width for w in widths)
            return Wrap(width) if hard * 2 >= exactly else Wrap()
    return Wrap()


def goes_on(text: str, continuation: str) -> bool:
    """Is this the rest of a line that was broken, rather than a record of its own?"""
    return bool(_OPEN_FRAME.search(text[-600:])) or not _NEW_RECORD.match(continuation)
