"""A file as texts: plain, gzip, or a zip of several; bounded, so that a small file cannot grow without end."""

import io
import zipfile
import zlib
from dataclasses import dataclass

from bot.reading.text import NotText, decode

MOST_UNPACKED = 100 * 1024 * 1024  # bytes over all members
MOST_MEMBERS = 20
CHUNK = 1024 * 1024


class NotLogError(Exception):
    """The file is no log that can be read; the message says what to send instead."""


@dataclass(frozen=True, slots=True)
class Part:
    """One text of a file; `name` is None for the file itself."""

    name: str | None
    text: str


def texts_of(data: bytes) -> list[Part]:
    """Every text in a file. NotLogError for an empty, binary, broken, encrypted or overgrown one."""
    if not data:
        raise NotLogError("it is empty.")
    if data.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _zipped(data)
    return [Part(None, _text(_gunzipped(data, MOST_UNPACKED) if data.startswith(b"\x1f\x8b") else data))]


def _zipped(data: bytes) -> list[Part]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [member for member in archive.infolist() if not member.is_dir() and "__MACOSX/" not in member.filename]
            if not members:
                raise NotLogError("the archive holds no file.")
            return _members(archive, members[:MOST_MEMBERS])
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError) as broken:
        raise NotLogError(f"the zip archive cannot be opened ({type(broken).__name__}): send the log itself, or as .gz.") from broken


def _members(archive: zipfile.ZipFile, members: list[zipfile.ZipInfo]) -> list[Part]:
    left = MOST_UNPACKED
    parts: list[Part] = []
    refused = ""
    for member in members:
        # The directory may lie about sizes: what is counted is what comes out.
        with archive.open(member) as opened:
            content = opened.read(left + 1)
        left -= len(content)
        if left < 0:
            raise NotLogError(f"it unpacks to more than {MOST_UNPACKED // 2**20} MiB: send the part around the first error.")
        try:
            parts.append(Part(member.filename, _text(_gunzipped(content, max(left, 0)) if content.startswith(b"\x1f\x8b") else content)))
        except NotLogError as no_log:
            refused = str(no_log)
    if not parts:
        raise NotLogError(refused)
    return parts


def _gunzipped(data: bytes, most: int) -> bytes:
    """Members of a gzip file one after another, up to `most` bytes; a file cut short gives what it holds."""
    out: list[bytes] = []
    taken = 0
    while data.startswith(b"\x1f\x8b"):
        stream = zlib.decompressobj(wbits=31)
        while not stream.eof:
            try:
                piece = stream.decompress(data, CHUNK)
            except zlib.error as broken:
                if out:
                    return b"".join(out)
                raise NotLogError("the gzip file is damaged: send the log itself.") from broken
            taken += len(piece)
            if taken > most:
                raise NotLogError(f"it unpacks to more than {MOST_UNPACKED // 2**20} MiB: send the part around the first error.")
            out.append(piece)
            data = stream.unconsumed_tail
            if not piece and not data:
                return b"".join(out)
        data = stream.unused_data
    return b"".join(out)


def _text(data: bytes) -> str:
    try:
        text = decode(data)
    except NotText as refused:
        raise NotLogError(f"{refused}.") from refused
    if not text.strip():
        raise NotLogError("it holds no text.")
    return text
