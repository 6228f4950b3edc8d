"""What a picture is made of: a sheet, its colours, and the marks on it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Theme = Literal["light", "dark"]

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
class Sheet:
    """What is drawn on, in pixels. Bars begin at `left`: beside their names, or below them where that is the margin."""

    width: int
    margin: int
    left: int

    @property
    def room(self) -> int:
        """How wide a bar may be."""
        return self.width - self.margin - self.left

    @property
    def beside(self) -> bool:
        """Do names stand beside their bars?"""
        return self.left > self.margin


WIDE = Sheet(900, 20, 164)
NARROW = Sheet(360, 12, 12)
"""As wide as a phone shows it without being scrolled."""


@dataclass(frozen=True, slots=True)
class Picture:
    """Marks in drawing order, on a ground of `width` × `height` pixels."""

    width: int
    height: int
    marks: tuple[Mark, ...]
