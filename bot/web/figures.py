"""Figures as a person reads them: bytes, counts, durations, and ranks that share them."""

from collections.abc import Mapping, Sequence
from typing import Any

from bot.domain.rank import runs
from bot.domain.size import gb as size_in_gb
from bot.domain.size import gib as size_in_gib


def gib(size: int | float | None) -> str:
    """Bytes in the binary units that engines print, or nothing when they are missing."""
    return "" if size is None else size_in_gib(size).replace("-", "−")


def gigabytes(size: int | float | None) -> str:
    """Bytes in decimal gigabytes, as vendors count."""
    return "" if size is None else size_in_gb(size).replace("-", "−")


def figure(value: object, unit: str) -> str:
    """One figure of a budget, or nothing when it is missing."""
    if value is None or not isinstance(value, int | float):
        return ""
    if unit == "bytes":
        return gib(value)
    text = f"{value:,}" if unit == "count" else f"{value:.2f}×" if unit == "ratio" else f"{value:g}"
    return text.replace("-", "−")


def exactly(value: object) -> str:
    """The exact bytes behind a rounded figure."""
    return f"{value:,} bytes" if isinstance(value, int) else ""


def day(at: object) -> str:
    """An ISO instant as a person reads it, in UTC."""
    text = str(at or "")
    return text[:16].replace("T", " ")


def lines(count: int) -> str:
    """So many lines."""
    return f"{count:,} line{'' if count == 1 else 's'}"


PLACE = {"rank", "label", "lines", "sources", "reported_by_rank"}


def alike(ranks: Sequence[Mapping[str, Any]]) -> list[tuple[str, Mapping[str, Any]]]:
    """Ranks whose figures are equal, as one column each: its heading, and the first of them. Where a figure was read does not count."""
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for rank in ranks:
        groups.setdefault(tuple(repr(value) for name, value in rank.items() if name not in PLACE), []).append(rank)
    if len(groups) == 1 and len(ranks) > 1:
        return [(f"each of {len(ranks)} ranks", ranks[0])]
    return [(_heading(group), group[0]) for group in groups.values()]


def _heading(group: Sequence[Mapping[str, Any]]) -> str:
    numbers = [rank["rank"] for rank in group if rank["rank"] is not None]
    if len(numbers) < len(group):
        return str(group[0].get("label") or "the engine") if len(group) == 1 else f"{len(group)} unnamed ranks"
    return f"rank {numbers[0]}" if len(numbers) == 1 else f"ranks {', '.join(runs(sorted(numbers), '–'))}"
