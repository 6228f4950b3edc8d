"""Turns what a pattern captured into values: sizes in bytes, counts as integers."""

import re
from collections.abc import Callable
from typing import Any

from bot.domain.size import GB, GIB, LARGEST, MB, MIB, parse_size

_DECIMAL = re.compile(r"(?<=[\d ])([KMGT])B\b")


def _number(text: str) -> float:
    number = float(_plain(text))
    if not abs(number) <= LARGEST:
        raise ValueError(f"{text[:40]!r} is no figure that a log can mean")
    return number


def _whole(text: str) -> int:
    """Digits stay what they are: a float would make another number of a long one."""
    plain = _plain(text)
    number = _number(text)
    return int(plain) if plain.lstrip("+-").isdecimal() else int(number)


def _plain(text: str) -> str:
    return text.replace(",", "").replace("\u2212", "-")


def _words(text: str) -> str:
    return " ".join(text.split())


def _binary(text: str) -> int:
    """A size whose unit is a power of 1024 whatever it is called: `594 MB` for what was printed as 594.00 MiB."""
    return parse_size(_DECIMAL.sub(r"\1iB", text))


KINDS: dict[str, Callable[[str], Any]] = {
    "size": parse_size,
    "binary": _binary,
    "gib": lambda text: round(_number(text) * GIB),
    "mib": lambda text: round(_number(text) * MIB),
    "gb": lambda text: round(_number(text) * GB),
    "mb": lambda text: round(_number(text) * MB),
    "bytes": lambda text: round(_number(text)),
    "kb": lambda text: round(_number(text) * 1024),
    "int": _whole,
    "float": _number,
    "text": _words,
}
"""Field kinds a rule may name. `binary`: PyTorch's units, which people write without their i.
`gib` is a bare figure whose unit is GiB whatever the line calls it."""


def parse(kind: str, text: str) -> Any:
    """The value of a captured text; ValueError when it does not have that form, or is a figure beyond all that there are."""
    return KINDS[kind](text)
