"""Log files inside gzip, zip and tar, bounded so that a bomb stays small."""

import io
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from bot.reading.text import NotText, decode, harmless

MOST_BYTES = 256 * 2**20
MOST_FILES = 50
MOST_MEMBERS = 5000
"""Members that are looked at to choose those that hold an error."""
_TELLING = (b"out of memory", b"OutOfMemory", b"Error", b"Killed", b"OOMKilled")
_FIRST_STEP, _STEP = 2**12, 2**20
_GZIP = b"\x1f\x8b"
_LOGS = frozenset({
    "", ".log", ".txt", ".out", ".err", ".json", ".jsonl", ".ndjson", ".csv", ".yaml", ".yml", ".md", ".gz", ".toml", ".ini", ".env", ".sh",
    ".prom", ".py",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Unpacked:
    """(name, bytes) of each text inside; `left_out` is a sentence for whoever sent it where that is not everything."""

    parts: list[tuple[str, bytes]]
    left_out: str | None = None


def unpacked(name: str, data: bytes, most: int = MOST_BYTES) -> list[tuple[str, bytes]]:
    """The texts inside, without the sentence of `opened`."""
    return opened(name, data, most).parts


def opened(name: str, data: bytes, most: int = MOST_BYTES) -> Unpacked:
    """The texts inside; the data itself when it is no archive. NotText when it is broken, or grows beyond `most` bytes.

    A gzip file that was cut short gives what it holds, and says so. Pictures and other files without text are left out.
    Of very many logs those that hold an error come before the others.
    """
    says, name = None, harmless(name)
    if data.startswith(_GZIP):
        given = name
        (data, whole), name = _gunzipped(data, most, most), name.removesuffix(".gz").removesuffix(".tgz")
        says = None if whole else f"{given} was cut short: only its beginning could be read. Send the whole file for what came after."
    if data.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        parts, unopened = _texts("zip", _zip_members, data, most)
    elif data[257:262] == b"ustar":
        parts, unopened = _texts("tar", _tar_members, data, most)
    else:
        return Unpacked([(name, data)], says)
    chosen = _chosen(parts)
    if len(chosen) < len(parts) or unopened:
        beside = f" and {unopened} more that were not opened" if unopened else ""
        says = (
            f"{name} holds {len(parts)} text files{beside}; {len(chosen)} were read, those that hold an error first. "
            "Send the others in a second archive if they matter."
        )
    return Unpacked(chosen, says)


def _chosen(parts: list[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
    """As many as are read, in the order of their names."""
    telling_first = sorted(parts, key=lambda part: not any(mark in part[1] for mark in _TELLING))
    return sorted(telling_first[:MOST_FILES], key=lambda part: part[0])


Members = Iterator[tuple[str, bytes, int]]
"""Of each member that is opened: name, content, and how many there are behind the last that is."""


def _texts(kind: str, members: Callable[[bytes, int], Members], data: bytes, most: int) -> tuple[list[tuple[str, bytes]], int]:
    """The texts, and how many members were not opened. What is unpacked counts against `most` whether it is text or not."""
    found: list[tuple[str, bytes]] = []
    unopened, left = 0, most
    try:
        for inner, content, behind in members(data, most):
            unopened = behind
            if content.startswith(_GZIP):
                content, _ = _gunzipped(content, left, most)
            left = _rest(left, content, most)
            if _is_text(content):
                found.append((harmless(inner), content))
    except (tarfile.TarError, RuntimeError, zlib.error, zipfile.BadZipFile, UnicodeError, NotImplementedError, OSError, EOFError) as error:
        says = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise NotText(f"the {kind} file cannot be read ({says}); pack it again without a password, or send the text") from None
    if not found:
        raise NotText(f"the {kind} holds no text file; send the logs as .log or .txt")
    return found, unopened


def _zip_members(data: bytes, most: int) -> Members:
    """The directory of a zip may lie about sizes: what counts is what comes out."""
    left = most
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = sorted((m for m in archive.infolist() if not m.is_dir() and _wanted(m.filename)), key=lambda m: m.filename)
        for member in members[:MOST_MEMBERS]:
            with archive.open(member) as file:
                content = file.read(left + 1)
            left = _rest(left, content, most)
            yield member.filename, content, max(0, len(members) - MOST_MEMBERS)


def _tar_members(data: bytes, most: int) -> Members:
    left = most
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        members = sorted((m for m in archive if m.isfile() and _wanted(m.name)), key=lambda m: m.name)
        for member in members[:MOST_MEMBERS]:
            file = archive.extractfile(member)
            content = b"" if file is None else file.read(left + 1)
            left = _rest(left, content, most)
            yield member.name, content, max(0, len(members) - MOST_MEMBERS)


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


def _gunzipped(data: bytes, left: int, most: int) -> tuple[bytes, bool]:
    """Members of a gzip file one after another, up to `left` bytes of the `most` that are allowed, and whether it is whole."""
    out: list[bytes] = []
    taken = at = 0
    while data.startswith(_GZIP, at):
        stream = zlib.decompressobj(wbits=31)
        step = _FIRST_STEP  # what stands behind a member is copied with it: a file of many small ones is given in small pieces
        while not stream.eof:
            given = stream.unconsumed_tail or data[at : at + step]
            if not stream.unconsumed_tail:
                at, step = at + len(given), min(2 * step, _STEP)
            try:
                piece = stream.decompress(given, _STEP)
            except zlib.error as error:
                if out:
                    return b"".join(out), False
                raise NotText("the gzip file is damaged; send it again or send the text") from error
            taken += len(piece)
            if taken > left:
                raise _too_large(most)
            out.append(piece)
            if not given and not piece:
                return b"".join(out), False
        at -= len(stream.unused_data)
    return b"".join(out), True
