"""Turns what a pattern captured into values: sizes in bytes, counts as integers."""

from collections.abc import Callable
from typing import Any

from bot.domain.size import GB, GIB, MB, MIB, parse_size


def _number(text: str) -> float:
    return float(text.replace(",", "").replace("\u2212", "-"))


def _words(text: str) -> str:
    return " ".join(text.split())


KINDS: dict[str, Callable[[str], Any]] = {
    "size": parse_size,
    "gib": lambda text: round(_number(text) * GIB),
    "mib": lambda text: round(_number(text) * MIB),
    "gb": lambda text: round(_number(text) * GB),
    "mb": lambda text: round(_number(text) * MB),
    "bytes": lambda text: round(_number(text)),
    "kb": lambda text: round(_number(text) * 1024),
    "int": lambda text: int(_number(text)),
    "float": _number,
    "text": _words,
}
"""Field kinds a rule may name. `gib` is a bare figure whose unit is GiB whatever the line calls it."""


def parse(kind: str, text: str) -> Any:
    """The value of a captured text; ValueError when it does not have that form."""
    return KINDS[kind](text)
