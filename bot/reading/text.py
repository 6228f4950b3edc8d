"""Bytes into text, and a line into readable text: what terminals, chats and exports did to it is undone."""

import codecs
import html
import re
from functools import lru_cache

_BOMS = (
    (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"), (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"),
)  # fmt: skip
ANSI = re.compile(
    r"(?:\x1b|\\x1[bB]|\\0?33|\\e|#033|\\u001[bB]|\^\[|␛)(?:\[[0-9;?]{0,30}[A-Za-z]|\][^\x07\x1b\n]{0,500}(?:\x07|\x1b\\)|[()][A-Z0-9])"
    r"|\x9b[0-9;?]{0,30}[A-Za-z]"
)
"""Terminal sequences, also where the escape was written out; each stays within its line."""
ESCAPES = ("\x1b", "\x9b", "^[", "\\x1", "\\033", "\\33", "\\e", "#033", "\\u001", "␛")
"""How the escape character may stand in a text."""
_PLAIN_ANSI = re.compile(r"\x1b\[[0-9;?]{0,30}[A-Za-z]")
LOST_ESC = re.compile(r"\[(?:(?<![\w\[]\[)(?:\d{1,3};){0,8}\d{1,3}|(?<=[\w\])>:.%|]\[)(?:0;0|0?1;3\d|0;3\d|0|3\d|1))m")
"""What stands before the bracket is looked at behind it: a pattern that begins with plain text is found by that text."""
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u200b-\u200f\u2060\ufeff\ud800-\udfff]")
LITERAL = str.maketrans(
    dict.fromkeys("\u2018\u2019\u201a", "'")
    | dict.fromkeys("\u201c\u201d\u201e\u00ab\u00bb\u2033", '"')
    | dict.fromkeys("\u00a0\u202f\u2007\u3000", " ")
    | dict.fromkeys("\u2212\u2010\u2011", "-")
    | {"\uff1a": ":", "\uff08": "(", "\uff09": ")"}
)
_ESCAPED = re.compile(r"\\([\[\]_*`()#<>|~-])")
_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|#39|#x27|#34|nbsp|apos);")
SLACK_LINK = re.compile(r"<(?:https?|mailto|tel):[^|<>\s]{1,500}\|([^<>\n]{1,500})>|<(https?://[^|<>\s]{1,500})>")
MARKDOWN_LINK = re.compile(r"\[([\w./:@ -]{1,200})\]\(https?://[^()\s]{1,500}\)")
DASHED = re.compile(r"[\u2013\u2014](?<![\w-][\u2013\u2014])(?=[a-z][a-z-]{3,})")
MANGLED_REST = r"[\u0080-\u00bf\u0152-\u2122]{1,3}"
_MOJIBAKE = re.compile(rf"[\u00c2-\u00f4]{MANGLED_REST}")
_EMPHASISED = re.compile(r"(\*\*|`)(\(?[-~≈]?\d(?:[\d.,/ -]|[KMGTkmgt]i?[Bb]?\b|bytes|tokens|%){0,40}\)?)\1")
"""Figures in bold or in code."""
BOXED = ("│", "┃")
_WIDE_GAP = " " * 20
_GAP = re.compile(f"(?<=\\S){_WIDE_GAP}+(?=\\S)")
_UNUSUAL = re.compile(f"[{''.join(map(chr, LITERAL))}\u2013\u2014\u00c2-\u00f4{''.join(BOXED)}]")
"""Characters that are mended; a bar's blocks and Chinese are left alone."""


class NotText(ValueError):
    """The bytes are no text: says what they look like and what to send instead."""


_MAGIC = {
    b"\x89PNG": "a PNG picture", b"\xff\xd8\xff": "a JPEG picture", b"%PDF": "a PDF", b"\x7fELF": "a program", b"GIF8": "a GIF picture",
    b"7z\xbc\xaf": "a 7-Zip archive", b"SQLite format 3": "a SQLite database", b"Rar!": "a RAR archive", b"\xfd7zXZ": "an xz archive",
    b"\x28\xb5\x2f\xfd": "a zstandard archive", b"BZh": "a bzip2 archive",
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
    strange = len(_STRANGE.findall(sample))
    if strange > max(8, len(sample) // 5):
        raise NotText("this is binary data, not text; send the log as text or as a .log, .txt, .gz or .zip file")
    return text


_STRANGE = re.compile(r"[\ufffd\x00-\x07\x0b\x0e-\x1a\x1c-\x1f]")


def split_lines(text: str) -> list[str]:
    r"""Lines as the contract counts them: each ends at \n, and \r\n is one end. A \r inside stays."""
    lines = text.split("\n")
    return [line[:-1] if line.endswith("\r") else line for line in lines]


def clean(line: str) -> str:
    """One line without colours (also lost ones), entities, chat links, curly quotes, box borders and control characters."""
    if "\x1b" in line or "[" in line:
        line = without_colours(line)
    if "&" in line:
        line = _ENTITY.sub(lambda m: html.unescape(m[0]), _ENTITY.sub(lambda m: html.unescape(m[0]), line))
    if "\\" in line:
        line = _ESCAPED.sub(r"\1", line)
    if _WIDE_GAP in line:
        line = _unpadded(line)
    if "<http" in line or "<mailto" in line or "<tel:" in line:
        line = SLACK_LINK.sub(lambda m: m[1] or m[2], line)
    if "**" in line or "`" in line:
        line = _EMPHASISED.sub(r"\2", line)
    if "](http" in line:
        line = MARKDOWN_LINK.sub(r"\1", line)
    if not line.isascii() and _UNUSUAL.search(line):
        line = DASHED.sub("--", unboxed(_unmangled(line).translate(LITERAL)))
    return line if line.isprintable() else _CONTROL.sub("", line)


def without_colours(line: str) -> str:
    """The line without terminal sequences, written out or lost ones included."""
    if "\x1b" in line:
        line = _PLAIN_ANSI.sub("", line)
    if escaped(line):
        line = ANSI.sub("", line)
    return LOST_ESC.sub("", line) if "m" in line and "[" in line else line


def escaped(text: str) -> bool:
    """Does an escape character stand in it, in any of its forms?"""
    if text.isprintable() and not ("\\" in text or "^[" in text or "#033" in text or "␛" in text):
        return False  # every line is asked
    return any(mark in text for mark in ESCAPES)


def _unpadded(line: str) -> str:
    """The line without what a terminal put at each of its breaks: several wide gaps of one width, a space of the text aside."""
    gaps = [len(gap) for gap in _GAP.findall(line)]
    least = min(gaps, default=0)
    return _GAP.sub(lambda gap: " " * (len(gap[0]) - least), line) if len(gaps) > 1 and max(gaps) - least <= 1 and "|" not in line else line


def unboxed(line: str) -> str:
    """The line without the borders that a rich traceback draws."""
    stripped = line.strip()
    if stripped[:1] in BOXED:
        line = stripped[1:].removeprefix(" ")
    return line.rstrip()[:-1].rstrip() if line.rstrip()[-1:] in BOXED else line


def _unmangled(line: str) -> str:
    """UTF-8 that was read as Windows-1252 (`â–ˆ` for █), turned back."""
    return _MOJIBAKE.sub(lambda m: unmangled_piece(m[0]), line)


@lru_cache(maxsize=4096)
def unmangled_piece(piece: str) -> str:
    """Letters that are one letter's bytes, as that letter; themselves where they are none."""
    data = bytearray()
    for letter in piece:
        try:
            data += letter.encode("cp1252")
        except UnicodeEncodeError:
            if ord(letter) > 0xFF:
                return piece
            data.append(ord(letter))
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return piece


def shown(line: str, limit: int = 2000) -> str:
    """A line as it may be quoted: cut at `limit` characters."""
    return line if len(line) <= limit else line[: limit - 1] + "…"


def encodable(text: str) -> str:
    """The text with half characters (lone surrogates, which JSON can carry) replaced, so that it can be stored and searched."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", errors="replace").decode()
    return text


SEQUENCES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]{0,30}[ -/]{0,4}[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]{0,2000}(?:\x07|\x1b\\|\x9c)?|\x1b[ -/]?[0-~]?"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def harmless(text: str) -> str:
    """The text without what would command a terminal: sequences, C0 and C1 controls, turned directions. Line ends and tabs stay."""
    return text if text.isprintable() or not _CONTROLS.search(text) else _CONTROLS.sub("", SEQUENCES.sub("", text))
