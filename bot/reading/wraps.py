"""Hard wraps undone: a terminal or a chat broke long lines at one width, also inside words."""

import re
from collections import Counter
from collections.abc import Sequence

NARROWEST, MOST_COUNTED = 50, 3
_NEW_RECORD = re.compile(
    r"""\s{0,12}(?:File\ ["~/]|Traceback\ |During\ handling|The\ above\ exception|\([A-Za-z]\w*\ pid=|\[rank\d|\[\.\.\.
    |(?:INFO|ERROR|WARNING|DEBUG|CRITICAL)\b|[\w.]*(?:Error|Exception)(?::|\(|$)|\$\ |\#\ |[-*•]\ |\d+\.\ |\|)|\s{4}|[~^\s]+$""",
    re.VERBOSE,
)
_OPEN_FRAME = re.compile(r'\bFile "[^"]*$|\bFile "[^"]*", line \d*,?(?: in)?\s*$|\bFile "[^"]*", lin?e?\s*$')


def wrap_width(widths: Sequence[int], continues: Sequence[bool]) -> int:
    """The width at which the text was wrapped, in characters; 0 when it was not.

    At least three lines have exactly this width, hardly any is longer, and most of them go on in an unsigned line.
    """
    counts = Counter(width for width in widths if width >= NARROWEST)
    for width in sorted((w for w, n in counts.items() if n >= MOST_COUNTED), reverse=True)[:5]:
        longer = sum(n for w, n in counts.items() if w > width)
        if longer * 4 > counts[width]:
            return 0
        followed = sum(w == width and c for w, c in zip(widths, [*continues[1:], False], strict=True))
        if followed * 2 >= counts[width]:
            return width
    return 0


def goes_on(text: str, continuation: str) -> bool:
    """Is this the rest of a line that was broken, rather than a record of its own?"""
    return bool(_OPEN_FRAME.search(text[-600:])) or not _NEW_RECORD.match(continuation)
