"""The sentences of a text, each read only where somebody asks for it: which words it may hold is known of all of them."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from bot.reading.sentences import Sentence, spoken_of
from bot.reading.together import meant_together
from bot.reading.words import Mention, Some, Words
from bot.rulebook.files import Moment

LONGEST = 60
"""Words of the rulebook that are read of one sentence: nobody says more, and each is held against the others."""
_POSES = re.compile(r"\W*(?:could|can|might|may|would|will)\ (?!you\b|we\b|i\b|\w+(?:one|body)\b)[^?]{0,200}\?")
_WONDERS = re.compile(
    r"\W*(?:am|are|is)\ (?:i|it|we|(?:my|our|the|this)\ [\w-]+)\ (?:really\ |actually\ |just\ )?"
    r"(?:running\ |going\ )?(?:out\ of|low\ on|short\ of)\ (?:gpu\ |video\ )?(?:memory|v?ram)(?:\ (?:here|now|already))?\ ?\?",
    re.IGNORECASE,
)
"""Questions that ask whether it is so, not for help."""
_END = re.compile(r"[.!?;。！？；\n](?:(?<=[.!?;])(?=[\s\"')*_`]|$)[\"')*_`]*|(?<=[。！？；])|(?<=\n)\n*)")


class _Part(NamedTuple):
    """A sentence that is not read yet: where it begins and ends, and which words it may hold (`Words.bits`)."""

    start: int
    end: int
    held: int


class Talk:
    """The sentences of a paragraph that may hold one of the words asked for, by their numbers."""

    def __init__(self, words: Words, moments: Mapping[str, Moment], text: str, parts: Sequence[_Part]) -> None:
        self._words, self._moments, self.text, self._parts = words, moments, text, parts
        self._read: dict[int, Sentence] = {}
        self.denying: set[int] = set()
        """The sentences that deny a complaint, of those that were read."""
        self._held = 0
        for part in parts:
            self._held |= part.held

    def __getitem__(self, number: int) -> Sentence:
        if number not in self._read:
            start, end, _ = self._parts[number]
            words = meant_together(self._between(start, end)[:LONGEST], self.text, start, self._words.pairs)
            if self.text.find("()", start, end) >= 0:  # a function's name is said of nothing else
                words = [one._replace(telling=one.telling or self.text.startswith("()", one.end)) for one in words]
            wonders = _POSES.match(self.text, start, end) or _WONDERS.match(self.text, start, end)
            if wonders or sum(one.means == "doubt" for one in words) > 1:  # `maybe X, maybe Y`
                words = [Mention(start, start, "question"), *words]
            means = frozenset([one.means for one in words])
            if "moment" in means and any(one.moment == "prose.denied" for one in words):
                self.denying.add(number)
            self._read[number] = Sentence(start, self.text, words, spoken_of(words, self.text, self._moments), means)
        return self._read[number]

    def _between(self, start: int, end: int) -> list[Mention]:
        return [one for one in self._words.mentions(self.text, start, end) if one.means != "nothing"]

    def __len__(self) -> int:
        return len(self._parts)

    @property
    def read(self) -> list[Sentence]:
        """The sentences that were read so far."""
        return [*self._read.values()]

    def holding(self, bits: int) -> Iterator[int]:
        """The sentences that may hold one of these words."""
        return (number for number, part in enumerate(self._parts) if part.held & bits) if self.holds(bits) else iter(())

    def holds(self, bits: int) -> bool:
        """May any sentence hold one of these words?"""
        return self._held & bits != 0

    def held(self, number: int) -> int:
        """The words that a sentence may hold."""
        return self._parts[number].held

    def heads(self, at: int) -> int | None:
        """The sentence that begins the line in which that place is, where the place is in a later one."""
        begin = self.text.rfind("\n", 0, at) + 1
        return next((number for number, part in enumerate(self._parts) if part.start == begin and part.end <= at), None)

    def beside(self, number: int) -> set[int]:
        """The sentences before and behind it that hold any word, where no other does in between."""
        return {beside for step in (-1, 1) if (beside := self._next(number, step)) is not None}

    def _next(self, number: int, step: int) -> int | None:
        while 0 <= number + step < len(self._parts):
            left, right = sorted((self._parts[number], self._parts[number + step]))
            if self._between(left.end, right.start):
                return None
            number += step
            if self[number].words:
                return number
        return None


def talks(words: Words, moments: Mapping[str, Moment], asked: Some, text: str, begins: Sequence[int]) -> list[Talk]:
    """A plain text as one for each paragraph, of which it is given where they begin."""
    parts: list[list[_Part]] = [[] for _ in begins]
    for part in _parts(asked, text):
        parts[bisect_left(begins, part.start + 1) - 1].append(part)
    return [Talk(words, moments, text, several) for several in parts]


def _parts(asked: Some, text: str) -> Iterator[_Part]:
    ends = [0, *map(re.Match.end, _END.finditer(text)), len(text)]
    start = end = held = 0
    for stop, may_be in asked.standing(text):
        if stop > end:
            if held:
                yield _Part(start, end, held)
            place = bisect_left(ends, stop)
            start, end, held = ends[place - 1], ends[place], 0
        held |= may_be
    if held:
        yield _Part(start, end, held)
