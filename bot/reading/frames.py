"""Traceback frames, whatever printed them: CPython, notebooks, rich, or a paste that lost characters."""

import re
from collections.abc import Sequence

from bot.domain.evidence import Frame, LogLine

_CPYTHON = re.compile(r'File "(?P<path>[^"\n]+)", line (?P<line>\d+|\S{1,3}), in (?P<function>[\w.<>]+)')
_NOTEBOOK = re.compile(r"File \[?~?(?P<path>[^\s:()\]]+\.pyx?):(?P<line>\d+)(?:\]\([^)\s]*\))?,? in (?P<function>[\w.<>]+)")
_OLD_NOTEBOOK = re.compile(r"^\s*(?P<path>[~/][\w./~-]+\.py) in (?P<function>\w+)\(")
_CUT = re.compile(r'(?P<path>[\w./-]{1,400}\.py)"?, line (?P<line>\d+), in (?P<function>[\w.<>]+)')
_RICH = re.compile(r"(?P<path>[\w./~-]{0,300}\w\.py):(?P<line>\d+) in (?P<function>[\w<>]+)")
_OPEN = re.compile(r'File "[^"\n]{0,500}$|\.py"?(?:, line|:\d+ in$|", l?i?n?e?)|", line \d+')
_EXCEPTION = re.compile(r"\s{0,3}(?:[\w.]*(?:Error|Exception|Exit|Interrupt|OutOfResources)\b|ray\.exceptions|Killed\b)")
_CARETS = re.compile(r"\s*[~^]+\s*$")
MOST_JOINED = 3


def frame_of(line: LogLine, following: Sequence[LogLine] = (), order: int = 0) -> Frame | None:
    """The frame that a line shows, with the source code behind it on the same line, or None; `order` is the line's place.

    One broken by a wrap is completed from the lines after it.
    """
    text = line.text
    if ".py" not in text and 'File "' not in text:
        return None
    match = _matched(text) or _completed(text, line, following)
    if match is None:
        return None
    number = match.groupdict().get("line") or ""
    return Frame(
        path=match["path"], function=match["function"].rsplit(".", 1)[-1], speaker=line.speaker, source=line.source, line=line.number,
        file_line=int(number) if number.isdigit() else None, echo=match.string[match.end() :].strip() if len(match.string) < 4000 else "",
        order=order,
    )  # fmt: skip


def _matched(text: str) -> re.Match[str] | None:
    """Each form is tried where its own words stand."""
    file = "File" in text
    match = (_CPYTHON.search(text) or _NOTEBOOK.search(text)) if file else None
    match = match or (_CUT.search(text) if ", line " in text else None) or (_OLD_NOTEBOOK.match(text) if ".py in " in text else None)
    return match or (_RICH.search(text) if not file and ".py:" in text and " in " in text else None)


def _completed(text: str, line: LogLine, following: Sequence[LogLine]) -> re.Match[str] | None:
    if not _OPEN.search(text[-600:]):
        return None
    tight = loose = text
    for nxt in following[:MOST_JOINED]:
        if (nxt.signed and nxt.speaker != line.speaker) or not nxt.text.strip():
            return None
        tight, loose = tight + nxt.text.strip(), loose.rstrip() + " " + nxt.text.strip()
        match = _matched(loose) or _matched(tight)
        if match is not None:
            return match
    return None


def is_echo(line: LogLine) -> bool:
    """Does this line, standing below a frame of the same speaker, show source code rather than an exception?"""
    return not _EXCEPTION.match(line.text) or line.text.lstrip().startswith("raise ")


def is_carets(text: str) -> bool:
    """The marks that Python 3.11 draws below a source line."""
    return bool(_CARETS.match(text))
