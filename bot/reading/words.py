"""The words of people's sentences that rules/words.toml knows, found in a text all at once."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import ahocorasick_rs

from bot.rulebook.book import Rulebook, written

LETTER = "[a-z0-9à-ÿа-яё]"
LETTERS = f"{LETTER}*"
_LETTERS = frozenset(letter for letter in map(chr, range(0x460)) if re.fullmatch(LETTER, letter))
BETWEEN = r"(?:[^\s.;!?,]+(?:[.,]\d[^\s.;!?,]*)*\ ){0,4}?"
"""Up to four words or figures, where a word of the file has `…`."""


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

    def names(self) -> tuple[str, ...]:
        """What it is: its meaning, and of a moment which, and whether it is telling."""
        return (self.means, self.moment, *(("telling",) if self.telling else ()))


class Some(NamedTuple):
    """Some words' beginnings: of each what word may begin so (`Words.bits`), and whether it does not behind a letter, being one."""

    automaton: ahocorasick_rs.AhoCorasick
    held: Sequence[int]
    letters: Sequence[bool]

    def standing(self, text: str) -> list[tuple[int, int]]:
        """(where it ends, what word may begin so) of each that stands in a plain text, by where they end."""
        held, letters = self.held, self.letters
        found = self.automaton.find_matches_as_indexes(text, overlapping=True)
        return [(end, held[number]) for number, start, end in found if not letters[number] or text[start - 1 : start] not in _LETTERS]


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
        self.pairs = [(one, other, moment.id) for moment in book.moments for one, other in moment.pairs]
        """Two meanings or moments, and the moment that they name together."""
        self._words = [
            (begin[0] in _LETTERS, [(word, "…" not in word.said and "*" not in word.said, word.said[-1] in _LETTERS) for word in words])
            for begin, words in begins.items()
        ]
        """By the number of a beginning: whether it begins with a letter; its words, whether each is all of it and ends with a letter."""
        self._begins = list(begins)
        self._automaton = ahocorasick_rs.AhoCorasick(self._begins)
        self._bits: dict[str, int] = {}
        self._held = [self.bits(*(name for word in words for name in word.names())) for words in begins.values()]

    def bits(self, *names: str) -> int:
        """What these meanings and moments are in a number that says which words a sentence may hold."""
        held = 0
        for name in names:
            held |= self._bits.setdefault(name, 1 << len(self._bits))
        return held

    def among(self, bits: int) -> Some:
        """Those that may be one of these."""
        some = {begin: held for begin, held in zip(self._begins, self._held, strict=True) if held & bits}
        return Some(ahocorasick_rs.AhoCorasick(list(some)), list(some.values()), [begin[0] in _LETTERS for begin in some])

    def mentions(self, text: str, start: int, end: int) -> list[Mention]:
        """The words that begin between two places of a plain text, in their order; of two that overlap, the longer one."""
        found = list(self._standing(text, start, end))
        ordered = sorted(found)
        if not any(one.end > other.start for one, other in pairwise(ordered)):
            return ordered
        first, used = ordered[0].start, 0
        taken: list[Mention] = []
        for one in sorted(found, key=lambda one: (one.start - one.end, one.start)):
            letters = ((1 << (one.end - one.start)) - 1) << (one.start - first)
            if not used & letters:
                used |= letters
                taken.append(one)
        return sorted(taken)

    def _standing(self, text: str, first: int, last: int) -> Iterator[Mention]:
        for place, start, end in self._automaton.find_matches_as_indexes(text[first:last], overlapping=True):
            letter, words = self._words[place]
            start, end = first + start, first + end
            if letter and text[start - 1 : start] in _LETTERS:
                continue
            goes_on = text[end : end + 1] in _LETTERS
            for word, whole, ends in words:
                if not whole:
                    if (match := _pattern(word.said).match(text, start)) is not None:
                        yield Mention(start, match.end(), word.means, word.moment, word.telling, word.joined)
                elif not (goes_on and ends):
                    yield Mention(start, end, word.means, word.moment, word.telling, word.joined)


def _beginning(said: str) -> str:
    return said.partition("…")[0].rstrip("* ")


@lru_cache(maxsize=4096)
def _pattern(said: str) -> "re.Pattern[str]":
    parts = [re.escape(part.strip()) for part in said.rstrip("*").split("…")]
    body = (r"\ " + BETWEEN).join(parts).replace(r"\*", LETTERS)
    after = LETTERS if said.endswith("*") else rf"(?!{LETTER})" if said[-1] in _LETTERS else ""
    return re.compile(body + after)


@lru_cache(maxsize=4)
def words_of(book: Rulebook) -> Words:
    """The words of a rulebook, prepared once."""
    return Words(book)
