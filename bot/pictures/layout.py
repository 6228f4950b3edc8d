"""Where everything stands in the picture: rectangles, lines and texts that SVG and PNG draw alike."""

from collections.abc import Iterator, Sequence

from bot.domain.size import gib
from bot.pictures.bars import NAMES, Bar, Kind, Part
from bot.pictures.marks import WIDE, Mark, Picture, Rectangle, Rule, Sheet, Text
from bot.pictures.words import extent, parts_in_words, share

BAR_HEIGHT, LINE, GAP = 34, 16, 20
LETTER = 7.4  # pixels, on average, of what is written at size 13
HALF_A_FIGURE = 40  # pixels: no figure is written under the line where the budget ends
MOST_BARS = 16  # more ranks than that are said, not drawn


def picture(bars: Sequence[Bar], sheet: Sheet = WIDE) -> Picture:
    """Legend, then one bar per rank on one common scale, each with its figures below."""
    shown = bars[:MOST_BARS]
    scale = max((max(bar.total, bar.claimed) for bar in shown), default=1)
    marks, bottom = _legend(shown, sheet)
    for bar in shown:
        marks += _named(bar, bottom, sheet)
        top = bottom if sheet.beside else bottom + 24
        marks += _drawn(bar, top, scale, sheet)
        captions = _captions(bar, sheet)
        marks += [
            Text(sheet.left, top + BAR_HEIGHT + LINE * (place + 1), text, 12, _alarm(bar) or "faint", room=sheet.room)
            for place, text in enumerate(captions)
        ]
        bottom = top + BAR_HEIGHT + LINE * len(captions) + GAP
    if not shown:
        marks.append(Text(sheet.margin, 80, "No rank reported enough to draw its budget.", 14, "ink", room=sheet.width - 2 * sheet.margin))
        bottom = 122
    if len(bars) > MOST_BARS:
        marks.append(Text(sheet.margin, bottom + 4, f"and {len(bars) - MOST_BARS} more ranks", 13, "faint"))
        bottom += 18
    return Picture(sheet.width, bottom, tuple(marks))


def _legend(bars: Sequence[Bar], sheet: Sheet) -> tuple[list[Mark], int]:
    """Its marks, and where the first bar begins."""
    names: list[tuple[str, str]] = [(kind, NAMES[kind]) for kind in _kinds(bars)]
    names += [("ink", "the budget ends")] if any(bar.budget for bar in bars) else []
    names += [("edge", "the device ends")] if any(bar.claimed > bar.total for bar in bars) else []
    marks: list[Mark] = []
    x, y = float(sheet.margin), 18
    for colour, name in names:
        if x + 20 + LETTER * len(name) > sheet.width - sheet.margin:
            x, y = float(sheet.margin), y + 22
        is_line = colour in ("ink", "edge")
        marks.append(Rule(x + 6, y - 2, y + 16, colour) if is_line else Rectangle(x, y, 14, 14, colour))
        marks.append(Text(x + (14 if is_line else 20), y + 12, name, 13, "ink"))
        x += 44 + LETTER * len(name)
    return marks, y + 34


def _kinds(bars: Sequence[Bar]) -> list[Kind]:
    present = {part.kind for bar in bars for part in bar.parts}
    return [kind for kind in NAMES if kind in present]


def _named(bar: Bar, top: float, sheet: Sheet) -> Iterator[Mark]:
    """The rank and its device: one above the other beside the bar, or in one line above it."""
    if sheet.beside:
        yield Text(sheet.margin, top + 15, bar.label, 14, "ink", bold=True, room=sheet.left - sheet.margin - 10)
        yield Text(sheet.margin, top + 31, extent(bar), 12, "faint")
        return
    yield Text(sheet.margin, top + 15, bar.label, 14, "ink", bold=True, room=sheet.room * 0.6)
    yield Text(sheet.margin + sheet.room * 0.62, top + 15, extent(bar), 12, "faint", room=sheet.room * 0.38)


def _drawn(bar: Bar, top: float, scale: int, sheet: Sheet) -> Iterator[Mark]:
    end = sheet.left + sheet.room * bar.budget / scale if bar.budget and bar.budget < bar.total else None
    x = float(sheet.left)
    for part in bar.parts:
        wide = sheet.room * part.bytes / scale
        yield Rectangle(x, top, wide, BAR_HEIGHT, part.kind)
        if end is None or not (x + 1 < end < x + wide - 1 and abs(x + wide / 2 - end) < HALF_A_FIGURE):
            yield from _inside(bar, part, x, top, wide)
        x += wide
    if end is not None:
        yield Rule(end, top - 3, top + BAR_HEIGHT + 3, "ink")
    if bar.claimed > bar.total:
        yield Rule(sheet.left + sheet.room * bar.total / scale, top - 6, top + BAR_HEIGHT + 6, "edge")


def _captions(bar: Bar, sheet: Sheet) -> list[str]:
    """The figures in words: in one line where bars are long, else in as many as they need."""
    words = parts_in_words(bar)
    if sheet.beside:
        return [" · ".join(words)]
    lines = [""]
    for word in words:
        longer = f"{lines[-1]} · {word}" if lines[-1] else word
        if lines[-1] and len(longer) * LETTER * 12 / 13 > sheet.room:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def _alarm(bar: Bar) -> str | None:
    """The colour of figures that do not fit."""
    return "edge" if bar.missing or bar.claimed > bar.total else None


def _inside(bar: Bar, part: Part, x: float, top: float, wide: float) -> Iterator[Mark]:
    """The part's figures inside it, where they have room."""
    ink, percent = f"on-{part.kind}", share(bar, part)
    if wide >= 76:
        yield Text(x + wide / 2, top + (15 if percent else 22), gib(part.bytes), 13, ink, bold=True, middle=True)
    if percent and wide >= 76:
        yield Text(x + wide / 2, top + 29, percent, 11, ink, middle=True)
    elif percent and wide >= 34:
        yield Text(x + wide / 2, top + 22, percent, 12, ink, middle=True)
