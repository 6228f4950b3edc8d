"""Line ends at which a secret may have been broken: at a terminal's width, behind any margin, in a box, or inside its name."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Set
from itertools import repeat

from bot.reading.wraps import NARROWEST, USUAL, WIDEST
from bot.rulebook.patterns import quick

Span = tuple[int, int]
OPEN = 300
"""Characters between an anchor and the end of its line within which its secret may have been broken."""
CLOSE = 5
"""Spaces between the name of a secret and the end of its line, at most, where the last word is the secret's."""
LONGEST_ANCHOR = 40
_MARGIN_TEXT = r"""\n(?:[^\S\n]{0,8}+(?:
      (?=[a-zA-Z][\w./-]{0,60}+[^\S\n]{1,12}+\|)[\w./-]++[^\S\n]++\|[^\S\n]
      |(?=[\d(\[│┃>|A-Z])(?:
        \d{4}-\d\d-\d\d[T\ ]\d\d:\d\d:\d\d[\d.,:+Z-]*+(?:[^\S\n]std(?:out|err)[^\S\n][FP])?[^\S\n]
        |\([A-Za-z]\w{0,30}(?:[^()\n]{0,40}pid=|\ pid=)\d+[^()\n]{0,40}+\)[^\S\n]|\[rank\d+\]:[^\S\n]?|[│┃>|][^\S\n]?|\d{1,7}[:|│\t][^\S\n]?
        |[A-Z][a-z]{2}[^\S\n]{1,2}\d{1,2}\ \d\d:\d\d:\d\d\ [\w.-]{1,60}+\ [\w./-]{1,60}+(?:\[\d+\])?:[^\S\n]
        |(?:INFO|WARNING|ERROR|DEBUG)\ \d\d-\d\d\ \d\d:\d\d:\d\d(?:\.\d+)?\ \[[^\]\n]{1,80}\]\ )
    )){0,4}+"""
_MARGIN = re.compile(_MARGIN_TEXT + r"""(?=[^\S\n]{0,60}[\w+/.=:@%~'"-])""", re.VERBOSE)
"""A line end, and what a container, a pod log, an engine, a box or a quotation prints before the next line."""
BORDERS = ("│", "┃")
_BORDER = "│┃ \t\r"
_CLOSING = frozenset("│┃\r\\")
_RANDOM = re.compile(
    r"""\ ?\\?['"]?[^\S\n]?[=:]?[^\S\n]?\\?['"]?(?:
      (?=\S*\d)(?=\S*[A-Za-z])[A-Za-z0-9+/_.%~-]{6,}={0,2}(?![=:])|(?=\S*[a-z][A-Z])[A-Za-z0-9+/_-]{6,}={0,2}(?![=:(.])|[^\s'"@]{0,120}@\w)""",
    re.VERBOSE,
)
"""What may be the second half of a secret: letters and digits that are no word and no name of a value."""
_KNOWN = quick(r"(?&KNOWN)")
_LONE = re.compile(r"""[\w+/=.~%-]{6,}[^\S\n]*[\\'",;)│┃]*[^\S\n]*(?:[\r\n]|\Z)""")
"""A word that has its line for itself."""
_LOUD = re.compile(r"[A-Z0-9+/_-]{6,}={0,2}(?![\w=:(.])")
"""No small letter, as in an AWS key."""
_WHOLE = re.compile(r"(?:hf_[A-Za-z0-9]{34}|gh[posur]_[A-Za-z0-9]{36}|A(?:KI|SI)A[A-Z0-9]{16})\Z")
_COUNTED = re.compile(r"(?<![A-Za-z0-9])(?:hf_|gh[posur]_|A(?:KI|SI)A|npm_|r8_)[A-Za-z0-9]*\Z")
_MADE = re.compile(
    r"(?<![A-Za-z0-9])(?:sk-|xox[a-z]|xapp-|eyJ|gl[a-z]{2,3}-|github_pat_|nvapi-|gsk_|AIza|hv[sb]\.|SG\.|ya29\.|dckr_)[\w.+/=%-]*\Z"
)
"""A token as far as its line goes: a whole one, one of known length, any other whose beginning names its maker."""
_NAMES = ("api-key", "api_key", "token", "password", "passwd", "secret", "access_key", "access-key", "authorization", "bearer")
_RESTS = "|".join(sorted({re.escape(name[at:]) for name in _NAMES for at in range(len(name))}, key=len, reverse=True))
_FLAG = re.compile(r"(?<!\S)--?[A-Za-z][\w-]*(?:key|token|password|secret)[ \t]?\Z")
_FLAG_ENDS = frozenset("yndt \t")  # what such a flag's line ends with
_AHEAD = re.compile(
    _MARGIN_TEXT
    + rf"""[^\S\n]{{0,40}}+(?=
      (?=[A-Za-z_-]{{1,13}}+(?<=[yndtrYNDTR])['"]?[=:\ ])(?i:{_RESTS})['"]?[=:\ ]
      |(?=[\w.-]{{16}})(?=[\w.-]*\d|[\w.-]*[a-z][A-Z]|[A-Z]{{16}})(?!(?:[\w-]+\.)+[A-Z]\w+:))""",
    re.VERBOSE,
)
"""A line that may begin inside the name of a secret, or inside the letters that a token begins with."""


def joints(text: str, anchors: Iterable[int], found: Callable[[str], Iterable[tuple[int, int]]], letters: Set[str]) -> list[Span]:
    """The line ends, each with the margins around it, in order. `anchors` are where names of secrets begin; `found` finds them anywhere;
    `letters`: every two letters side by side in one, and what it begins with where that is no letter, small.
    """
    lines = text.split("\n")
    ends = {text.find("\n", start, start + OPEN): start for start in anchors}  # the last anchor of each line
    done: set[int] = set()
    open_ends = [joint for end, start in ends.items() for joint in _continued(text, end, done, text.count(" ", start, end) <= CLOSE)]
    likely = {match.start() for match in _AHEAD.finditer(text)}
    inside = [
        (start, stop, text.find("\n", stop, stop + WIDEST)) for start, stop in _in_names(text, _wide_ends(lines), likely, found, letters)
    ]
    beyond = [joint for _, _, end in inside for joint in _continued(text, end, done)]
    longest: dict[int, int] = {}
    for start, stop in (*_at_width(text, lines), *open_ends, *((start, stop) for start, stop, _ in inside), *beyond):
        longest[start] = max(stop, longest.get(start, 0))
    return sorted(longest.items())


def _continued(text: str, end: int, done: set[int], close: bool = True) -> Iterator[Span]:
    """The line end at `end` where what may be a second half stands behind it, and the next ones as long as that goes on.

    `close`: the name of the secret stands so near that this line's last word is its first half, however short the line is.
    `done`: line ends from which this was looked for before, so that time is linear.
    """
    while end >= 0 and end not in done and (close or _wide(text, end)) and (margin := _MARGIN.match(text, end)) is not None:
        start = _before(text, end)
        stop = _beyond(text, margin.end(), start)
        if _WHOLE.search(text, max(0, start - LONGEST_ANCHOR), start):
            return
        if not (_wide(text, end) and _RANDOM.match(text, margin.end())) and not (close and _half(text, start, stop)):
            return
        close = True
        done.add(end)
        yield start, stop
        end = text.find("\n", stop, stop + WIDEST)
        if any(map(str.isspace, text[stop:end].strip(_BORDER + "\\"))):
            return


def _half(text: str, start: int, stop: int) -> bool:
    """Does what was begun before go on here, in a line of any length?"""
    tail = text[max(0, start - OPEN) : start].rsplit(None, 1)[-1:]
    if not tail or text[start - 1].isspace():
        return _FLAG.search(text[max(0, start - LONGEST_ANCHOR) : start]) is not None
    if text[stop] == "=" or text[start] == "\\" or (_COUNTED.search(tail[0]) and text[stop].isalnum()):
        return True
    begun = any(kind.match(text, stop) for kind in (_LOUD, _LONE, _RANDOM))
    return begun and (_MADE.search(tail[0]) is not None or _KNOWN.match(text, stop) is None)


def _beyond(text: str, at: int, start: int) -> int:
    """Where the next line's letters begin; one space stays behind a flag, which would else run into its value."""
    flag = text[max(0, start - 1) : start] in _FLAG_ENDS
    if text[at] not in " \t" and not flag:
        return at
    rest = at
    while text[rest : rest + 1] in (" ", "\t"):
        rest += 1
    return rest - 1 if flag and text[rest - 1] in " \t" and _FLAG.search(text[max(0, start - LONGEST_ANCHOR) : start]) else rest


def _wide(text: str, end: int) -> bool:
    """Is the line that ends here long enough to have been broken, or a line of a box?"""
    return (end >= NARROWEST and "\n" not in text[end - NARROWEST : end]) or text[max(0, end - 1) : end] in BORDERS


def _before(text: str, end: int) -> int:
    """Where a line's letters end: before the border of a box and the space in it, or the sign that a shell's line goes on."""
    if text[end - 1 : end] not in _CLOSING:  # most lines
        return end
    padding = text[max(0, end - 80) : end]
    return end - len(padding) + len(padding.rstrip(_BORDER) if padding.endswith(BORDERS) else padding.removesuffix("\r").removesuffix("\\"))


def _wide_ends(lines: list[str]) -> Iterator[int]:
    """Where the lines end that are long enough to have been broken, or are a box's."""
    end = -1
    for line in lines:
        end += len(line) + 1
        if len(line) >= NARROWEST or line.endswith(BORDERS):
            yield end


def _in_names(
    text: str, wide: Iterable[int], likely: set[int], found: Callable[[str], Iterable[tuple[int, int]]], letters: Set[str]
) -> list[Span]:
    """Line ends inside an anchor: ends and beginnings of lines are put side by side and looked through at once."""
    seams: list[str] = []
    places: list[int] = []
    spans: list[Span] = []
    at = 0
    for end in sorted({*wide, *likely}):
        if (margin := _MARGIN.match(text, end)) is None or (end not in likely and text[margin.end()] in " \t"):
            continue
        start = _before(text, end)
        stop = _beyond(text, margin.end(), start)
        seam = (text[start - 1 : start] + text[stop : stop + 1]).lower()
        if seam not in letters and seam[-1:] not in letters:
            continue
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
