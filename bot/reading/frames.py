"""Traceback frames, whatever printed them: CPython, notebooks, rich, or a paste that lost characters."""

import re
from collections.abc import Sequence

from bot.domain.evidence import Frame, LogLine

_CPYTHON = re.compile(r'File "(?P<path>[^"\n]+)", line (?P<line>\d+|\S{1,3}), in (?P<function>[\w.<>]+)')
_NOTEBOOK = re.compile(r"File \[?~?(?P<path>[^\s:()\]]+\.py):(?P<line>\d+)(?:\]\([^)\s]*\))?,? in (?P<function>[\w.<>]+)")
_CUT = re.compile(r'(?P<path>[\w./-]+\.py)", line (?P<line>\d+), in (?P<function>[\w.<>]+)')
_RICH = re.compile(r"(?P<path>[\w./~-]*\w\.py):(?P<line>\d+) in (?P<function>[\w<>]+)")
_EXCEPTION = re.compile(r"\s{0,3}(?:[\w.]*(?:Error|Exception|Exit|Interrupt|OutOfResources)\b|ray\.exceptions|Killed\b)")
_CARETS = re.compile(r"\s*[~^]+\s*$")
_NEXT_SOURCE = 3


def frame_of(line: LogLine, following: Sequence[LogLine] = ()) -> Frame | None:
    """The frame that a line shows, or None. A path broken by a hard wrap is completed from the line after it."""
    text = line.text
    if ".py" not in text and 'File "' not in text:
        return None
    match = _CPYTHON.search(text) or _NOTEBOOK.search(text) or _CUT.search(text)
    if match is None and 'File "' in text and following:
        joined = text + following[0].text.lstrip() if not following[0].signed or following[0].speaker == line.speaker else text
        match = _CPYTHON.search(joined)
    if match is None and "File" not in text:
        match = _RICH.search(text)
    if match is None:
        return None
    number = match["line"]
    return Frame(
        path=match["path"], function=match["function"].rsplit(".", 1)[-1], speaker=line.speaker, source=line.source, line=line.number,
        file_line=int(number) if number.isdigit() else None,
    )  # fmt: skip


def is_echo(line: LogLine) -> bool:
    """Does this line, standing below a frame of the same speaker, show source code rather than an exception?"""
    return not _EXCEPTION.match(line.text) or line.text.lstrip().startswith("raise ")


def is_carets(text: str) -> bool:
    """The marks that Python 3.11 draws below a source line."""
    return bool(_CARETS.match(text))
