"""Lines looked through all at once for plain texts: a pattern is tried only where a text that it needs stands."""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate

import ahocorasick_rs
import regex

from bot.domain.evidence import LogLine
from bot.rulebook.book import Rulebook, texts
from bot.rulebook.files import FactRule
from bot.rulebook.patterns import compiled, search

_BOUNDARY = 80
SHORT = 1500
"""A line of so many letters is looked through as a whole, without a time limit, which costs more than most searches."""
BEFORE, BEHIND, NEAR = 1000, 1500, 400
"""Letters around an anchor or a break that a pattern is tried in on a longer line, and how near to their end it may end."""
_FROM_START = re.compile(r"(?<![\[\\])\^")
"""In a pattern that may match only where the line begins, so that what stands around an anchor is not enough."""


def standing(automaton: ahocorasick_rs.AhoCorasick, lines: Sequence[str]) -> Iterator[tuple[int, int, int]]:
    """(line, text, where in the line it begins) for each text of the automaton that stands in one of the lines, by where they end."""
    ends = list(accumulate(map((1).__add__, map(len, lines))))
    place = begin = 0
    for text, start, end in automaton.find_matches_as_indexes("\n".join(lines), overlapping=True):
        while end >= ends[place]:
            begin = ends[place]
            place += 1
        yield place, text, start - begin


def matched(rule: FactRule, text: str, start: int = 0, end: int = sys.maxsize) -> "regex.Match[str] | None":
    """The first match of a rule between two places; on a long line only around its anchors, where any stand."""
    start, end = max(start, 0), min(end, len(text))
    if end - start <= SHORT:
        return compiled(rule.pattern).search(text, start, end)
    places = () if _FROM_START.search(rule.pattern) else sorted(_places(texts(rule.anchor), text, start, end))
    for first, last in _around(places, start, end) if places else [(start, end)]:
        match = search(rule.pattern, text, first, last)
        if match is not None:
            return match if match.end() < last - NEAR or last == len(text) else search(rule.pattern, text, first)
    return None


def _places(anchors: Sequence[str], text: str, start: int, end: int) -> Iterator[int]:
    for anchor in anchors:
        at = start
        while (at := text.find(anchor, at, end)) >= 0:
            yield at
            at += len(anchor)


def _around(places: Sequence[int], start: int, end: int) -> Iterator[tuple[int, int]]:
    """Stretches around places in order, those that meet as one."""
    first, last = places[0] - BEFORE, places[0] + BEHIND
    for place in places[1:]:
        if place - BEFORE > last:
            yield max(first, start), last
            first = place - BEFORE
        last = place + BEHIND
    yield max(first, start), min(last, end)


class FactFinder:
    """The rulebook's messages behind one automaton of their anchors."""

    def __init__(self, book: Rulebook) -> None:
        self._book = book
        anchors: dict[str, list[FactRule]] = {}
        for rule in book.facts:
            for anchor in texts(rule.anchor):
                anchors.setdefault(anchor, []).append(rule)
        self._rules = list(anchors.values())
        self._of = lru_cache(maxsize=4096)(self._of_anchors)
        self._automaton = ahocorasick_rs.AhoCorasick(list(anchors))
        self._texts = "".join(f"\n{anchor}" for anchor in [*anchors, ""])
        self._before_space: dict[str, tuple[str, ...]] = {}
        """What stands before the space that anchors end with, by its last two letters: the space may be the break itself."""
        for said in (anchor[:-1] for anchor in anchors if anchor.endswith(" ")):
            self._before_space[said[-2:]] = (*self._before_space.get(said[-2:], ()), said)
        self._goes_on = lru_cache(maxsize=4096)(self._going_on)
        self._may_cross = lru_cache(maxsize=16384)(self._going_over)

    def anchored(self, lines: Sequence[LogLine]) -> Mapping[int, Mapping[str, FactRule]]:
        """The rules that lines may match, by the place of the line and their id: those with an anchor in it."""
        hits: dict[int, dict[int, None]] = {}
        for place, anchor, _ in standing(self._automaton, [line.text for line in lines]):
            hits.setdefault(place, {})[anchor] = None
        return {place: self._of(*anchors) for place, anchors in hits.items()}

    def _of_anchors(self, *anchors: int) -> Mapping[str, FactRule]:
        """The rules of some anchors by their ids: most lines hold the same few."""
        return {rule.id: rule for anchor in anchors for rule in self._rules[anchor]}

    def broken(self, left: str, right: str) -> Mapping[str, FactRule]:
        """The rules with an anchor in the break between two lines, with or without a space."""
        bare, right = left.rstrip(), right.lstrip()
        if not (self._may_cross(left[-2:], bare[-2:], right[:2]) or bare.endswith(self._before_space.get(bare[-2:], ()))):
            return {}
        found: dict[str, FactRule] = {}
        for head, tail in ((left[-_BOUNDARY:], right[:_BOUNDARY]), (bare[-_BOUNDARY:], f" {right[:_BOUNDARY]}")):
            for anchor, start, end in self._automaton.find_matches_as_indexes(head + tail, overlapping=True):
                if start < len(head) < end:
                    found |= {rule.id: rule for rule in self._rules[anchor]}
        return found

    def _going_over(self, end: str, bare: str, begin: str) -> bool:
        """May an anchor go over a break, where these letters end the line and begin the next?"""
        return any(begin.startswith(letters) for letters in self._goes_on(end, "") | self._goes_on(bare, " "))

    def _going_on(self, end: str, joint: str) -> frozenset[str]:
        """The first one or two letters that an anchor goes on with behind a break, where a line ends in these last two."""
        found = set()
        for begin in {f"\n{end[-1:]}{joint}", f"{end}{joint}"} if end else ():
            at = self._texts.find(begin)
            while at >= 0:
                stop = at + len(begin)
                if self._texts[stop] != "\n":
                    found.add(self._texts[stop : stop + 2].partition("\n")[0])
                at = self._texts.find(begin, at + 1)
        return frozenset(found)


@lru_cache(maxsize=8)
def finder_of(book: Rulebook) -> FactFinder:
    """One FactFinder for each rulebook."""
    return FactFinder(book)
