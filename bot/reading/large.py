"""Reads a very large file in one pass and keeps what telling lines need; what is left out is marked, so that line numbers hold."""

import codecs
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from bot.reading.select import MANY, telling
from bot.reading.text import decode
from bot.rulebook.load import load_rulebook

LARGE = 2**20
CHUNK = 2**18
_NO_LINE = 2**15
"""A document of records has no line end in its first so many bytes."""
_BETWEEN = re.compile(rb'([}\]])\s{0,2},\s{0,2}(?=[{\[]")')
_GAP = re.compile(r"\[oombot left out (\d+) lines\]")
_WIDE = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16", codecs.BOM_UTF8: "utf-8-sig"}


def telling_text(path: Path) -> tuple[str, bool]:
    """(the telling lines with marks for what was left out, whether anything was). NotText when the file is none."""
    kept, count = telling(load_rulebook(), _records(_chunks(path)))
    return _marked(kept, count)


def condensed(lines: Sequence[str]) -> tuple[str, bool]:
    """The telling lines of a text, each gap marked; all of them where there are not many."""
    if len(lines) <= MANY and sum(map(len, lines)) <= LARGE:
        return "\n".join(lines), False
    steps = range(0, len(lines), 10_000)
    chunks = (("\n".join(lines[at : at + 10_000]) + ("\n" if at + 10_000 < len(lines) else "")).encode("utf-8", "replace") for at in steps)
    return _marked(*telling(load_rulebook(), _records(chunks)))


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


def _marked(kept: Sequence[tuple[int, str]], count: int) -> tuple[str, bool]:
    shown: list[str] = []
    last = 0
    for number, line in kept:
        if number > last + 1:
            shown.append(f"[oombot left out {number - last - 1} lines]")
        shown.append(line)
        last = number
    return "\n".join(shown), len(kept) < count


def _records(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """An export that is one line (an array of records): each record as a line of its own, so that it can be kept or left out by itself."""
    given = iter(chunks)
    first = next(given, b"").lstrip()
    if b"\n" in first[:_NO_LINE] or not first.startswith((b"[", b"{")):
        yield first
        yield from given
        return
    carry = b""
    for chunk in chain((first.removeprefix(b"["),), given):
        chunk = carry + chunk
        cut = max(chunk.rfind(b"}"), chunk.rfind(b"]"), 0)
        yield _BETWEEN.sub(rb"\1,\n", chunk[:cut])
        carry = chunk[cut:]
    yield carry


def _chunks(path: Path) -> Iterator[bytes]:
    """The file as UTF-8, a piece at a time."""
    with path.open("rb") as file:
        head = file.read(2**16)
        decode(head[: len(head) // 4 * 4])
        encoding = next((name for mark, name in _WIDE.items() if head.startswith(mark)), None)
        if encoding is None and head.count(0) > len(head) // 4:
            encoding = "utf-16-le" if head[1::2].count(0) >= head[::2].count(0) else "utf-16-be"
        if encoding is None:
            yield head
            while chunk := file.read(CHUNK):
                yield chunk
            return
        decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
        chunk = head
        while chunk:
            yield decoder.decode(chunk).encode()
            chunk = file.read(CHUNK)
        yield decoder.decode(b"", final=True).encode()
