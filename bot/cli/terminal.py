"""How answers look in a terminal: headings, tables, wrapped text."""

import json
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TextIO

from bot.domain.size import gib
from bot.reading.text import harmless
from bot.usecases.reply import Reply, Unusable

_SHELL_WORDS = re.compile(r"""(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"\\])+""")
_OWN = re.compile(r"(\x1b\[[01]m)")


def hush() -> None:
    """What libraries log, tracebacks among it, is not for the person who typed a command: what failed is said in a sentence."""
    import logging

    logging.getLogger().addHandler(logging.NullHandler())


def standard_input() -> TextIO:
    """Standard input. Unusable where it was closed."""
    if sys.stdin is None:
        raise Unusable("Standard input is closed, so there is nothing to read. Give a file.")
    return sys.stdin


def json_text(document: Mapping[str, Any], indent: int | None = None) -> str:
    """A document as one JSON text, in letters that standard output can show."""
    speaks_all = (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf")
    return json.dumps(document, ensure_ascii=not speaks_all, indent=indent)


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


def _narrow(needed: int) -> bool:
    """Is a terminal there, and has it fewer columns? A pipe has none: what is read by programs keeps its lines."""
    return 0 < shutil.get_terminal_size((0, 0)).columns < needed


def headline(text: str) -> str:
    """A heading that may be a whole sentence, wrapped, each of its lines in bold."""
    return "\n".join(bold(line) for line in wrapped(text, indent="").splitlines())


def command(text: str, indent: str = "    ") -> str:
    """A command line to copy: in one piece, or broken before its flags where the terminal is narrower."""
    if not _narrow(len(indent) + len(text)):
        return indent + text
    words = _SHELL_WORDS.findall(text)
    lines = [words[0]] if words else []
    for word in words[1:]:
        if word.startswith("-") or len(f"{indent}  {lines[-1]} {word} \\") > width():
            lines.append(word)
        else:
            lines[-1] += f" {word}"
    return indent + f" \\\n{indent}  ".join(lines)


def wrapped(text: str, indent: str = "  ", first: str | None = None) -> str:
    """Text wrapped to the terminal; a word, such as a flag or a model's name, is never broken."""
    first = indent if first is None else first
    return textwrap.fill(text, width(), initial_indent=first, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def shortened(text: str, most: int) -> str:
    """Its beginning, and that there is more."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def table(rows: Sequence[Sequence[str]], indent: str = "  ", right: Sequence[int] = (), headed: bool = False) -> str:
    """Aligned columns; `right` names those that are figures. Where the terminal is narrower, a row is a paragraph of its own.

    `headed`: the first row names the columns.
    """
    if not rows:
        return ""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    if _narrow(len(indent) + sum(widths) + 2 * len(widths) - 2):
        return "\n".join(_stacked(rows, indent, headed))
    lines = []
    for row in rows:
        cells = [cell.rjust(w) if i in right else cell.ljust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))]
        lines.append((indent + "  ".join(cells)).rstrip())
    return "\n".join(lines)


def _stacked(rows: Sequence[Sequence[str]], indent: str, headed: bool) -> Iterator[str]:
    for first, *others in rows[headed:]:
        said = [f"{name}: {cell}" if headed else cell for name, cell in zip(rows[0][1:], others, strict=True) if cell]
        yield wrapped(f"{first}{':' if first and said and not headed else ''} {', '.join(said)}".strip(), indent + "    ", indent)


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
    print(json_text(reply.document, 2 if on_terminal() else None) if as_json else _printable(text))
    if reply.warning:
        print(f"oombot: {harmless(reply.warning)}", file=sys.stderr)
