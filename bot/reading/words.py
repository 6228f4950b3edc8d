"""The words of people's sentences that rules/words.toml knows, found in a text all at once."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import ahocorasick_rs

from bot.rulebook.book import Rulebook, written

_WHOLE = re.compile(
    r"""(?<![\w-])-{1,2}(?!enforce[-_]eager)[A-Za-z][\w-]*
    |\b(?=\w+(?:[_=]|://))(?:[A-Z][A-Z0-9]*_[A-Z0-9_]+\b|https?://\S+|test_\w+|(?!enforce_eager|eager_mode)\w+(?==))""",
    re.VERBOSE,
)
"""A flag, an environment variable, an address: no words of a sentence."""
_QUOTES = str.maketrans("‘’ʼ\u00a0", "''' ")
"""How a phone writes an apostrophe, and a space that does not break."""
_NOISE = re.compile(r"[*`]+|(?<=[^\S\n])[^\S\n]+")
_LETTER = re.compile(r"[a-z0-9à-ÿ]")
LETTERS = _LETTER.pattern + "*"
BETWEEN = r"(?:[^\s.;!?,]+\ ){0,4}?"
"""Up to four words, where a word of the file has `…`."""


class Mention(NamedTuple):
    """A word in a text: where it stands, what it means, and the id of the moment it names. `telling`: nobody says it of anything else.

    `joined`: it brings its joining word along (`at runtime`).
    """

    start: int
    end: int
    means: str
    moment: str = ""
    telling: bool = False
    joined: bool = False


class _Word(NamedTuple):
    said: str
    means: str
    moment: str
    telling: bool
    joined: bool


class Plain:
    """A text as its words are looked for: in small letters, a hyphen or underscore within a word as a space, emphasis left out."""

    def __init__(self, text: str) -> None:
        text = _WHOLE.sub(lambda whole: "\0" * len(whole[0]), text.translate(_QUOTES))
        small = text.lower() if len(text.lower()) == len(text) else "".join(sign.lower()[:1] or " " for sign in text)
        self._ends: list[int] = []
        self._left_out: list[int] = [0]
        parts: list[str] = []
        at = 0
        for noise in _NOISE.finditer(small):
            parts.append(small[at : noise.start()])
            at = noise.end()
            self._ends.append((self._ends[-1] if self._ends else 0) + len(parts[-1]))
            self._left_out.append(self._left_out[-1] + at - noise.start())
        self.text = written("".join([*parts, small[at:]]))

    def place(self, at: int) -> int:
        """Where in the text as given a place of this one stands."""
        return at + self._left_out[bisect_right(self._ends, at)]


class Words:
    """The rulebook's words behind one automaton of how they begin."""

    def __init__(self, book: Rulebook) -> None:
        begins: dict[str, list[_Word]] = {}
        joins = {said for word in book.words if word.means in ("while", "at", "after") for said in map(written, word.says)}
        for word in book.words:
            for said in map(written, word.says):
                begins.setdefault(_beginning(said), []).append(_Word(said, word.means, "", False, False))
        for moment in book.moments:
            for telling, several in ((True, moment.telling), (False, moment.says)):
                for said in map(written, several):
                    begins.setdefault(_beginning(said), []).append(_Word(said, "moment", moment.id, telling, said.split()[0] in joins))
        self._words = list(begins.values())
        self._automaton = ahocorasick_rs.AhoCorasick(list(begins))

    def mentions(self, text: str) -> list[Mention]:
        """Its words in the order of a plain text; of two that overlap, the longer one."""
        found = sorted(self._standing(text), key=lambda one: (one.start - one.end, one.start))
        taken: list[Mention] = []
        used = bytearray(len(text))
        for one in found:
            if not any(used[one.start : one.end]):
                used[one.start : one.end] = b"\1" * (one.end - one.start)
                taken.append(one)
        return sorted(taken)

    def _standing(self, text: str) -> Iterator[Mention]:
        for place, start, _ in self._automaton.find_matches_as_indexes(text, overlapping=True):
            for word in self._words[place]:
                if (match := _pattern(word.said).match(text, start)) is not None:
                    yield Mention(start, match.end(), word.means, word.moment, word.telling, word.joined)


def _beginning(said: str) -> str:
    return said.partition("…")[0].rstrip("* ")


@lru_cache(maxsize=4096)
def _pattern(said: str) -> "re.Pattern[str]":
    parts = [re.escape(part.strip()) for part in said.rstrip("*").split("…")]
    body = (r"\ " + BETWEEN).join(parts).replace(r"\*", LETTERS)
    before = rf"(?<!{_LETTER.pattern})" if _LETTER.match(said) else ""
    after = LETTERS if said.endswith("*") else rf"(?!{_LETTER.pattern})" if _LETTER.match(said[-1]) else ""
    return re.compile(before + body + after)


@lru_cache(maxsize=4)
def words_of(book: Rulebook) -> Words:
    """The words of a rulebook, prepared once."""
    return Words(book)
