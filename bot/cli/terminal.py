"""How answers look in a terminal: headings, tables, wrapped text."""

import json
import re
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from bot.domain.size import gib
from bot.reading.text import harmless
from bot.usecases.reply import Reply

_OWN = re.compile(r"(\x1b\[[01]m)")


def on_terminal() -> bool:
    """Does a person read along? A standard output that was closed is none at all."""
    return sys.stdout is not None and sys.stdout.isatty()


def _printable(text: str) -> str:
    """The same, our own bold left in where a terminal reads it."""
    if not on_terminal():
        return harmless(text)
    return "".join(piece if n % 2 else harmless(piece) for n, piece in enumerate(_OWN.split(text)))


def bold(text: str) -> str:
    """Bold on a terminal, plain in a pipe."""
    return f"\x1b[1m{text}\x1b[0m" if on_terminal() else text


def width() -> int:
    """Columns to write in."""
    return min(shutil.get_terminal_size((100, 24)).columns, 110)


def wrapped(text: str, indent: str = "  ", first: str | None = None) -> str:
    """Text wrapped to the terminal; a command line is never broken."""
    return textwrap.fill(text, width(), initial_indent=indent if first is None else first, subsequent_indent=indent, break_long_words=False)


def table(rows: Sequence[Sequence[str]], indent: str = "  ", right: Sequence[int] = ()) -> str:
    """Aligned columns; `right` names those that are figures."""
    if not rows:
        return ""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [cell.rjust(w) if i in right else cell.ljust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))]
        lines.append((indent + "  ".join(cells)).rstrip())
    return "\n".join(lines)


def figure(name: str, value: Any) -> str:
    """One figure of a budget in words."""
    if value is None:
        return "not reported"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name.endswith("_bytes"):
        return gib(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def put(reply: Reply, as_json: bool, text: str) -> None:
    """The document alone with --json, else the text; a warning always on standard error."""
    print(json.dumps(reply.document, ensure_ascii=False, indent=None if not on_terminal() else 2) if as_json else _printable(text))
    if reply.warning:
        print(f"oombot: {harmless(reply.warning)}", file=sys.stderr)


def since(mapping: Mapping[str, Any], *names: str) -> str:
    """The values of some keys that are there, with commas."""
    return ", ".join(str(mapping[n]) for n in names if mapping.get(n) not in (None, ""))
