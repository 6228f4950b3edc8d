"""A text as the words of people are looked for in it, and where each of its letters stands in the text as given."""

import re
from bisect import bisect_left, bisect_right
from itertools import accumulate

from bot.rulebook.book import written

_FLAG = re.compile(r"-(?<![\w-]-)-?(?!enforce[-_]eager)[A-Za-z][\w-]*")
_MARK = re.compile(r"[_=:](?:(?<=[_=])|//)\S*")
_NAME = re.compile(
    r"\b(?:(?!\w*(?:OUT_OF_MEMORY|ALLOC_FAILED))[A-Z][A-Z0-9]*_[A-Z0-9_]+\b|https?://\S+|test_\w+|(?!enforce_eager|eager_mode)\w+(?==))"
)
"""A flag; what holds a mark, up to the next blank; an environment variable (not a driver's name for a shortage), an address, an argument
in it: no words of a sentence.
"""
_QUOTES = (("‘", "'"), ("’", "'"), ("ʼ", "'"), ("\u00a0", " "))
"""How a phone writes an apostrophe, and a space that does not break."""
_EMPHASIS = re.compile(r"[*`][*`]*")
_WIDE, _SPACES = re.compile(r"[^\S\n][^\S\n]+"), re.compile(r"\ \ +")
"""Further spaces; the same where nothing else is blank, which is found four times as quickly."""
_BLANKS = "\t\r\x0b\x0c\x1c\x1d\x1e\x1f"


class Plain:
    """A text in small letters, a hyphen or underscore within a word as a space, emphasis and further spaces left out."""

    def __init__(self, text: str) -> None:
        letters = small(_without_names(text))
        noise = [found.span() for found in _EMPHASIS.finditer(letters)] if "*" in letters or "`" in letters else []
        wide = _SPACES if letters.isascii() and not any(blank in letters for blank in _BLANKS) else _WIDE
        noise = sorted(noise + [(found.start() + 1, found.end()) for found in wide.finditer(letters)])
        self._begins = [start for start, _ in noise]
        self._left_out = [0, *accumulate(end - start for start, end in noise)]
        self._ends = [start - left_out for start, left_out in zip(self._begins, self._left_out, strict=False)]
        ends = [0, *(end for _, end in noise)]
        kept = [letters[end:start] for end, start in zip(ends, [*self._begins, len(letters)], strict=True)]
        self.text = written("".join(kept))

    def given(self, at: int) -> int:
        """Where in the text as given a place of this one stands."""
        return at + self._left_out[bisect_right(self._ends, at)]

    def place(self, given: int) -> int:
        """Where in this text a place of the text as given stands, which is none of what was left out."""
        return given - self._left_out[bisect_left(self._begins, given)]


def small(text: str) -> str:
    """The text in small letters, each in its place."""
    lower = text.lower()
    return lower if len(lower) == len(text) else "".join(sign.lower()[:1] or " " for sign in text)


def _without_names(text: str) -> str:
    """The text with flags, variables and addresses blotted out, each letter in its place."""
    for sign, plain in _QUOTES:
        text = text.replace(sign, plain)
    text = _FLAG.sub(_blotted, text)
    pieces: list[str] = []
    at = 0
    for mark in _MARK.finditer(text):
        start = max(text.rfind(" ", at, mark.start()), text.rfind("\n", at, mark.start()), at - 1) + 1
        word = text[start : mark.end()]
        named = "=" in word or "test_" in word or "://" in word or not word.islower()
        pieces += (text[at:start], _NAME.sub(_blotted, word) if named else word)
        at = mark.end()
    return "".join([*pieces, text[at:]])


def _blotted(name: "re.Match[str]") -> str:
    return "\0" * len(name[0])
