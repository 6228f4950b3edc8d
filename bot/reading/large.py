"""Reads a very large file in one pass and keeps what telling lines need; what is left out is marked, so that line numbers hold."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from bot.reading.select import telling
from bot.reading.text import decode, split_lines
from bot.rulebook.load import load_rulebook

LARGE = 4 * 2**20
_GAP = re.compile(r"\[oombot left out (\d+) lines\]")


def telling_text(path: Path) -> tuple[str, bool]:
    """(the telling lines with marks for what was left out, whether anything was)."""
    return condensed(split_lines(decode(path.read_bytes())))


def condensed(lines: Sequence[str]) -> tuple[str, bool]:
    """The telling lines of a text, each gap marked."""
    kept: list[str] = []
    last = 0
    for number, line in telling(load_rulebook(), lines):
        if number > last + 1:
            kept.append(f"[oombot left out {number - last - 1} lines]")
        kept.append(line)
        last = number
    return "\n".join(kept), last < len(lines) or len(kept) != len(lines)


def numbered(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Lines with the numbers that they had in the text as given."""
    number = 0
    for line in lines:
        gap = _GAP.fullmatch(line) if line.startswith("[oombot") else None
        if gap is not None:
            number += int(gap[1])
            continue
        number += 1
        yield number, line
