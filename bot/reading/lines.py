"""Text lines as signed lines: exports unwrapped, signatures peeled, hard wraps undone, glued records parted."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from bot.domain.evidence import LogLine
from bot.reading.glued import pieces_of, records_of
from bot.reading.margins import unframed
from bot.reading.signatures import Head, head_of, signatures_of
from bot.reading.text import clean
from bot.reading.unwrap import Shipped, unwrap
from bot.reading.wraps import Wrap, goes_on, wrap_of
from bot.rulebook.book import Rulebook

_REPEATED = re.compile(r"\s*\[repeated (\d+)x across cluster\].*$")
_SIMILAR = re.compile(r"^\s*\[?(?:\.\.\.|…)\s*\(?(\d+) (?:more )?similar")


class _Piece(NamedTuple):
    """A cleaned stretch of one physical line: its record, its width before peeling, what is left, and its signatures."""

    shipped: Shipped
    width: int
    text: str
    head: Head


def sign(book: Rulebook, source: int, lines: Iterable[tuple[int, str]]) -> Iterator[LogLine]:
    """LogLines of numbered text lines. A line glued from several gives several of one number; one broken by a hard wrap gives one."""
    peel = signatures_of(book).peel
    pieces: list[_Piece] = []
    for shipped in unwrap(unframed(list(lines))):
        for part in pieces_of(shipped.text):
            cleaned = clean(part)
            text, head = peel(cleaned)
            pieces.append(_Piece(shipped, len(cleaned), text, head))
    for shipped, text, head in _rejoined(pieces):
        for record in records_of(text):
            if record is text:
                yield _log_line(source, shipped, text, head)
            else:
                rest, own = peel(record)
                yield _log_line(source, shipped, rest, head_of([*head.signatures, *own.signatures]) if own.signatures else head)


def _rejoined(pieces: Sequence[_Piece]) -> Iterator[tuple[Shipped, str, Head]]:
    """Pieces with hard wraps undone: the continuation of a line of full width is unsigned but for what carries it."""
    bare = [p.head.bare for p in pieces]
    wrap = wrap_of([p.width for p in pieces], [p.text for p in pieces], bare, [False, *(not b for b in bare[:-1])])
    held: list[_Piece] = []
    for piece in pieces:
        if held and not _broken(held, piece, wrap):
            yield _whole(held, wrap)
            held = []
        held.append(piece)
    if held:
        yield _whole(held, wrap)


def _whole(held: Sequence[_Piece], wrap: Wrap) -> tuple[Shipped, str, Head]:
    first = held[0]
    if len(held) == 1:
        return first.shipped, first.text, first.head
    joint = " " if wrap.words and not first.head.partial else ""
    return first.shipped, joint.join(p.text for p in held), first.head


def _broken(held: Sequence[_Piece], piece: _Piece, wrap: Wrap) -> bool:
    """Does the piece go on with what is held: a container runtime's partial line, or a line that was wrapped?"""
    last = held[-1]
    if last.head.partial:
        return True
    if not piece.head.bare or not wrap.broke(last.width, piece.text) or not piece.text.strip():
        return False
    return piece.head.carriers in ((), held[0].head.carriers) and goes_on(last.text, piece.text)


def _log_line(source: int, shipped: Shipped, text: str, head: Head) -> LogLine:
    if shipped.group:
        head = head_of(head.signatures, shipped.group)
    repeats = 1
    if "[repeated" in text and (repeated := _REPEATED.search(text)):
        repeats, text = int(repeated[1]), text[: repeated.start()]
    elif "similar" in text and (similar := _SIMILAR.match(text)):
        repeats = int(similar[1])
    return LogLine(
        source, shipped.number, text, head.speaker, head.level or shipped.level, head.at or shipped.at, head.file, head.file_line, repeats,
        bool(head.signatures),
    )  # fmt: skip
