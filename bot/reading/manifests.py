"""Arguments that stand over several lines: YAML lists, environment entries, commands with backslashes; each as one line of text."""

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from bot.domain.evidence import LogLine

_DANGLING = re.compile(r"""(?<![\w-])--?[A-Za-z][\w.-]*['"]?\s*,?\s*(?:\\|\^|`)?\s*$""")
_VALUE = re.compile(r"""\s*(?:-\s+)?(?P<value>['"]?(?!-)[^\s#].*?)\s*,?\s*(?:\\|`)?\s*$""")
_NAME = re.compile(
    r"""\s*(?:-\s*)?\{?\s*['"]?name['"]?:\s*['"]?(?P<name>[A-Z][A-Z0-9_]{2,60})['"]?\s*,?\s*"""
    r"""(?:(?:['"]?value['"]?:\s*)(?P<value>[^}]+)\}?)?\s*$"""
)
_ENTRY = re.compile(r"""\s*['"]?value['"]?:\s*(?P<value>\S.*?)\s*,?\s*$""")


def argument_texts(lines: Sequence[LogLine]) -> Iterator[tuple[LogLine, str]]:
    """(line, its text), where a flag's or variable's value on the next line has been put behind it."""
    for line, following in zip_longest(lines, lines[1:]):
        text = line.text
        after = following.text if following is not None and following.source == line.source and following.level is None else ""
        if after and ("-" in text) and _DANGLING.search(text) and (value := _VALUE.match(after)) is not None:
            yield line, f"{text.rstrip(_CLOSERS)} {value['value']}"
        elif "name" in text and (name := _NAME.match(text)) is not None:
            value = _ENTRY.match(after)
            given = name["value"] or (value["value"] if value is not None else None)
            yield line, f"{name['name']}={given}" if given else text
        else:
            yield line, text


_CLOSERS = " \t\\`^,'\""
