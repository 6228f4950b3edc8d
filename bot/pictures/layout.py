"""Where everything stands in the picture: rectangles, lines and texts that SVG and PNG draw alike."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from bot.domain.size import gib
from bot.pictures.bars import NAMES, Bar, Kind, Part
from bot.pictures.words import extent, parts_in_words, share

Theme = Literal["light", "dark"]
WIDTH, MARGIN, BAR_LEFT = 900, 20, 164
BAR_HEIGHT, CAPTION, GAP = 34, 20, 16
HALF_A_FIGURE = 40  # pixels: no figure is written under the line where the budget ends
MOST_BARS = 16  # more ranks than that are said, not drawn

COLOURS: Mapping[Theme, Mapping[str, str]] = {
    "light": {
        "ground": "#ffffff", "ink": "#1c2024", "faint": "#5a636d", "edge": "#b3261e",
        "weights": "#2f5fa7", "other": "#a85400", "pool": "#1d7348", "outside": "#d3d9e0", "unknown": "#eceff2",
        "on-weights": "#ffffff", "on-other": "#ffffff", "on-pool": "#ffffff", "on-outside": "#1c2024", "on-unknown": "#1c2024",
    },
    "dark": {
        "ground": "#1b1e22", "ink": "#e8eaed", "faint": "#a4adb6", "edge": "#ff8a80",
        "weights": "#8db4ec", "other": "#f0a860", "pool": "#7fd0a3", "outside": "#4a525b", "unknown": "#2b3036",
        "on-weights": "#10151b", "on-other": "#10151b", "on-pool": "#10151b", "on-outside": "#e8eaed", "on-unknown": "#e8eaed",
    },
}  # fmt: skip
"""Text stands on every colour with a contrast of at least 4.5 to 1; blue, orange and green stay apart for colour-blind eyes."""


@dataclass(frozen=True, slots=True)
class Rectangle:
    """Filled with the colour of that name."""

    x: float
    y: float
    width: float
    height: float
    colour: str


@dataclass(frozen=True, slots=True)
class Rule:
    """A vertical line."""

    x: float
    top: float
    bottom: float
    colour: str


@dataclass(frozen=True, slots=True)
class Text:
    """`y` is the baseline. `room`: pixels it may take; a longer text is set smaller."""

    x: float
    y: float
    text: str
    size: int
    colour: str
    bold: bool = False
    middle: bool = False
    room: float | None = None


Mark = Rectangle | Rule | Text


@dataclass(frozen=True, slots=True)
class Picture:
    """Marks in drawing order, on a ground of WIDTH × `height` pixels."""

    height: int
    marks: tuple[Mark, ...]


def picture(bars: Sequence[Bar]) -> Picture:
    """Legend, then one bar per rank on one common scale, each with its figures below."""
    shown = bars[:MOST_BARS]
    scale = max((max(bar.total, bar.claimed) for bar in shown), default=1)
    step = BAR_HEIGHT + CAPTION + GAP
    marks: list[Mark] = list(_legend(shown))
    for row, bar in enumerate(shown):
        marks += _row(bar, 52 + row * step, scale)
    bottom = 52 + max(1, len(shown)) * step
    if not shown:
        marks.append(Text(MARGIN, 80, "No rank reported enough to draw its budget.", 14, "ink"))
    if len(bars) > MOST_BARS:
        marks.append(Text(MARGIN, bottom + 4, f"and {len(bars) - MOST_BARS} more ranks", 13, "faint"))
        bottom += 18
    return Picture(bottom, tuple(marks))


def _legend(bars: Sequence[Bar]) -> Iterator[Mark]:
    x = float(MARGIN)
    for kind in _kinds(bars):
        yield Rectangle(x, 18, 14, 14, kind)
        yield Text(x + 20, 30, NAMES[kind], 13, "ink")
        x += 44 + 7.4 * len(NAMES[kind])
    if any(bar.budget for bar in bars):
        yield Rule(x + 6, 16, 34, "ink")
        yield Text(x + 14, 30, "the budget ends", 13, "ink")


def _kinds(bars: Sequence[Bar]) -> list[Kind]:
    present = {part.kind for bar in bars for part in bar.parts}
    return [kind for kind in NAMES if kind in present]


def _row(bar: Bar, top: float, scale: int) -> Iterator[Mark]:
    yield Text(MARGIN, top + 15, bar.label, 14, "ink", bold=True, room=BAR_LEFT - MARGIN - 10)
    yield Text(MARGIN, top + 31, extent(bar), 12, "faint")
    width = WIDTH - MARGIN - BAR_LEFT
    end = BAR_LEFT + width * bar.budget / scale if bar.budget and bar.budget < bar.total else None
    x = float(BAR_LEFT)
    for part in bar.parts:
        wide = width * part.bytes / scale
        yield Rectangle(x, top, wide, BAR_HEIGHT, part.kind)
        if end is None or not (x + 1 < end < x + wide - 1 and abs(x + wide / 2 - end) < HALF_A_FIGURE):
            yield from _inside(bar, part, x, top, wide)
        x += wide
    if end is not None:
        yield Rule(end, top - 3, top + BAR_HEIGHT + 3, "ink")
    if bar.claimed > bar.total:
        yield Rule(BAR_LEFT + width * bar.total / scale, top - 6, top + BAR_HEIGHT + 6, "edge")
    colour = "edge" if bar.missing or bar.claimed > bar.total else "faint"
    yield Text(BAR_LEFT, top + BAR_HEIGHT + 16, " · ".join(parts_in_words(bar)), 12, colour, room=width)


def _inside(bar: Bar, part: Part, x: float, top: float, wide: float) -> Iterator[Mark]:
    """The part's figures inside it, where they have room."""
    ink = f"on-{part.kind}"
    if wide >= 76:
        yield Text(x + wide / 2, top + 15, gib(part.bytes), 13, ink, bold=True, middle=True)
        yield Text(x + wide / 2, top + 29, share(bar, part), 11, ink, middle=True)
    elif wide >= 34:
        yield Text(x + wide / 2, top + 22, share(bar, part), 12, ink, middle=True)
