"""Files, archives and standard input as contributions: decoded, redacted, counted."""

import errno
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bot.cli.terminal import standard_input
from bot.domain.incident import Contribution
from bot.reading.archive import opened
from bot.reading.contributed import contributed, without_secrets
from bot.reading.large import LARGE, telling_text
from bot.reading.redact import redact
from bot.reading.text import NotText, decode
from bot.usecases.reply import Unusable


def contributions_of(names: Sequence[str]) -> list[Contribution]:
    """One contribution for each file, or file inside an archive; `-` is standard input. Unusable names what cannot be read and why."""
    found = [c for name in names for c in _of(name)]
    if not found:
        raise Unusable("There is nothing to read. Give a log file, or - for standard input.")
    return found


def _of(name: str) -> list[Contribution]:
    if name == "-":
        return [_text(standard_input().buffer.read(), "standard input")]
    path = Path(name)
    if _loops(path):
        raise Unusable(f"{name} is a link that leads back to itself. Give the log file itself.")
    if path.is_dir():
        raise Unusable(f"{name} is a folder. Give the log file itself, or several.")
    if not path.exists():
        raise Unusable(f"{name}: there is no such file.")
    try:
        if path.stat().st_size > LARGE and not _packed(path):
            text, cut = telling_text(path)
            return [without_secrets("file", path.name, text, cut)]
        inside = opened(path.name, path.read_bytes())
        if inside.left_out:
            print(f"oombot: {redact(inside.left_out)[0]}", file=sys.stderr)
        return [_text(data, part, bool(inside.left_out)) for part, data in inside.parts]
    except PermissionError:
        raise Unusable(f"{name}: reading it is not permitted. Check its owner and mode.") from None
    except NotText as error:
        raise Unusable(f"{name}: {error}") from None


def _loops(path: Path) -> bool:
    try:
        path.stat()
    except OSError as error:
        return error.errno == errno.ELOOP
    return False


def _packed(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4).startswith((b"\x1f\x8b", b"PK\x03\x04"))


def _text(data: bytes, name: str, cut: bool = False) -> Contribution:
    try:
        text = decode(data)
    except NotText as error:
        raise Unusable(f"{name}: {error}") from None
    if not text.strip():
        raise Unusable(f"{name} is empty. Paste the log from the first line about memory to the last error.")
    found = contributed("file" if name != "standard input" else "paste", name, text)
    return replace(found, truncated=True) if cut else found
