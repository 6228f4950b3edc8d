"""Hides secrets before anything is stored, shown or read further."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from itertools import pairwise
from string import ascii_letters
from typing import Any, NamedTuple

import ahocorasick_rs

from bot.reading.joints import BORDERS, LONGEST_ANCHOR, Span, joints
from bot.reading.rewrites import Edit, rewrites
from bot.reading.text import encodable
from bot.rulebook.book import texts
from bot.rulebook.load import load_rulebook
from bot.rulebook.patterns import compiled

HIDDEN = "[hidden]"
REACH, BLOCK = 4096, 40_000
"""Characters from an anchor on that its pattern may look at; a key block may be longer."""
BLOCKS = frozenset({"private.key", "yaml.block", "yaml.value-block", "gap.edge", "kubernetes.secret"})
"""Rules whose secret runs over many lines."""
NEAR = 100
"""Characters before an anchor that a pattern looks behind at, and behind a secret that it looks ahead at."""
OVER = 400
"""Characters around a cut within which a secret may run over it and hold what is rewritten."""
_REST = re.compile(r"[^\s'\"]*")
_QUOTED_REST = re.compile(r"[^\n'\"]*")
_LETTERS = frozenset(ascii_letters)
_ASCII_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


def redact(text: str) -> tuple[str, int]:
    """The text with every known kind of secret hidden, and how many were found. Line numbers stay as they are."""
    text = encodable(text)
    return _hide(text, secrets_in(text))


def hidden_in(value: Any, name: str = "") -> Any:
    """The same JSON-ready value with no secret in any text of it: a net below all that reading took apart and put together."""
    if isinstance(value, str):
        text = f"{name}={value}"
        if next(_hits(text), None) is None:
            return value
        shown = redact(text)[0]
        return shown[len(name) + 1 :] if shown.startswith(f"{name}=") else HIDDEN
    if isinstance(value, Mapping):
        return {key: hidden_in(inner, key) for key, inner in value.items()}
    return [hidden_in(inner, name) for inner in value] if isinstance(value, list | tuple) else value


def without_halves(before: str, text: str, after: str = "") -> str:
    """A text that was cut out between `before` and `after`: what runs into it, or out of it, is hidden, and lines stay."""
    begun = [(start - len(before), stop - len(before)) for start, stop in _over(before + text[:REACH], len(before)) if stop > len(before)]
    if after:
        tail = text[-REACH:]
        left = len(text) - len(tail)
        begun += [(left + start, len(text)) for start, stop in _over(tail + after, len(tail)) if start < len(tail) < stop]
    return _hide(text, [(max(start, 0), stop) for start, stop in begun])[0]


def _over(text: str, cut: int) -> Iterator[Span]:
    """What is secret by a name or a beginning that stands before the cut."""
    hits = [hit for hit in _hits(text[: cut + LONGEST_ANCHOR]) if hit[1] < cut]
    yield from _matched(text, hits)
    begin = max(0, cut - OVER)
    near = text[begin : cut + OVER]
    if any(start >= begin for _, start, _ in hits) and (edits := rewrites(near)):
        yield from ((begin + start, begin + stop) for start, stop in _seen_through(near, edits) if begin + start < cut)


def secrets_in(text: str) -> list[Span]:
    """Where secrets stand; spans may overlap.

    The text is looked at as given; as it will be read, without colours, invisible characters and escapes; and with the lines joined
    that a terminal may have broken: no half of a secret stays.
    """
    hits = list(_hits(text))
    spans = list(_matched(text, hits))
    edits = rewrites(text)
    if edits:
        spans += _seen_through(text, edits)
    if edits and any(border in text for border in BORDERS):
        read = _View(text, edits, 0, len(text))  # in a box a colour stands between a line's letters and its border
        broken = [read.given(start, stop) for start, stop in _broken(read.text, _hits(read.text))]
    else:
        broken = _broken(text, hits)
    if broken:
        both = sorted([*edits, *((start, stop, "") for start, stop in broken)], key=lambda edit: (edit[0], -edit[1]))
        spans += _seen_through(text, both, BLOCKS)  # a block has its lines
    return spans


def _broken(text: str, hits: Iterable[tuple[int, int, int]]) -> list[Span]:
    """The line ends that may stand in a secret."""
    return joints(
        text, (start for _, start, _ in hits), lambda seams: ((start, stop) for _, start, stop in _hits(seams)), _anchors().letters
    )


def _hits(text: str) -> Iterator[tuple[int, int, int]]:
    """(number of the anchor, begin, end) of every anchor."""
    return iter(_anchors().automaton.find_matches_as_indexes(_lowered(text), overlapping=True))


def _matched(text: str, hits: Iterable[tuple[int, int, int]], without: Set[str] = frozenset()) -> Iterator[Span]:
    """Each rule is tried where its anchors begin; behind what it found it goes on, so that time is linear."""
    rules = _anchors().rules
    done: dict[str, int] = {}
    for index, start, end in hits:
        for rule in rules[index]:
            if start < done.get(rule.name, 0) or rule.name in without or (rule.ends and text[end : end + 1] in _LETTERS):
                continue
            stop = min(len(text), start + rule.reach)
            if (match := compiled(rule.pattern).match(text, start, stop)) is not None:
                done[rule.name] = match.end()
                yield from (_whole(text, span, stop) for span in match.spans("secret"))


def _whole(text: str, span: Span, stop: int) -> Span:
    """A secret that is longer than what was looked at, to its end."""
    start, end = span
    if end < stop or stop == len(text):
        return span
    rest = (_QUOTED_REST if text[start - 1 : start] in ("'", '"') else _REST).match(text, stop)
    return start, rest.end() if rest else stop


def _seen_through(text: str, edits: Sequence[Edit], without: Set[str] = frozenset()) -> Iterator[Span]:
    """Spans that are found around edits once these are made, as they stand in the text without them."""
    for view in _views(text, edits):
        near = ((index, start, end) for index, start, end in _hits(view.text) if view.edited(start - NEAR, start + BLOCK))
        for start, stop in _matched(view.text, near, without):
            if view.edited(start - NEAR, stop + NEAR):
                yield view.given(start, stop)


def _views(text: str, edits: Sequence[Edit]) -> Iterator["_View"]:
    """A view of each stretch of the text that edits stand in."""
    first = 0
    for n, (_, stop, _) in enumerate(edits, 1):
        if n == len(edits) or edits[n][0] > stop + 2 * REACH:
            near = max(0, edits[first][0] - 2 * NEAR)
            begin = text.rfind("\n", max(0, near - REACH), near) + 1 or max(0, near - REACH)
            yield _View(text, edits[first:n], begin, min(len(text), stop + 2 * REACH))
            first = n


class _View:
    """A stretch of a text with edits made, and where each of its letters stands in the text as given."""

    __slots__ = ("_given", "_places", "_starts", "text")

    def __init__(self, text: str, edits: Sequence[Edit], begin: int, end: int) -> None:
        pieces: list[str] = []
        self._starts: list[int] = []
        self._given: list[tuple[int, int]] = []  # of each piece: where it begins, and where it ends if another text stands for it
        self._places: list[int] = []
        at, length = begin, 0
        for start, stop, instead in [*edits, (end, end, "")]:
            if start < at:
                continue  # inside the edit before
            for piece, given in ((text[at:start], (at, 0)), (instead, (start, stop))):
                if piece:
                    self._starts.append(length)
                    self._given.append(given)
                    pieces.append(piece)
                    length += len(piece)
            self._places.append(length)
            at = stop
        self.text = "".join(pieces)

    def edited(self, start: int, stop: int) -> bool:
        """Was anything changed there?"""
        at = bisect_left(self._places, start)
        return at < len(self._places) - 1 and self._places[at] <= stop

    def given(self, start: int, stop: int) -> Span:
        """A stretch of the view in the text as given."""
        first, last = bisect_right(self._starts, start) - 1, bisect_right(self._starts, stop - 1) - 1
        (begin, other), (end, until) = self._given[first], self._given[last]
        return begin if other else begin + start - self._starts[first], until or end + stop - self._starts[last]


def _hide(text: str, spans: Iterable[Span]) -> tuple[str, int]:
    pieces: list[str] = []
    end = found = 0
    for start, stop in _merged(span for span in spans if text[slice(*span)] != HIDDEN):
        pieces += [text[end:start], HIDDEN, "\n" * text.count("\n", start, stop)]
        end = stop
        found += 1
    return ("".join([*pieces, text[end:]]), found) if found else (text, 0)


def _merged(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, stop in sorted(set(spans)):
        if merged and start < merged[-1][1]:
            merged[-1] = merged[-1][0], max(stop, merged[-1][1])
        else:
            merged.append((start, stop))
    return merged


class _Rule(NamedTuple):
    """A rule as one of its anchors begins it: how far it may look, and whether the word ends with the anchor (`tokens` is another)."""

    name: str
    pattern: str
    reach: int
    ends: bool


class _Anchors(NamedTuple):
    """An automaton of all anchors, for each the rules that it may begin, and what a line end in one stands between (`joints`).

    A pattern is compiled where its anchor stands: all of them together take 150 ms.
    """

    automaton: ahocorasick_rs.AhoCorasick
    rules: list[list[_Rule]]
    letters: Set[str]


@lru_cache(maxsize=1)
def _anchors() -> _Anchors:
    table: dict[str, list[_Rule]] = {}
    for rule in load_rulebook().redactions:
        reach = BLOCK if rule.id in BLOCKS else REACH
        for anchor in texts(rule.anchor):
            ends = rule.pattern.startswith(f"(?i){anchor}(?![a-z])")
            # letters of ASCII: seven times as fast
            table.setdefault(anchor.lower(), []).append(_Rule(rule.id, f"(?a){rule.pattern}", reach, ends))
    letters = {anchor[0] for anchor in table if not anchor[0].isalnum()} | {
        pair for anchor in table for pair in map("".join, pairwise(anchor))
    }
    return _Anchors(ahocorasick_rs.AhoCorasick(list(table)), list(table.values()), letters)


def _lowered(text: str) -> str:
    """Lower case, each letter in its place."""
    lower = text.lower()
    return lower if len(lower) == len(text) else text.translate(_ASCII_LOWER)
