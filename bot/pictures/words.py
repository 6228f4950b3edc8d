"""The picture in words: for screen readers, and for places that show no pictures."""

from collections.abc import Sequence

from bot.domain.size import gib
from bot.pictures.bars import NAMES, Bar, Part


def alt_text(bars: Sequence[Bar]) -> str:
    """Every figure that the picture shows, in its order."""
    if not bars:
        return "No rank reported enough to draw its budget."
    return " ".join(f"{_first_up(bar.label)}, {extent(bar)}: {', '.join(parts_in_words(bar))}." for bar in bars)


def extent(bar: Bar) -> str:
    """The device's size, or what was reported of a device whose size was not."""
    return gib(bar.total) if bar.whole else f"{gib(bar.total)} reported"


def parts_in_words(bar: Bar) -> list[str]:
    """Each part with its bytes and its share of the device; then what is missing."""
    said = [f"{NAMES[part.kind]} {_amount(bar, part)}" for part in bar.parts]
    if bar.missing:
        said.append(f"KV pool {gib(bar.missing)} short")
    if bar.claimed > bar.total:
        said.append(f"{gib(bar.claimed - bar.total)} more than the device has")
    return said


def share(bar: Bar, part: Part) -> str:
    """A part's share of the device in percent; nothing where the device's size was not reported."""
    return "" if not bar.whole else f"{100 * part.bytes / bar.total:.0f} %"


def _amount(bar: Bar, part: Part) -> str:
    spread = f"; {gib(bar.pool_range[0])} to {gib(bar.pool_range[1])}" if part.kind == "pool" and bar.pool_range else ""
    inside = f"{share(bar, part)}{spread}".removeprefix("; ")
    return f"{gib(part.bytes)} ({inside})" if inside else gib(part.bytes)


def _first_up(text: str) -> str:
    return text[:1].upper() + text[1:]
