"""Log files inside gzip, zip and tar, bounded so that a bomb stays small."""

import io
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import PurePosixPath

from bot.reading.text import NotText, decode

MOST_BYTES = 256 * 2**20
MOST_FILES = 50
_STEP = 2**20
_LOGS = frozenset({
    "", ".log", ".txt", ".out", ".err", ".json", ".jsonl", ".ndjson", ".csv", ".yaml", ".yml", ".md", ".gz", ".toml", ".ini", ".env", ".sh",
    ".prom", ".py",
})  # fmt: skip


def unpacked(name: str, data: bytes, most: int = MOST_BYTES) -> list[tuple[str, bytes]]:
    """(name, bytes) of each text inside; the data itself when it is no archive. NotText when it is broken, or grows beyond `most` bytes.

    A gzip file that was cut short gives what it holds. Pictures and other files without text are left out.
    """
    if data.startswith(b"\x1f\x8b"):
        data, name = _gunzipped(data, most), name.removesuffix(".gz").removesuffix(".tgz")
    if data.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _texts(name, "zip", _zip_members(data, most), most)
    if data[257:262] == b"ustar":
        return _texts(name, "tar", _tar_members(data, most), most)
    return [(name, data)]


def _texts(name: str, kind: str, members: Iterator[tuple[str, bytes]], most: int) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    try:
        for inner, content in members:
            if content.startswith(b"\x1f\x8b"):
                content = _gunzipped(content, most - sum(len(c) for _, c in found))
            if _is_text(content):
                found.append((inner, content))
            if sum(len(c) for _, c in found) > most:
                raise _too_large(most)
    except (zipfile.BadZipFile, tarfile.TarError, RuntimeError, zlib.error, NotImplementedError, OSError, EOFError) as error:
        raise NotText(f"the {kind} file cannot be read ({error}); send it without a password, or send the text") from None
    if not found:
        raise NotText(f"the {kind} holds no text file; send the logs as .log or .txt")
    return found


def _zip_members(data: bytes, most: int) -> Iterator[tuple[str, bytes]]:
    """The directory of a zip may lie about sizes: what counts is what comes out."""
    left = most
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [m for m in archive.infolist() if not m.is_dir() and _wanted(m.filename)]
        for member in sorted(members, key=lambda m: m.filename)[:MOST_FILES]:
            with archive.open(member) as file:
                content = file.read(left + 1)
            left = _rest(left, content, most)
            yield member.filename, content


def _tar_members(data: bytes, most: int) -> Iterator[tuple[str, bytes]]:
    left = most
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        members = [m for m in archive if m.isfile() and _wanted(m.name)]
        for member in sorted(members, key=lambda m: m.name)[:MOST_FILES]:
            file = archive.extractfile(member)
            content = b"" if file is None else file.read(left + 1)
            left = _rest(left, content, most)
            yield member.name, content


def _rest(left: int, content: bytes, most: int) -> int:
    if len(content) > left:
        raise _too_large(most)
    return left - len(content)


def _too_large(most: int) -> NotText:
    return NotText(f"it unpacks to more than {most >> 20} MiB; send the part around the first error")


def _wanted(name: str) -> bool:
    """Logs by their ending (also `vllm.log.1`, `messages-20261130`); not what an operating system adds."""
    path = PurePosixPath(name)
    if "__MACOSX" in path.parts or path.name.startswith("._"):
        return False
    return path.suffix.lower() in _LOGS or path.suffix[1:].isdigit() or "." not in path.name or ".log" in path.name.lower()


def _is_text(content: bytes) -> bool:
    if not content.strip():
        return False
    try:
        decode(content[: 2**16])
    except NotText:
        return False
    return True


def _gunzipped(data: bytes, most: int) -> bytes:
    """Members of a gzip file one after another, up to `most` bytes."""
    out: list[bytes] = []
    taken = 0
    while data.startswith(b"\x1f\x8b"):
        stream = zlib.decompressobj(wbits=31)
        while not stream.eof:
            try:
                piece = stream.decompress(data, _STEP)
            except zlib.error as error:
                if out:
                    return b"".join(out)
                raise NotText("the gzip file is damaged; send it again or send the text") from error
            taken += len(piece)
            if taken > most:
                raise _too_large(most)
            out.append(piece)
            data = stream.unconsumed_tail
            if not piece and not data:
                return b"".join(out)
        data = stream.unused_data
    return b"".join(out)
