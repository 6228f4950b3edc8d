"""Bytes into text, and a line into readable text: what terminals, chats and exports did to it is undone."""

import codecs
import html
import re

_BOMS = (
    (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"), (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"),
)  # fmt: skip
_ANSI = re.compile(r"(?:\x1b|\\x1b|\\033|#033|\\u001b|\^\[|␛)(?:\[[0-9;?]*[A-Za-z]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Z0-9])")
_LOST_ESC = re.compile(r"(?<![\w\[])\[(?:\d{1,3};)*\d{1,3}m|(?<=[\w\])>:.])\[(?:0;0|1;3\d|0;3\d|0|3\d)m")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u200b\u200e\u200f\ufeff]")
_LITERAL = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u00a0": " ", "\u2212": "-", "\u202f": " "})
_ESCAPED = re.compile(r"\\([\[\]_*`()#<>])")
_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|#39|#x27|nbsp|apos);")


class NotText(ValueError):
    """The bytes are no text: says what they look like and what to send instead."""


_MAGIC = {
    b"\x89PNG": "a PNG picture", b"\xff\xd8\xff": "a JPEG picture", b"%PDF": "a PDF", b"\x7fELF": "a program", b"GIF8": "a GIF picture",
    b"7z\xbc\xaf": "a 7-Zip archive", b"SQLite format 3": "a SQLite database", b"Rar!": "a RAR archive", b"\xfd7zXZ": "an xz archive",
}  # fmt: skip


def decode(data: bytes) -> str:
    """Text of a paste or log file: UTF-8 with stray bytes kept readable, UTF-16 and UTF-32 by mark or by their zero bytes.

    NotText for pictures, programs and other binary data.
    """
    for magic, name in _MAGIC.items():
        if data.startswith(magic):
            raise NotText(f"this is {name}, not text; send the log as text or as a .log, .txt, .gz or .zip file")
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return data.decode(encoding, errors="replace")
    head = data[:4096]
    zeros = head.count(0)
    if zeros > len(head) // 4 and len(head) >= 4:
        encoding = "utf-16-le" if head[1::2].count(0) >= head[::2].count(0) else "utf-16-be"
        text = data.decode(encoding, errors="replace")
        if sum(c.isprintable() or c in "\r\n\t" for c in text[:2000]) >= 0.9 * len(text[:2000]):
            return text
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("utf-8", errors="replace")
    sample = text[:20000]
    strange = sum(c == "\ufffd" or (c < " " and c not in "\r\n\t\x1b\x08\x0c") for c in sample)
    if strange > max(8, len(sample) // 5):
        raise NotText("this is binary data, not text; send the log as text or as a .log, .txt, .gz or .zip file")
    return text


def split_lines(text: str) -> list[str]:
    r"""Lines as the contract counts them: each ends at \n, and \r\n is one end. A \r inside stays."""
    lines = text.split("\n")
    return [line[:-1] if line.endswith("\r") else line for line in lines]


def clean(line: str) -> str:
    """One line without ANSI colours (also the kind that lost its escape), entities, curly quotes and control characters."""
    if "\x1b" in line or "[" in line or "^[" in line or "#033" in line or "\\033" in line:
        line = _ANSI.sub("", line)
        line = _LOST_ESC.sub("", line)
    if "&" in line:
        line = _ENTITY.sub(lambda m: html.unescape(m[0]), line)
    if "\\" in line:
        line = _ESCAPED.sub(r"\1", line)
    if not line.isascii():
        line = line.translate(_LITERAL)
    return _CONTROL.sub("", line)


def shown(line: str, limit: int = 2000) -> str:
    """A line as it may be quoted: cut at `limit` characters."""
    return line if len(line) <= limit else line[: limit - 1] + "…"
