"""The picture as PNG, at twice its size for sharp screens; pillow is imported when it is drawn."""

from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING

from bot.pictures.bars import Bar
from bot.pictures.layout import picture
from bot.pictures.marks import COLOURS, Mark, Rectangle, Rule, Text

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont, ImageFont

_SCALE = 2
_SMALLEST = 8


def budget_png(bars: Sequence[Bar]) -> bytes:
    """The same marks as the light SVG, on an opaque ground that stands on dark and light pages alike."""
    from PIL import Image, ImageDraw

    drawn, colours = picture(bars), COLOURS["light"]
    image = Image.new("RGB", (drawn.width * _SCALE, drawn.height * _SCALE), colours["ground"])
    pen = ImageDraw.Draw(image)
    for mark in drawn.marks:
        _draw(pen, mark, colours[mark.colour])
    out = BytesIO()
    image.save(out, "PNG", optimize=True)
    return out.getvalue()


def _draw(pen: "ImageDraw", mark: Mark, colour: str) -> None:
    match mark:
        case Rectangle():
            corner = ((mark.x + mark.width) * _SCALE - 1, (mark.y + mark.height) * _SCALE - 1)
            if mark.width * _SCALE >= 1:
                pen.rectangle(((mark.x * _SCALE, mark.y * _SCALE), corner), fill=colour)
        case Rule():
            pen.line(((mark.x * _SCALE, mark.top * _SCALE), (mark.x * _SCALE, mark.bottom * _SCALE)), fill=colour, width=2 * _SCALE)
        case Text():
            font = _font(mark)
            where, anchor = (mark.x * _SCALE, mark.y * _SCALE), "ms" if mark.middle else "ls"
            pen.text(where, mark.text, fill=colour, font=font, anchor=anchor, stroke_width=0.6 if mark.bold else 0)


def _font(mark: Text) -> "FreeTypeFont | ImageFont":
    """The size asked for, or the largest that leaves the text in its room."""
    from PIL import ImageFont

    size = mark.size
    font = ImageFont.load_default(size * _SCALE)
    while mark.room is not None and size > _SMALLEST and font.getlength(mark.text) > mark.room * _SCALE:
        size -= 1
        font = ImageFont.load_default(size * _SCALE)
    return font
