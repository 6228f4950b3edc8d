"""A text as the words of people are looked for in it, and where each of its letters stands in the text as given."""

import re
from bisect import bisect_left, bisect_right
from itertools import accumulate

from bot.rulebook.book import written

_FLAG = re.compile(r"-(?<![\w-]-)-?(?!enforce[-_]eager)[A-Za-z][\w-]*")
_MARK = re.compile(r"[_=:](?:(?<=[_=])|//)")
_NAME = re.compile(r"\b(?:[A-Z][A-Z0-9]*_[A-Z0-9_]+\b|https?://\S+|test_\w+|(?!enforce_eager|eager_mode)\w+(?==))")
"""A flag; an environment variable, an address, an argument: no words of a sentence. Each of the latter holds a mark."""
_BLANK = re.compile(r"\s")
_QUOTES = (("‘", "'"), ("’", "'"), ("ʼ", "'"), ("\u00a0", " "))
"""How a phone writes an apostrophe, and a space that does not break."""
_EMPHASIS = re.compile(r"[*`][*`]*")
_WIDE = re.compile(r"[^\S\n][^\S\n]+")
"""Both begin with a class of letters, by which the others are passed quickly."""


class Plain:
    """A text in small letters, a hyphen or underscore within a word as a space, emphasis and further spaces left out."""

    def __init__(self, text: str) -> None:
        small = _small(_without_names(text))
        noise = [found.span() for found in _EMPHASIS.finditer(small)]
        noise = sorted(noise + [(found.start() + 1, found.end()) for found in _WIDE.finditer(small)])
        self._begins = [start for start, _ in noise]
        self._left_out = [0, *accumulate(end - start for start, end in noise)]
        self._ends = [start - left_out for start, left_out in zip(self._begins, self._left_out, strict=False)]
        ends = [0, *(end for _, end in noise)]
        kept = [small[end:start] for end, start in zip(ends, [*self._begins, len(small)], strict=True)]
        self.text = written("".join(kept))

    def given(self, at: int) -> int:
        """Where in the text as given a place of this one stands."""
        return at + self._left_out[bisect_right(self._ends, at)]

    def place(self, given: int) -> int:
        """Where in this text a place of the text as given stands, which is none of what was left out."""
        return given - self._left_out[bisect_left(self._begins, given)]


def _small(text: str) -> str:
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
        if mark.start() < at:
            continue
        start = max(text.rfind(" ", at, mark.start()), text.rfind("\n", at, mark.start()), at - 1) + 1
        blank = _BLANK.search(text, mark.end())
        end = blank.start() if blank is not None else len(text)
        pieces += (text[at:start], _NAME.sub(_blotted, text[start:end]))
        at = end
    return "".join([*pieces, text[at:]])


def _blotted(name: "re.Match[str]") -> str:
    return "\0" * len(name[0])
