"""What a pattern cannot match without: the words of its alternatives, so that a long pattern is run only where its words stand."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from bot.rulebook.patterns import expanded

SHORTEST = 3
"""Letters of a word that is worth looking for; of another script than Latin, one is."""
_TOKEN = re.compile(
    r"""(?P<blank>\s+|\#[^\n]*)|(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<flags>\(\?[a-zA-Z]+\))|(?P<look>\(\?<?[=!])
    |(?P<open>\((?:\?(?:P<\w+>|[a-zA-Z]*:))?)|(?P<close>\))|(?P<bar>\|)|(?P<times>(?:[?*+]|\{\d*(?:,\d*)?\})[?+]?)
    |\\(?P<kind>x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|[A-Za-z0-9])|\\?(?P<letter>.)""",
    re.VERBOSE | re.DOTALL,
)
_BEYOND = re.compile(r"\(\?(?:[(>|&R]|P[=>])|\[\[")
"""What is not read here: a pattern with it stays whole and needs nothing."""


class Alternative(NamedTuple):
    """One alternative of a pattern, as a pattern of its own. Of each set in `needs`, one word (lower case) stands in what it matches."""

    pattern: str
    needs: tuple[frozenset[str], ...]


@lru_cache(maxsize=1024)
def alternatives_of(pattern: str) -> Sequence[Alternative]:
    """The alternatives of a rule's pattern: it matches where one of them does."""
    whole = expanded(pattern)
    if _BEYOND.search(whole):
        return (Alternative(whole, ()),)
    flags = match[0] if (match := re.match(r"\(\?[a-z]+\)", whole)) else ""
    return tuple(Alternative(flags + whole[start:end], tuple(needs)) for start, end, needs in _Reader(whole).alternatives())


class _Reader:
    """Goes through the parts of a pattern once."""

    def __init__(self, pattern: str) -> None:
        self._parts = [part for part in _TOKEN.finditer(pattern) if not part["blank"] and not part["flags"]]
        self._end = len(pattern)
        self._at = 0

    def alternatives(self) -> list[tuple[int, int, list[frozenset[str]]]]:
        """Begin, end and needs of each, up to the end of their group."""
        found = []
        while True:
            begin = self._place()
            needs = self._needs()
            found.append((begin, self._place(), needs))
            if self._at >= len(self._parts) or self._parts[self._at]["close"]:
                return found
            self._at += 1  # the bar

    def _place(self) -> int:
        return self._parts[self._at].start() if self._at < len(self._parts) else self._end

    def _needs(self) -> list[frozenset[str]]:
        """What one alternative needs."""
        needs: list[frozenset[str]] = []
        word = ""
        while self._at < len(self._parts) and not ((part := self._parts[self._at])["close"] or part["bar"]):
            self._at += 1
            inner = self._group() if part["open"] or part["look"] else []
            times = self._times()
            optional = times[:1] in ("?", "*") or times[:2] in ("{0", "{,")
            letter = part["letter"] or ""
            if letter == "_" or letter.isalnum():
                word += "" if optional else letter
                if not times:
                    continue
            needs += _worth(word)
            word = ""
            needs += inner if part["open"] and not optional else []
        return needs + _worth(word)

    def _group(self) -> list[frozenset[str]]:
        """What a group needs: of several alternatives, the most telling set of each, together; nothing where one needs nothing."""
        each = [needs for _, _, needs in self.alternatives()]
        self._at += 1  # the bracket
        if len(each) == 1:
            return each[0]
        return [frozenset[str]().union(*(max(needs, key=telling) for needs in each))] if all(each) else []

    def _times(self) -> str:
        """How often the part just read may stand, as written; nothing where it stands once."""
        if self._at < len(self._parts) and (times := self._parts[self._at]["times"]):
            self._at += 1
            return str(times)
        return ""


def _worth(word: str) -> list[frozenset[str]]:
    return [frozenset({word.lower()})] if word and (len(word) >= SHORTEST or not word.isascii()) else []


def telling(words: frozenset[str]) -> int:
    """How much it says that one of these words stands somewhere: the letters of the shortest."""
    return min(map(len, words))
