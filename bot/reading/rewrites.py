r"""What reading, exports and terminals rewrite in a text, as edits in their places: redaction looks through them.

Whatever `clean`, `harmless` or an export's unwrapping removes or turns into another letter must be here too: what stands apart in the
text as given and together in the text as read would else pass for no secret.
"""

import html
import re
from collections.abc import Callable, Iterable, Iterator

from bot.reading.text import ANSI, DASHED, ESCAPES, LITERAL, LOST_ESC, MANGLED_REST, MARKDOWN_LINK, SEQUENCES, SLACK_LINK, unmangled_piece

Edit = tuple[int, int, str]
"""(begin, end, what stands there when it is read)."""
_UNSEEN = (
    r"\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    r"\ufe00-\ufe0f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff"
)
_INVISIBLE = re.compile(f"[{_UNSEEN}]")
_USUAL = bytes([9, 10, 13, *range(32, 127)])
_C1 = re.compile(r"[\x80-\x9f]")
_MANGLED = "\u00c2\u00e2\u00e3\u00ef"
"""What a space, a quotation mark, a dash or nothing begins with where UTF-8 was read as Windows-1252."""
_STRANGE = re.compile(f"[{_UNSEEN}\x1b\u2013\u2014{_MANGLED}{''.join(map(chr, LITERAL))}]")
"""All that is asked for beyond ASCII."""
_WRITTEN = re.compile(r"\\{1,8}(?:u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2})|([\[\]_*`()#<>|~/&=:-])|(n)(?![A-Za-z]:)|[bf])")
_WRITTEN_SEQUENCE = re.compile(r"(?:\\{1,8}(?:x1[bB]|0?33|e|u001[bB])|#033|\^\[|␛)(?:\[[0-?]{0,30}[ -/]{0,4}[@-~]|[()][A-Z0-9]|[78=>])")
_ENTITY = re.compile(
    r"&(?:amp;){0,3}(?:#\d{2,4}|#[xX][0-9A-Fa-f]{2,4}|lt|gt|amp|quot|nbsp|apos|equals|colon|lowbar|period|sol|shy|ZeroWidthSpace);"
)
_PERCENT = re.compile(r"%(?:25){0,3}([2-7][0-9A-Fa-f])")
_SEAM = re.compile(r"[ \t]?[│┃]\r?\n[│┃][ \t]?")
"""Where a box breaks a line."""
_LONGEST_SEQUENCE = 16
_TWO_QUOTES = re.compile(r'""(?:(?=\w)|(?<=[\w-]""))')


def rewrites(text: str) -> list[Edit]:
    """The edits that turn the text into what is read; in order, none overlaps another."""
    found = sorted((edit for edits in _kinds(text) for edit in edits), key=lambda edit: (edit[0], -edit[1]))
    kept: list[Edit] = []
    for edit in found:
        if not kept or edit[0] >= kept[-1][1]:
            kept.append(edit)
    return kept


def _kinds(text: str) -> Iterator[Iterable[Edit]]:
    """The edits of each kind; the patterns that find them run only where their letters stand."""
    strange = text.encode().translate(None, _USUAL).decode() if text.isascii() else "".join(_STRANGE.findall(text))
    strange = "".join(sorted(set(strange)))
    if "\x1b" in strange or _C1.search(strange):
        yield _cut(SEQUENCES, text)
    if any(mark in text for mark in ESCAPES[2:]):  # where the escape character is written out
        yield _cut(ANSI, text)
        yield _cut(_WRITTEN_SEQUENCE, text)
    if "m" in text and "[" in text:
        yield _cut(LOST_ESC, text)
    if ("\x1b" in text or "[" in text) and ("│" in text or "┃" in text):
        yield _over_seams(text)
    if "\\" in text:
        yield _turned(_WRITTEN, text, _unwritten)
    if "&" in text:
        yield _turned(_ENTITY, text, lambda m: _unescaped(m[0]))
    if "%" in text:
        yield _turned(_PERCENT, text, lambda m: chr(int(m[1], 16)))
    if '""' in text:
        yield _turned(_TWO_QUOTES, text, lambda _: '"')
    if "<http" in text or "<mailto" in text or "<tel:" in text:
        yield _kept(SLACK_LINK, text)
    if "](http" in text:
        yield _kept(MARKDOWN_LINK, text)
    if strange:
        yield from _strange(text, strange)


def _strange(text: str, letters: str) -> Iterator[Iterable[Edit]]:
    if _INVISIBLE.search(letters):
        yield _cut(_INVISIBLE, text)
    if found := "|".join(letter for letter in letters if ord(letter) in LITERAL):
        yield _turned(re.compile(found), text, lambda m: m[0].translate(LITERAL))
    if "\u2013" in letters or "\u2014" in letters:
        yield _turned(DASHED, text, lambda _: "--")
    for first in _MANGLED:
        if first in letters:
            yield _turned(re.compile(first + MANGLED_REST), text, lambda m: _INVISIBLE.sub("", unmangled_piece(m[0]).translate(LITERAL)))


def _unwritten(found: re.Match[str]) -> str:
    r"""What `\u003d`, `\_` or `\n` stands for; nothing where that cannot be seen."""
    if found[1] or found[2]:
        return _INVISIBLE.sub("", chr(int(found[1] or found[2], 16)).translate(LITERAL))
    return "\n" if found[4] else found[3] or ""


def _unescaped(entity: str) -> str:
    """The letter, also of an entity that was escaped again."""
    for _ in range(4):
        entity = html.unescape(entity)
    return entity.translate(LITERAL)


def _over_seams(text: str) -> Iterator[Edit]:
    """Both halves of a colour that a box broke."""
    for seam in _SEAM.finditer(text):
        begin = max(0, seam.start() - _LONGEST_SEQUENCE)
        half = seam.start() - begin
        joined = text[begin : seam.start()] + text[seam.end() : seam.end() + _LONGEST_SEQUENCE]
        for found in (*SEQUENCES.finditer(joined), *LOST_ESC.finditer(joined)):
            if found.start() < half < found.end():
                yield begin + found.start(), seam.start(), ""
                yield seam.end(), seam.end() + found.end() - half, ""


def _cut(pattern: re.Pattern[str], text: str) -> Iterator[Edit]:
    return ((*match.span(), "") for match in pattern.finditer(text))


def _turned(pattern: re.Pattern[str], text: str, reading: Callable[[re.Match[str]], str]) -> Iterator[Edit]:
    return ((*match.span(), reading(match)) for match in pattern.finditer(text))


def _kept(pattern: re.Pattern[str], text: str) -> Iterator[Edit]:
    """A link's text: what stands around it goes."""
    for match in pattern.finditer(text):
        group = match.lastindex or 1
        yield match.start(), match.start(group), ""
        yield match.end(group), match.end(), ""
