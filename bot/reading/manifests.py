"""Arguments that stand over several lines or behind an expression: YAML lists, environment entries, commands with backslashes, tables
under a row of names, defaults of variables; each as one line of text.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from bot.domain.evidence import LogLine

_FLAG = re.compile(r"""['"`]?--?[A-Za-z][\w.-]{0,60}""")
_NAME = re.compile(
    r"""[ \t]{0,60}(?:-[ \t]{0,8})?\{?[ \t]{0,8}['"]?name['"]?:[ \t]{0,8}['"]?(?P<name>[A-Z][A-Z0-9_]{2,60})['"]?,?"""
    r"""(?:[ \t]{0,8}['"]?value['"]?:[ \t]{0,8}(?P<value>[^}\n]{1,400}))?\}?[ \t]{0,8}$"""
)
_ENTRY = re.compile(r"""[ \t]{0,60}['"]?value['"]?:[ \t]{0,8}(?P<value>\S.{0,400})$""")
_DEFAULT = re.compile(
    r"""\$\{\w{1,60}:?[-=](?P<shell>[^}{$]{1,60})\}"""
    r"""|(?:(?:float|int)\()?os\.(?:environ\.get|getenv)\(['"]\w{1,60}['"],\s?['"]?(?P<python>[^'")(]{1,60})['"]?\){1,2}"""
    r"""|(?:float|int)\((?P<plain>[\d._e]{1,20})\)"""
)
"""A variable's default, or a conversion, around the value."""
_PRODUCT = re.compile(r"(?<![\w.*])(\d{1,4})\s?\*\s?1024\b(?!\s?\*)")
_RULE = re.compile(r"\s*\|?(?:\s*:?-{2,}:?\s*\|)+(?:\s*:?-{2,}:?)?\s*$")
_JOINING = frozenset(("to", "at", "of", "is", "="))
"""What stands between a flag and its value in a sentence that is wrapped there."""
_CLOSERS = " \t\\`^,'\""
_OPENERS = frozenset("-'\"`")
LONGEST = 4000


def argument_texts(lines: Sequence[LogLine]) -> Iterator[tuple[LogLine, str]]:
    """(line, its text), where a flag's or variable's value on the next line has been put behind it, and a cell behind its column's name."""
    names: Sequence[str] = ()
    for line, following in zip_longest(lines, lines[1:]):
        text = line.text
        if "|" not in text:
            names = ()
        elif "-|" in (after := _after(line, following)) and len(text) < LONGEST and _RULE.match(after):
            names = _cells(text)
        elif names and len(cells := _cells(text)) == len(names):
            text = " | ".join(f"{name}: {cell}" for name, cell in zip(names, cells, strict=True))
        if "-" in text and _ends_in_flag(text) and (value := _item(_after(line, following))):
            yield line, f"{text.rstrip(_CLOSERS)} {value}"
        elif "name" in text and len(text) < LONGEST and (name := _NAME.match(text)) is not None:
            entry = _ENTRY.match(_after(line, following))
            given = name["value"] or (entry["value"] if entry is not None else None)
            yield line, f"{name['name']}={given.strip()}" if given else text
        else:
            yield line, _plainly(text) if "(" in text or "{" in text or "*" in text else text


def _after(line: LogLine, following: LogLine | None) -> str:
    """What stands below the line, where it may go on there."""
    return following.text[:LONGEST] if following is not None and following.source == line.source and following.level is None else ""


def _cells(row: str) -> list[str]:
    return [cell.strip().strip("`*") for cell in row.strip().strip("|").split("|")]


def _plainly(text: str) -> str:
    """The text with a variable's default in its place, conversions left out and products worked out."""
    if "${" in text or "getenv(" in text or "environ.get(" in text or "float(" in text or "int(" in text:
        text = _DEFAULT.sub(lambda found: found[found.lastgroup or 0], text)
    return _PRODUCT.sub(lambda found: str(int(found[1]) * 1024), text) if "1024" in text and "*" in text else text


def _ends_in_flag(text: str) -> bool:
    text = text[-200:].rstrip(_CLOSERS)
    blank = max(text.rfind(" "), text.rfind("\t"))
    word = text[blank + 1 :]
    if blank >= 0 and word in _JOINING:
        text = text[:blank].rstrip(_CLOSERS)
        word = text[max(text.rfind(" "), text.rfind("\t")) + 1 :]
    return word[:1] in _OPENERS and _FLAG.fullmatch(word) is not None


def _item(text: str) -> str:
    """What a line gives to the flag before it: a list's item, or a command's next word; nothing when that is a flag itself."""
    item = text.strip().removeprefix("- ").strip().rstrip(" \t\\`,")
    return "" if item.lstrip("'\"").startswith(("-", "#")) else item
