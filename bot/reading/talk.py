"""The sentences of a text, each read only where somebody asks for it: which words it may hold is known of all of them."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from bot.reading.sentences import COMPLAINTS, Sentence, spoken_of
from bot.reading.words import Hit, Mention, Words
from bot.rulebook.files import Moment

LONGEST = 60
"""Words of the rulebook that are read of one sentence: nobody says more, and each is held against the others."""
_END = re.compile(r"[.!?;。！？；\n](?:(?<=[.!?;])(?=[\s\"')*_`]|$)[\"')*_`]*|(?<=[。！？；])|(?<=\n)\n*)")


class _Part(NamedTuple):
    """A sentence that is not read yet: where it begins, which hits are its words' beginnings, and what they may be (`Words.bits`)."""

    start: int
    first: int
    last: int
    held: int


class Talk:
    """The sentences of a paragraph in which words may stand, by their numbers."""

    def __init__(self, words: Words, moments: Mapping[str, Moment], text: str, hits: Sequence[Hit], parts: Sequence[_Part]) -> None:
        self._words, self._moments, self._text, self._hits, self._parts = words, moments, text, hits, parts
        self._read: dict[int, Sentence] = {}

    def __getitem__(self, number: int) -> Sentence:
        if number not in self._read:
            part = self._parts[number]
            words = [one for one in self._words.mentions(self._text, self._hits[part.first : part.last]) if one.means != "nothing"][:LONGEST]
            words = _with_cache(Sentence(part.start, self._text, words, {}, _meant(words)))
            self._read[number] = Sentence(part.start, self._text, words, spoken_of(words, self._text, self._moments), _meant(words))
        return self._read[number]

    def holding(self, bits: int) -> Iterator[int]:
        """The sentences that may hold one of these words."""
        return (number for number, part in enumerate(self._parts) if part.held & bits)

    def held(self, number: int) -> int:
        """The words that a sentence may hold."""
        return self._parts[number].held

    def beside(self, number: int) -> set[int]:
        """The sentences before and behind it that hold any word."""
        before, behind = range(number - 1, -1, -1), range(number + 1, len(self._parts))
        return {n for side in (before, behind) for n in [next((n for n in side if self[n].words), -1)]}


def talks(words: Words, moments: Mapping[str, Moment], text: str, begins: Sequence[int]) -> list[Talk]:
    """A plain text as one for each paragraph, of which it is given where they begin."""
    hits = words.hits(text)
    parts: list[list[_Part]] = [[] for _ in begins]
    for part in _parts(words, text, hits):
        parts[bisect_left(begins, part.start + 1) - 1].append(part)
    return [Talk(words, moments, text, hits, several) for several in parts]


def _parts(words: Words, text: str, hits: Sequence[Hit]) -> Iterator[_Part]:
    ends = [0, *(found.end() for found in _END.finditer(text)), len(text)]
    holds = words.held
    start = end = first = held = 0
    for number, (word, _, stop) in enumerate(hits):
        if stop > end:
            if number:
                yield _Part(start, first, number, held)
            place = bisect_left(ends, stop)
            start, end, first, held = ends[place - 1], ends[place], number, 0
        held |= holds[word]
    if hits:
        yield _Part(start, first, len(hits), held)


def _meant(words: Sequence[Mention]) -> frozenset[str]:
    return frozenset([one.means for one in words])


def _with_cache(one: Sentence) -> list[Mention]:
    """The words of a sentence, with the making of a cache as a moment of its own."""
    parting = (*COMPLAINTS, "moment", "but", "before", "after", "while")
    for made, cache in one.pairs("make", "cache", 36):
        if one.joined(made, cache) and not any(word.means in parting for word in one.between(made, cache)):
            first, last = sorted((made, cache))
            rest = [word for word in one.words if word not in (made, cache)]
            return sorted([*rest, Mention(first.start, last.end, "moment", "prose.allocation", True)])
    return [*one.words]
