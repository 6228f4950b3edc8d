"""Text lines as signed lines: exports unwrapped, signatures peeled, hard wraps undone, glued records parted."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from bot.domain.evidence import LogLine
from bot.reading.glued import pieces_of, records_of
from bot.reading.margins import unframed
from bot.reading.signatures import NOBODY, UNSIGNED, Head, Signatures, head_of, signatures_of
from bot.reading.text import BOXED, clean, unboxed
from bot.reading.unwrap import Shipped, unwrap
from bot.reading.wraps import Wrap, joint, may_stop, wrap_of
from bot.rulebook.book import Rulebook

_REPEATED = re.compile(r"\[repeated (\d{1,9})x across cluster\]")
_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt)\b")
_SIMILAR = re.compile(r"^\s*\[?(?:\.\.\.|…)\s*\(?(\d{1,9}) (?:more )?similar")


class _Piece(NamedTuple):
    """A cleaned stretch of a physical line: its width before peeling, what is left, and its signatures."""

    width: int
    text: str
    head: Head


def sign(book: Rulebook, source: int, lines: Iterable[tuple[int, str]]) -> Iterator[LogLine]:
    """LogLines of numbered text lines. A line glued from several gives several of one number; one broken by a hard wrap gives one."""
    signatures = signatures_of(book)
    for shipped, text, head in _inherited(_rejoined(signatures, *_pieces(signatures, lines))):
        for record in records_of(text):
            if record is text:
                yield _log_line(source, shipped, text, head)
            else:
                rest, own = signatures.peel(record)
                yield _log_line(source, shipped, rest, _both(head, own, shipped))


def _pieces(signatures: Signatures, lines: Iterable[tuple[int, str]]) -> tuple[list[Shipped], list[_Piece]]:
    """The pieces that the lines are made of, and of each the line; lines that are alike are taken apart once."""
    known: dict[str, _Piece] = {}
    whence: list[Shipped] = []
    found: list[_Piece] = []
    for shipped in unwrap(unframed(list(lines))):
        text, group = shipped.text, shipped.group
        alike = None if group else known.get(text)
        for part in pieces_of(text) if alike is None else (text,):
            piece = _peeled(signatures, part, group) if alike is None else alike
            whence.append(shipped)
            found.append(piece)
            if part is text and not group:
                known[text] = piece
    return whence, found


def _peeled(signatures: Signatures, part: str, group: str) -> _Piece:
    cleaned = clean(part)
    text, head = signatures.peel(cleaned, group)
    return _Piece(len(cleaned), unboxed(text) if text.startswith(BOXED) else text, head)


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


def _rejoined(signatures: Signatures, whence: Sequence[Shipped], pieces: Sequence[_Piece]) -> Iterator[tuple[Shipped, str, Head]]:
    """Pieces with wraps undone: a container runtime's partial line, or a line that was broken, goes on in unsigned ones."""
    if not pieces:
        return
    heads = [piece.head for piece in pieces]
    wrap = wrap_of([p.width for p in pieces], [p.text for p in pieces], [h.bare for h in heads], [bool(h.carriers) for h in heads])
    shipped, held = whence[0], pieces[0]
    last, text = held, held.text
    for given, piece in zip(whence[1:], pieces[1:], strict=True):
        plain = not wrap.width and held.head is UNSIGNED and last.head is UNSIGNED and not may_stop(last.text)  # most lines of talk
        glue = None if plain else _glue(held, text, last, piece, wrap)
        last = piece
        if glue is not None:
            text = text.rstrip() + glue + piece.text.lstrip() if glue else text + piece.text
            continue
        yield (shipped, text, held.head) if text is held.text else _whole(signatures, shipped, held, text)
        shipped, held, text = given, piece, piece.text
    yield (shipped, text, held.head) if text is held.text else _whole(signatures, shipped, held, text)


def _glue(held: _Piece, text: str, last: _Piece, piece: _Piece, wrap: Wrap) -> str | None:
    """What stood between what is held so far, as text, of which `last` is the end, and a piece; None where this begins a line."""
    if last.head.partial:
        return ""
    carriers = piece.head.carriers
    if not piece.head.bare or held.head.carriers[: len(carriers)] != carriers or not piece.text.strip():
        return None
    if not held.head.bare and not text.strip():
        return ""  # a head alone at a line's end: its message stands below
    return joint(last.text, piece.text, wrap, last.width)


def _whole(signatures: Signatures, shipped: Shipped, held: _Piece, text: str) -> tuple[Shipped, str, Head]:
    """A line that was broken in one piece; its signatures may have been broken too."""
    rest, own = signatures.peel(text)
    return shipped, rest, _both(held.head, own, shipped)


def _both(outer: Head, inner: Head, shipped: Shipped) -> Head:
    """What a line's signatures say together with those that stood behind a break in it."""
    return head_of([*outer.signatures, *inner.signatures], shipped.group) if inner.signatures else outer


def _log_line(source: int, shipped: Shipped, text: str, head: Head) -> LogLine:
    repeats = 1
    if "[repeated" in text and (repeated := _REPEATED.search(text)):
        repeats, text = int(repeated[1]), text[: repeated.start()].rstrip()
    elif "similar" in text and (similar := _SIMILAR.match(text)):
        repeats = int(similar[1])
    number, _, _, at, level, _ = shipped
    if head is UNSIGNED:
        return LogLine(source, number, text, NOBODY, level, at, None, None, repeats)
    return LogLine(
        source, number, text, head.speaker, head.level or level, head.at or at, head.file, head.file_line, repeats, not head.bare
    )
