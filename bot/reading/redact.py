"""Hides secrets before anything is stored, shown or read further."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache

import ahocorasick_rs

from bot.reading.text import ANSI, encodable, escaped
from bot.reading.wraps import NARROWEST, USUAL, WIDEST
from bot.rulebook.book import texts
from bot.rulebook.files import Redaction
from bot.rulebook.load import load_rulebook
from bot.rulebook.patterns import compiled

HIDDEN = "[hidden]"
BEFORE, AFTER, BLOCK = 300, 1200, 9000
"""Characters around an anchor within which its secret stands; a key block may be longer."""
NEXT = 200
"""Characters of the following lines that are looked at too: a value may stand below its name."""
BLOCKS = frozenset({"private.key", "yaml.block", "gap.edge"})
"""Rules whose secret runs over many lines."""
_REST = re.compile(r"[^\s'\"]*")
_SECOND_HALF = re.compile(r"\r?\n(?=[A-Za-z]*[0-9])(?=[0-9]*[A-Za-z])[A-Za-z0-9]{8,}={0,2}(?=[\s'\",]|$)")
_ASCII_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
Span = tuple[int, int]


def redact(text: str) -> tuple[str, int]:
    """The text with every known kind of secret hidden, and how many were found. Line numbers stay as they are.

    Colours are looked through, and lines that a terminal broke are read as one, so that no half of a secret stays.
    """
    text = encodable(text)
    spans = [_with_second_half(text, span) for span in _spans(text)]
    if escaped(text):
        spans += _across(text, [match.span() for match in ANSI.finditer(text)])
    for breaks in _breaks(text):
        spans += _across(text, breaks)
    return _hide(text, spans)


def _across(text: str, cuts: list[Span]) -> Iterator[Span]:
    """Spans that are found once the cuts are taken out, as they stand in the text with them."""
    starts: list[int] = []  # of each piece between cuts, in the plain text and in the given one
    given: list[int] = []
    pieces: list[str] = []
    end = length = 0
    for start, stop in [*cuts, (len(text), len(text))]:
        if start > end:
            starts.append(length)
            given.append(end)
            pieces.append(text[end:start])
            length += start - end
        end = stop

    def origin(at: int) -> int:
        piece = bisect_right(starts, at) - 1
        return given[piece] + at - starts[piece]

    for start, stop in _spans("".join(pieces)):
        yield origin(start), origin(stop - 1) + 1


def _breaks(text: str) -> Iterator[list[Span]]:
    """For each width at which a terminal may have broken lines, the line ends that it put in."""
    lines = text.split("\n")
    counts = Counter(len(line) - line.endswith("\r") for line in lines)
    longer = 0
    for width in sorted(counts, reverse=True):
        if NARROWEST <= width <= WIDEST and longer * 4 <= counts[width] and (counts[width] > 1 or width in USUAL):
            yield list(_ends(lines, width))
        longer += counts[width]
        if longer * 4 > len(lines):
            return


def _ends(lines: list[str], width: int) -> Iterator[Span]:
    at = 0
    for line in lines[:-1]:
        at += len(line) + 1
        if width <= len(line) <= width + 1 and len(line) - line.endswith("\r") == width:
            yield at - 1 - line.endswith("\r"), at


def _with_second_half(text: str, span: Span) -> Span:
    """A secret that ends a long line, with what plainly goes on below it: letters and digits that are no word."""
    start, stop = span
    while stop - text.rfind("\n", max(0, stop - WIDEST), stop) > NARROWEST and (half := _SECOND_HALF.match(text, stop)):
        stop = half.end()
    return start, stop


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


def _spans(text: str) -> Iterator[Span]:
    for rule, windows in _windows(text).values():
        pattern = compiled(rule.pattern)
        for first, last, stop in windows:
            for match in pattern.finditer(text, first, stop):
                if match.start() > last:
                    break
                yield from (_whole(text, span, stop) for span in match.spans("secret"))


def _windows(text: str) -> dict[str, tuple[Redaction, list[list[int]]]]:
    """For each rule the stretches around its anchors: begin, last place where a match may begin, end. None overlap, so time is linear."""
    anchors, rules_by_anchor = _anchors()
    found: dict[str, tuple[Redaction, list[list[int]]]] = {}
    for index, start, end in anchors.find_matches_as_indexes(_lowered(text), overlapping=True):
        for rule in rules_by_anchor[index]:
            windows = found.setdefault(rule.id, (rule, []))[1]
            if windows and end <= windows[-1][1]:
                continue
            before = max(0, start - BEFORE)
            first = max(text.rfind("\n", before, start) + 1, before)
            last = text.find("\n", end, end + AFTER)
            last = min(len(text), end + AFTER) if last < 0 else last
            stop = min(len(text), end + BLOCK if rule.id in BLOCKS else last + NEXT)
            if windows and first <= windows[-1][2]:
                windows[-1][1:] = last, max(stop, windows[-1][2])
            else:
                windows.append([first, last, stop])
    return found


def _whole(text: str, span: Span, stop: int) -> Span:
    """A secret that is longer than what was looked at, to its end."""
    if span[1] < stop or stop == len(text):
        return span
    rest = _REST.match(text, stop)
    return span[0], rest.end() if rest else stop


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
