"""Lines that share one line: a progress bar's rewrites, records whose line ends were lost, tracebacks on a single line."""

import re
from collections.abc import Iterator, Sequence

_BAR = re.compile(r"\r+|\\r(?=[A-Z(][\w ,()-]{3,60}:\s+\d{1,3}%)|(?<=[\d\]s%])(?=\(Worker_)")
_GLUED = re.compile(r"\(Worker_(?<=[\d\]s%]\(Worker_)")
_RECORD = re.compile(
    r"""(?:(?<=[^\s(])|(?<=\S)\ )(?<!\)\ )(?<!\))
        (?=\((?:Worker|EngineCore|VllmWorker|RayWorker|APIServer)[\w\ ]{0,60}(?:\ rank=\d+)?\ ?pid=\d+[^)]{0,80}\)\ )
    |(?<=[^\s\])|])\ ?(?=(?:INFO|ERROR|WARNING|CRITICAL)\ \d\d-\d\d\ \d\d:\d\d:\d\d\ \[?[\w./]+\.py:\d+\])
    |(?<=\S)\ (?=\[rank\d+\]:\ )
    |(?<=\S)\ ?(?=\[\d{4}-\d\d-\d\d\ \d\d:\d\d:\d\d(?:\ (?:DP|PP|TP|EP)\d+)+\]\ )
    |\n""",
    re.VERBOSE,
)
_FRAME = re.compile(r'(?<=\S)\s+(?=File "[^"\n]{1,400}", line \d{1,7}, in [\w<>]+)|(?<=\S)\s+(?=Traceback \(most recent call last\))')
_EXCEPTION = re.compile(r"(?<=\S)\s+(?=(?:[a-z_]\w*\.){0,4}[A-Z]\w*(?:Error|Exception|OutOfResources)(?:: |$))")
_WRITTEN_OUT = re.compile(r'\\n\s*File \\?"|", line \d+, in [^\n]{1,400}?\\n')
"""A traceback as a text within a text shows it: its line ends are written out."""
_BEGINNING = re.compile(
    r"[(IEWC[\n](?:(?<=\()(?:Worker|EngineCore|VllmWorker|RayWorker|APIServer)|(?:NFO|RROR|ARNING|RITICAL) \d\d-\d\d "
    r"|(?<=\[)(?:rank\d|\d{4}-\d\d-\d\d )|(?<=\n))"
)
"""What every record begins with: a class of letters first, since a line is passed by it quickly."""
_NEEDED = ("(", "[", "INFO ", "ERROR ", "WARNING ", "CRITICAL ", "\n")


def pieces_of(raw: str) -> Sequence[str]:
    r"""The rewrites of a progress bar (\r, also written out); the line itself where there is none."""
    if "\r" not in raw and "\\r" not in raw and ("(Worker_" not in raw or _GLUED.search(raw) is None):
        return (raw,)
    return [piece for piece in _BAR.split(raw) if piece.strip()] or (raw,)


def records_of(text: str) -> Sequence[str]:
    """The records that a line holds, first to last; the text itself where it is one."""
    if "\\n" in text and _WRITTEN_OUT.search(text):
        text = text.replace("\\n", "\n").replace('\\"', '"')
    if len(text) > 40 and _may_begin(text) and _BEGINNING.search(text, 1):
        parts = [part for part in _RECORD.split(text) if part.strip()] or [text]
        return [piece for part in parts for piece in _frames(part)]
    return list(_frames(text)) if '", line ' in text else (text,)


def _may_begin(text: str) -> bool:
    for mark in _NEEDED:  # noqa: SIM110  every line is asked, and any() takes twice the time
        if mark in text:
            return True
    return False


def _frames(text: str) -> Iterator[str]:
    """A traceback on one line as its frames and exceptions; a frame keeps the source code behind it."""
    frames = text.count('", line ')
    if not frames or (frames == 1 and text.lstrip().startswith("File ") and "Error" not in text):
        yield text
        return
    for piece in _FRAME.split(text):
        if 'File "' in piece[:20]:
            yield from (part for part in _EXCEPTION.split(piece) if part.strip())
        elif piece.strip():
            yield piece
