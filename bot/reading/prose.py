"""Which lines of a paste are a person's own words."""

import re
from functools import lru_cache

from bot.domain.evidence import LogLine
from bot.rulebook.book import Rulebook
from bot.rulebook.patterns import quick

LONGEST = 4000
_SENTENCE = re.compile(r"[A-Za-z']{2,} [A-Za-z'`(]")


def is_unsigned(line: LogLine) -> bool:
    """Did no engine sign the line? A person may have written it."""
    return not (line.level or line.file or line.speaker.role != "unknown" or len(line.text) > LONGEST)


def is_talk(book: Rulebook, line: LogLine) -> bool:
    """Does the line hold a person's words? Two at least, or another script than Latin; what a program prints is none."""
    if not is_unsigned(line) or (line.text.isascii() and _SENTENCE.search(line.text) is None):
        return False
    return _unspoken(book).match(line.text) is None


@lru_cache(maxsize=4)
def _unspoken(book: Rulebook) -> "re.Pattern[str]":
    return quick("|".join(f"(?:{rule.pattern})" for rule in book.unspoken) or "(?!)")  # type: ignore[return-value]
