"""Which lines of a paste are a person's own words."""

import re
from collections.abc import Sequence
from functools import lru_cache

import regex

from bot.domain.evidence import LogLine
from bot.rulebook.book import Rulebook, texts
from bot.rulebook.patterns import compiled, quick

Pattern = re.Pattern[str] | regex.Pattern[str]
LONGEST = 4000
_LOOK, _REMEMBERED = 3, 20_000
_SENTENCE = re.compile(r"\ (?<=[A-Za-z']{2}\ )[A-Za-z'`(]")
"""Two words side by side: a pattern that begins with plain text is found by that text."""
_TITLE = re.compile(r"\W{0,3}\[(?:Bug|Usage|Question|Help|Issue)\]")
"""How the title of a report begins: `[Bug]: Mixtral 8x7B crash`."""


def is_unsigned(line: LogLine) -> bool:
    """Did no engine sign the line? A person may have written it."""
    return not (line.level or line.file or line.speaker.role != "unknown" or len(line.text) > LONGEST)


def is_talk(book: Rulebook, line: LogLine) -> bool:
    """Does the line hold a person's words? Two at least, or another script than Latin; what a program prints is none."""
    return line in Talking(book)


class Talking:
    """The lines that hold a person's words; texts that are alike are looked at once."""

    def __init__(self, book: Rulebook) -> None:
        self._printed = _printed(book)
        self._known: dict[str, bool] = {}

    def __contains__(self, line: object) -> bool:
        if not isinstance(line, LogLine) or line.level or not _is_said(line.text) or not is_unsigned(line):
            return False  # most lines of a log
        known = self._known.get(line.text)
        if known is None:
            known = self._known[line.text] = not self._printed.by_program(line.text)
        return known


def _is_said(text: str) -> bool:
    return not text.isascii() or _SENTENCE.search(text) is not None or ("[" in text[:4] and _TITLE.match(text) is not None)


class _Printed:
    """What only a program prints, by how it begins: of most texts the first letters show that they begin otherwise."""

    def __init__(self, book: Rulebook) -> None:
        self._rules = [(texts(rule.anchor) or [""], rule.pattern) for rule in book.unspoken]
        self._by_start: dict[str, Sequence[tuple[Sequence[str], Pattern]]] = {}

    def by_program(self, text: str) -> bool:
        rules = self._by_start.get(text[:_LOOK])
        if rules is None:
            rules = self._starting(text[:_LOOK])
        for anchors, pattern in rules:
            for anchor in anchors:
                if anchor in text:
                    if pattern.match(text) is not None:
                        return True
                    break
        return False

    def _starting(self, start: str) -> Sequence[tuple[Sequence[str], Pattern]]:
        if len(self._by_start) >= _REMEMBERED:
            self._by_start.clear()
        found = [(anchors, quick(pattern)) for anchors, pattern in self._rules if compiled(pattern).match(start, partial=True) is not None]
        return self._by_start.setdefault(start, found)


@lru_cache(maxsize=4)
def _printed(book: Rulebook) -> _Printed:
    return _Printed(book)
