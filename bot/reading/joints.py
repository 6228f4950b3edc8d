"""Line ends at which a secret may have been broken: at a terminal's width, behind any margin, in a box, or inside its name."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import repeat

from bot.reading.wraps import NARROWEST, USUAL, WIDEST

Span = tuple[int, int]
OPEN = 300
"""Characters between an anchor and the end of its line within which its secret may have been broken."""
LONGEST_ANCHOR = 40
_MARGIN = re.compile(
    r"""\n(?:[^\S\n]{0,8}+(?:
      (?=[a-zA-Z][\w./-]{0,60}+[^\S\n]{1,12}+\|)[\w./-]++[^\S\n]++\|[^\S\n]
      |(?=[\d(\[│┃>|A-Z])(?:
        \d{4}-\d\d-\d\d[T\ ]\d\d:\d\d:\d\d[\d.,:+Z-]*+(?:[^\S\n]std(?:out|err)[^\S\n][FP])?[^\S\n]
        |\([A-Za-z]\w{0,30}(?:[^()\n]{0,40}pid=|\ pid=)\d+[^()\n]{0,40}+\)[^\S\n]|\[rank\d+\]:[^\S\n]?|[│┃>|][^\S\n]?|\d{1,7}[:|│\t][^\S\n]?
        |[A-Z][a-z]{2}[^\S\n]{1,2}\d{1,2}\ \d\d:\d\d:\d\d\ [\w.-]{1,60}+\ [\w./-]{1,60}+(?:\[\d+\])?:[^\S\n])
    )){0,3}+(?=\ ?[\w+/.=:@%~'"-])""",
    re.VERBOSE,
)
"""A line end, and what a container, a pod log, an engine, a box or a quotation prints before the next line."""
_BORDER = "│┃ \t\r"
_RANDOM = re.compile(
    r"""\ ?\\?['"]?[^\S\n]?[=:]?[^\S\n]?\\?['"]?(?:
      (?=\S*\d)(?=\S*[A-Za-z])[A-Za-z0-9+/_.%~-]{6,}={0,2}(?![=:])|(?=\S*[a-z][A-Z])[A-Za-z0-9+/_-]{6,}={0,2}(?![=:(.])|[^\s'"@]{0,120}@\w)""",
    re.VERBOSE,
)
"""What may be the second half of a secret: letters and digits that are no word and no name of a value."""


def joints(text: str, anchors: Iterable[int], found: Callable[[str], Iterable[tuple[int, int]]]) -> list[Span]:
    """The line ends, each with the margins around it, in order. `anchors` are where names of secrets begin; `found` finds them anywhere."""
    lines = text.split("\n")
    ends = {text.find("\n", start, start + OPEN) for start in anchors} - {-1}
    open_ends = [joint for end in ends for joint in _continued(text, end)]
    inside = [(start, stop, text.find("\n", stop, stop + WIDEST)) for start, stop in _in_names(text, _wide_ends(lines), found)]
    beyond = [joint for _, _, end in inside for joint in _continued(text, end)]
    return sorted({*_at_width(text, lines), *open_ends, *((start, stop) for start, stop, _ in inside), *beyond})


def _continued(text: str, end: int) -> Iterator[Span]:
    """The line end at `end` where what may be a second half stands behind it, and the next ones as long as that goes on."""
    while end >= 0 and _wide(text, end) and (margin := _MARGIN.match(text, end)) is not None and _RANDOM.match(text, margin.end()):
        yield _before(text, end), margin.end()
        end = text.find("\n", margin.end(), margin.end() + WIDEST)
        if any(map(str.isspace, text[margin.end() : end].rstrip(_BORDER))):
            return


def _wide(text: str, end: int) -> bool:
    """Is the line that ends here long enough to have been broken, or a line of a box?"""
    return (end >= NARROWEST and "\n" not in text[end - NARROWEST : end]) or text[max(0, end - 1) : end] in ("│", "┃")


def _before(text: str, end: int) -> int:
    """Where a line's letters end: before the border of a box and the space in it."""
    padding = text[max(0, end - 80) : end]
    return end - len(padding) + len(padding.rstrip(_BORDER) if padding.endswith(("│", "┃")) else padding.removesuffix("\r"))


def _wide_ends(lines: list[str]) -> Iterator[int]:
    """Where the lines end that are long enough to have been broken, or are a box's."""
    end = -1
    for line in lines:
        end += len(line) + 1
        if len(line) >= NARROWEST or line.endswith(("│", "┃")):
            yield end


def _in_names(text: str, ends: Iterable[int], found: Callable[[str], Iterable[tuple[int, int]]]) -> list[Span]:
    """Line ends inside an anchor: ends and beginnings of lines are put side by side and looked through at once."""
    seams: list[str] = []
    places: list[int] = []
    spans: list[Span] = []
    at = 0
    for end in ends:
        if (margin := _MARGIN.match(text, end)) is None:
            continue
        start, stop = _before(text, end), margin.end()
        tail = text[max(0, start - LONGEST_ANCHOR) : start].rpartition("\n")[2]
        seams.append(tail + text[stop : stop + LONGEST_ANCHOR].partition("\n")[0])
        places.append(at + len(tail))
        spans.append((start, stop))
        at += len(seams[-1]) + 1
    crossed = []
    for start, stop in found("\n".join(seams)):
        n = bisect_left(places, start)
        if n < len(places) and start <= places[n] < stop and (start < places[n] or not text[spans[n][1]].isalnum()):
            crossed.append(spans[n])  # one that begins the line needs what stands before it only where it is no word: `://`, `_key`
    return crossed


def _at_width(text: str, lines: list[str]) -> Iterator[Span]:
    """The line ends that a terminal of some width put in; several widths may show."""
    counts = Counter(map(len, map(str.rstrip, lines, repeat("\r")) if "\r" in text else lines))
    widths = set()
    longer = 0
    for width in sorted(counts, reverse=True):
        if longer * 4 > len(lines):
            break
        if NARROWEST <= width <= WIDEST and longer * 4 <= counts[width] and (counts[width] > 1 or width in USUAL):
            widths.add(width)
        longer += counts[width]
    at = 0
    for line in lines[:-1] if widths else ():
        at += len(line) + 1
        if len(line) - line.endswith("\r") in widths:
            margin = _MARGIN.match(text, at - 1)
            yield at - 1 - line.endswith("\r"), margin.end() if margin else at
