"""The picture as SVG: no script, no outside font, named and described for screen readers."""

from collections.abc import Callable, Sequence
from html import escape
from zlib import crc32

from bot.pictures.bars import Bar
from bot.pictures.layout import picture
from bot.pictures.marks import COLOURS, WIDE, Mark, Rectangle, Rule, Sheet, Text, Theme
from bot.pictures.words import alt_text

_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
_LETTER, _BOLD = 0.53, 0.64  # average width of a letter against its size; what is longer than its room is squeezed into it


def budget_svg(bars: Sequence[Bar], theme: Theme = "light", sheet: Sheet = WIDE) -> str:
    """One bar per rank, in bytes and percent, in the colours of `theme`."""
    drawn = picture(bars, sheet)
    colours = COLOURS[theme]
    name = f"budget-{crc32(alt_text(bars).encode()):08x}"  # two pictures may stand on one page
    marks = "".join(_mark(mark, colours.__getitem__) for mark in drawn.marks)
    size = f'width="{drawn.width}" height="{drawn.height}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {drawn.width} {drawn.height}" {size} role="img" '
        f'aria-labelledby="{name}-title {name}-desc" font-family="{_FONT}"><title id="{name}-title">Memory budget per rank</title>'
        f'<desc id="{name}-desc">{escape(alt_text(bars))}</desc>'
        f'<rect {size} rx="8" fill="{colours["ground"]}"/>{marks}</svg>'
    )


def _mark(mark: Mark, colour: Callable[[str], str]) -> str:
    match mark:
        case Rectangle():
            return f'<rect x="{mark.x:.1f}" y="{mark.y:.1f}" width="{mark.width:.1f}" height="{mark.height}" fill="{colour(mark.colour)}"/>'
        case Rule():
            return (
                f'<line x1="{mark.x:.1f}" x2="{mark.x:.1f}" y1="{mark.top:.1f}" y2="{mark.bottom:.1f}" '
                f'stroke="{colour(mark.colour)}" stroke-width="2"/>'
            )
        case Text():
            return _text(mark, colour(mark.colour))


def _text(mark: Text, fill: str) -> str:
    weight = ' font-weight="600"' if mark.bold else ""
    anchor = ' text-anchor="middle"' if mark.middle else ""
    wide = mark.room is not None and len(mark.text) * mark.size * (_BOLD if mark.bold else _LETTER) > mark.room
    squeezed = f' textLength="{mark.room:.0f}" lengthAdjust="spacingAndGlyphs"' if wide else ""
    where = f'x="{mark.x:.1f}" y="{mark.y:.1f}" font-size="{mark.size}"'
    return f'<text {where} fill="{fill}"{weight}{anchor}{squeezed}>{escape(mark.text)}</text>'
