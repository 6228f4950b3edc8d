"""Which lines of a paste are a person's own words."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from bot.domain.evidence import LogLine
from bot.rulebook.book import Rulebook, texts
from bot.rulebook.patterns import quick

if TYPE_CHECKING:
    import regex

    Pattern = re.Pattern[str] | regex.Pattern[str]

LONGEST = 4000
_SENTENCE = re.compile(r"[A-Za-z']{2,} [A-Za-z'`(]")


def is_unsigned(line: LogLine) -> bool:
    """Did no engine sign the line? A person may have written it."""
    return not (line.level or line.file or line.speaker.role != "unknown" or len(line.text) > LONGEST)


def is_talk(book: Rulebook, line: LogLine) -> bool:
    """Does the line hold a person's words? Two at least, or another script than Latin; what a program prints is none."""
    return is_unsigned(line) and _holds_words(book, line.text)


class Talking:
    """Which lines of a text are talk; each text is looked at once."""

    def __init__(self, book: Rulebook) -> None:
        self._book = book
        self._known: dict[str, bool] = {}

    def __contains__(self, line: LogLine) -> bool:
        if line.level or line.file or not is_unsigned(line):  # most lines of a log end here
            return False
        known = self._known.get(line.text)
        if known is None:
            known = self._known[line.text] = _holds_words(self._book, line.text)
        return known


def _holds_words(book: Rulebook, text: str) -> bool:
    if text.isascii() and _SENTENCE.search(text) is None:
        return False
    anywhere, anchored = _unspoken(book)
    if anywhere.match(text) is not None:
        return False
    for anchor, pattern in anchored:  # noqa: SIM110  every line is asked, and any() takes twice the time
        if anchor in text and pattern.match(text) is not None:
            return False
    return True


@lru_cache(maxsize=4)
def _unspoken(book: Rulebook) -> "tuple[Pattern, Sequence[tuple[str, Pattern]]]":
    """What is tried on every line, and what only where its anchor stands."""
    anywhere = "|".join(f"(?:{rule.pattern})" for rule in book.unspoken if not rule.anchor) or "(?!)"
    return quick(anywhere), [(anchor, quick(rule.pattern)) for rule in book.unspoken for anchor in texts(rule.anchor)]
