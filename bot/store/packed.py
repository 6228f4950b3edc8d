"""How text and documents lie in a row: UTF-8, zlib, at most 1 MB of text a contribution. Standard library only."""

import hashlib
import json
import zlib
from collections.abc import Mapping
from typing import Any

MOST_TEXT = 1_000_000  # bytes of UTF-8 of one contribution


def pack(text: str) -> bytes:
    """Text as zlib bytes. Stray surrogates, which undecodable pastes leave, survive."""
    return zlib.compress(text.encode("utf-8", "surrogatepass"), 6)


def unpack(data: bytes | None) -> str | None:
    """The same backwards; None stays None (erased)."""
    return None if data is None else zlib.decompress(data).decode("utf-8", "surrogatepass")


def pack_document(document: Mapping[str, Any]) -> bytes:
    """A JSON-ready mapping as zlib bytes."""
    return zlib.compress(json.dumps(document, ensure_ascii=True, separators=(",", ":")).encode("ascii"), 6)


def unpack_document(data: bytes) -> dict[str, Any]:
    """The same backwards."""
    document: dict[str, Any] = json.loads(zlib.decompress(data))
    return document


def digest(text: str) -> str:
    """The sha256 of a text as kept, in hex."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def cut(text: str) -> tuple[str, bool]:
    """The text, cut at a line end below 1 MB, and whether that was needed. Intake keeps what reading used; this is the last fence."""
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= MOST_TEXT:
        return text, False
    head = data[:MOST_TEXT]
    end = head.rfind(b"\n") + 1 or MOST_TEXT
    return head[:end].decode("utf-8", "ignore"), True


def plain(value: Any) -> str | None:
    """A value as a text column takes it: no NUL (PostgreSQL refuses it), no stray surrogates. None stays None."""
    if value is None:
        return None
    return str(value).replace("\x00", "").encode("utf-8", "replace").decode("utf-8")
