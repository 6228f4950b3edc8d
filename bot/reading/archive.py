"""Log files inside gzip and zip, bounded so that a bomb stays small."""

import gzip
import io
import zipfile
import zlib

from bot.reading.text import NotText

MOST_BYTES = 256 * 2**20
MOST_FILES = 50
_LOGS = (".log", ".txt", ".out", ".err", ".json", ".yaml", ".yml", ".md", ".gz", "")


def unpacked(name: str, data: bytes) -> list[tuple[str, bytes]]:
    """(name, bytes) of each text inside; the data itself when it is no archive. NotText when it is broken or too large."""
    if data.startswith(b"\x1f\x8b"):
        return [(name.removesuffix(".gz"), _gunzipped(name, data))]
    if data.startswith(b"PK\x03\x04"):
        return _unzipped(name, data)
    return [(name, data)]


def _gunzipped(name: str, data: bytes) -> bytes:
    try:
        with gzip.open(io.BytesIO(data)) as file:
            text = file.read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise NotText(f"the gzip file is broken ({error}); send it again or send the text") from None
    if len(text) > MOST_BYTES:
        raise NotText(f"it unpacks to more than {MOST_BYTES >> 20} MiB; send the last part of the log")
    return text


def _unzipped(name: str, data: bytes) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    left = MOST_BYTES
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [m for m in archive.infolist() if not m.is_dir() and m.filename.lower().endswith(_LOGS)]
            for member in sorted(members, key=lambda m: m.filename)[:MOST_FILES]:
                with archive.open(member) as file:
                    text = file.read(left + 1)
                left -= len(text)
                if left < 0:
                    raise NotText(f"it unpacks to more than {MOST_BYTES >> 20} MiB; send the log that holds the error")
                found += (
                    [(member.filename, text)]
                    if not text.startswith(b"\x1f\x8b")
                    else [(member.filename, _gunzipped(member.filename, text))]
                )
    except (zipfile.BadZipFile, RuntimeError, zlib.error, NotImplementedError) as error:
        raise NotText(f"the zip file cannot be read ({error}); send it without a password, or send the text") from None
    if not found:
        raise NotText("the zip holds no text file; send the logs as .log or .txt")
    return found
