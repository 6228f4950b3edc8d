"""The budget picture in a page: both colour schemes, wide and for a phone, as images that need no address; and the same in words."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bot.pictures import NARROW, WIDE, alt_text, bars_of, budget_svg


@dataclass(frozen=True, slots=True)
class Drawing:
    """Data addresses: a diagnosis that is not kept has no address of its own."""

    light: str
    dark: str
    narrow_light: str
    narrow_dark: str
    alt: str


def drawing(document: Mapping[str, Any]) -> Drawing | None:
    """The picture of a diagnosis or sizing document; None when no rank says enough for a bar."""
    bars = bars_of(document)
    if not bars:
        return None
    return Drawing(
        light=_address(budget_svg(bars, "light", WIDE)),
        dark=_address(budget_svg(bars, "dark", WIDE)),
        narrow_light=_address(budget_svg(bars, "light", NARROW)),
        narrow_dark=_address(budget_svg(bars, "dark", NARROW)),
        alt=alt_text(bars),
    )


def _address(svg: str) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()
