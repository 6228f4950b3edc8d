"""Hides secrets before anything is stored, shown or read further."""

from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache

import ahocorasick_rs

from bot.reading.text import ANSI, ESCAPES, encodable
from bot.rulebook.book import texts
from bot.rulebook.files import Redaction
from bot.rulebook.load import load_rulebook
from bot.rulebook.patterns import compiled

HIDDEN = "[hidden]"
BEFORE, AFTER, BLOCK = 300, 1200, 9000
"""Characters around an anchor within which its secret stands; a key block may be longer."""
_ASCII_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
Span = tuple[int, int]


def redact(text: str) -> tuple[str, int]:
    """The text with every known kind of secret hidden, and how many were found. Line numbers stay as they are.

    Colours are looked through, so that a secret printed in colour is found as well.
    """
    text = encodable(text)
    spans = list(_spans(text))
    if any(mark in text for mark in ESCAPES):
        spans += _behind_colours(text)
    return _hide(text, spans)


def _behind_colours(text: str) -> Iterator[Span]:
    """Spans that are found once terminal sequences are gone, as they stand in the text with them."""
    hidden = list(_spans(ANSI.sub("", text)))
    if not hidden:
        return
    starts: list[int] = []  # of each piece between sequences, in the plain text and in the given one
    given: list[int] = []
    end = length = 0
    for match in ANSI.finditer(text):
        if match.start() > end:
            starts.append(length)
            given.append(end)
            length += match.start() - end
        end = match.end()
    starts.append(length)
    given.append(end)

    def origin(at: int) -> int:
        piece = bisect_right(starts, at) - 1
        return given[piece] + at - starts[piece]

    for start, stop in hidden:
        yield origin(start), origin(stop - 1) + 1


def _hide(text: str, spans: list[Span]) -> tuple[str, int]:
    pieces: list[str] = []
    end = found = 0
    for start, stop in sorted(set(spans)):
        if start < end or text[start:stop] == HIDDEN:
            continue
        pieces += [text[end:start], HIDDEN, "\n" * text.count("\n", start, stop)]
        end = stop
        found += 1
    return ("".join([*pieces, text[end:]]), found) if found else (text, 0)


def _spans(text: str) -> Iterator[Span]:
    anchors, rules_by_anchor = _anchors()
    done: dict[str, int] = {}
    for index, start, end in anchors.find_matches_as_indexes(_lowered(text), overlapping=True):
        for rule in rules_by_anchor[index]:
            if start < done.get(rule.id, 0):
                continue
            block = rule.id == "private.key"
            first = max(text.rfind("\n", 0, start) + 1, start - BEFORE)
            last = text.find("\n", end)
            last = min(len(text) if last < 0 else last, end + AFTER)
            stop = min(len(text), end + BLOCK if block else last + 200)
            done[rule.id] = end if block else last
            for match in compiled(rule.pattern).finditer(text, first, stop):
                if match.start() <= last or block:
                    yield match.span("secret")
                    done[rule.id] = max(done[rule.id], match.end())


@lru_cache(maxsize=1)
def _anchors() -> tuple[ahocorasick_rs.AhoCorasick, list[list[Redaction]]]:
    table: dict[str, list[Redaction]] = {}
    for rule in load_rulebook().redactions:
        for anchor in texts(rule.anchor):
            table.setdefault(anchor.lower(), []).append(rule)
    return ahocorasick_rs.AhoCorasick(list(table)), list(table.values())


def _lowered(text: str) -> str:
    """Lower case, each letter in its place."""
    lower = text.lower()
    return lower if len(lower) == len(text) else text.translate(_ASCII_LOWER)
