"""Text lines as signed lines: exports unwrapped, signatures peeled, hard wraps undone, glued records parted."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from bot.domain.evidence import LogLine
from bot.reading.glued import pieces_of, records_of
from bot.reading.margins import unframed
from bot.reading.signatures import UNSIGNED, Head, head_of, signatures_of
from bot.reading.text import BOXED, clean, unboxed
from bot.reading.unwrap import Shipped, unwrap
from bot.reading.wraps import joint, wrap_of
from bot.rulebook.book import Rulebook

_REPEATED = re.compile(r"\[repeated (\d{1,9})x across cluster\]")
_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt)\b")
_SIMILAR = re.compile(r"^\s*\[?(?:\.\.\.|…)\s*\(?(\d{1,9}) (?:more )?similar")


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
            text, head = peel(cleaned, shipped.group)
            text = unboxed(text) if text.startswith(BOXED) else text
            pieces.append(_Piece(shipped, len(cleaned), text, head))
    for shipped, text, head in _inherited(_rejoined(book, pieces)):
        for record in records_of(text):
            if record is text:
                yield _log_line(source, shipped, text, head)
            else:
                rest, own = peel(record)
                yield _log_line(source, shipped, rest, _both(head, own, shipped))


def _inherited(records: Iterable[tuple[Shipped, str, Head]]) -> Iterator[tuple[Shipped, str, Head]]:
    """A traceback below a signed header that is not signed itself (SGLang, TensorRT-LLM) belongs to the header's process."""
    header: Head | None = None
    for shipped, text, head in records:
        if not head.bare:
            goes_on = "Traceback (most recent call last)" in text or (head.level == "E" and "rank" in head.speaker.parts)
            header = head if goes_on else None
        elif header is not None and header.level == "E" and not text.strip():
            pass  # TensorRT-LLM parts the paragraphs of one message with empty lines
        elif header is not None and text.strip() and head.speaker.group == header.speaker.group:
            head = replace(UNSIGNED, speaker=header.speaker)
            header = None if _EXCEPTION.match(text) else header
        else:
            header = None
        yield shipped, text, head


def _rejoined(book: Rulebook, pieces: Sequence[_Piece]) -> Iterator[tuple[Shipped, str, Head]]:
    """Pieces with wraps undone: a container runtime's partial line, or a line that was broken, goes on in unsigned ones."""
    heads = [p.head for p in pieces]
    wrap = wrap_of([p.width for p in pieces], [p.text for p in pieces], [h.bare for h in heads], [bool(h.carriers) for h in heads])
    held: _Piece | None = None
    text = ""
    for last, piece in zip([None, *pieces], pieces, strict=False):
        glue: str | None = None
        if held is not None and last is not None:
            if last.head.partial:
                glue = ""
            elif piece.head.bare and piece.text.strip() and held.head.carriers[: len(piece.head.carriers)] == piece.head.carriers:
                empty = not text.strip() and not held.head.bare  # a head alone at a line's end: its message stands below
                glue = "" if empty else joint(last.text, piece.text, wrap, last.width)
        if glue is not None:
            text = text.rstrip() + glue + piece.text.lstrip() if glue else text + piece.text
            continue
        if held is not None:
            yield _whole(book, held, text)
        held, text = piece, piece.text
    if held is not None:
        yield _whole(book, held, text)


def _whole(book: Rulebook, held: _Piece, text: str) -> tuple[Shipped, str, Head]:
    """A line in one piece; its signatures may have been broken too."""
    if text is held.text:
        return held.shipped, text, held.head
    rest, own = signatures_of(book).peel(text)
    return held.shipped, rest, _both(held.head, own, held.shipped)


def _both(outer: Head, inner: Head, shipped: Shipped) -> Head:
    """What a line's signatures say together with those that stood behind a break in it."""
    return head_of([*outer.signatures, *inner.signatures], shipped.group) if inner.signatures else outer


def _log_line(source: int, shipped: Shipped, text: str, head: Head) -> LogLine:
    repeats = 1
    if "[repeated" in text and (repeated := _REPEATED.search(text)):
        repeats, text = int(repeated[1]), text[: repeated.start()].rstrip()
    elif "similar" in text and (similar := _SIMILAR.match(text)):
        repeats = int(similar[1])
    return LogLine(
        source, shipped.number, text, head.speaker, head.level or shipped.level, head.at or shipped.at, head.file, head.file_line, repeats,
        not head.bare,
    )  # fmt: skip
