"""Traceback frames, whatever printed them: CPython, pytest, notebooks, rich, profilers, debuggers, or a paste that lost characters."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from bot.domain.evidence import Frame, LogLine

_PATH = r"(?P<path>[\w./\\~:-]{0,300}\w\.pyx?)"
_FUNCTION = r"(?P<function>[\w.<>]+)"
_AT = r"(?P<line>\d{1,7})"


class _Form(NamedTuple):
    """How somebody prints a frame: texts that stand in each, and its pattern. `signature`: what stands behind it is no source code."""

    needs: tuple[str, ...]
    pattern: "re.Pattern[str]"
    signature: bool = False


_Found = tuple[_Form, "re.Match[str]", int]
_FORMS = (
    _Form(('File "', ", line "), re.compile(rf'File ""?(?P<path>[^"\n]+)"?", line (?P<line>\d+|\S{{1,3}}),? in {_FUNCTION}')),
    _Form(
        ("File ", ".py", ":"),  # a notebook, with and without a link
        re.compile(rf"File \[?~?(?P<path>[^\s:()\]]+\.pyx?):{_AT}(?:\]\([^)\s]*\))?,? in {_FUNCTION}"),
        signature=True,
    ),
    _Form((".py", ", line ", ", in "), re.compile(rf'(?P<path>[\w./-]{{1,400}}\.py)"?, line {_AT}, in {_FUNCTION}')),
    _Form((".py in ", " at line "), re.compile(rf"{_PATH} in {_FUNCTION} at line {_AT}"), signature=True),  # Sentry
    _Form((".py in ", "("), re.compile(r"^\s*(?P<path>[~/][\w./~-]+\.py) in (?P<function>\w+)\("), signature=True),  # an older notebook
    _Form((".py:", " in "), re.compile(rf"(?<!File ){_PATH}:{_AT}:? in {_FUNCTION}")),  # rich, pytest
    _Form((".py:", " ("), re.compile(rf"^\s*{_FUNCTION} \({_PATH}:{_AT}\)$")),  # py-spy
    _Form((".py(", "): "), re.compile(rf"^\s*{_PATH}\({_AT}\): {_FUNCTION}$")),  # pybind11
    _Form(
        ("#",),  # a debugger, or PyTorch's own account of C++
        re.compile(
            r"^\s*(?:frame )?#\d{1,3}:? +(?=0x|[\w~]*::|\w+\(|\w+ \((?:\w+=|\)))(?:0x[0-9a-f]+ in )?"
            r"(?P<function>[a-zA-Z_~][\w:~]*)(?=[<(\s])"
            r"(?:.{0,2000}? (?:from|at|in) (?P<path>[\w./?+-]{1,300})(?::(?P<line>\d+))?)?"
        ),
        signature=True,
    ),
    _Form(("ray::", "() (pid="), re.compile(r"(?P<path>ray::\w+)\.(?P<function>\w+)\(\) \(pid="), signature=True),
)
_EATEN = re.compile(r"[a-z0-9]+(?: [a-z0-9]+){0,6}\.py")
_ENDS_SOURCE = re.compile(rf"{_PATH}:{_AT}:(?: [A-Z]\w*(?:Error|Exception|Exit|Interrupt|OutOfResources))?\s*$")
"""Where pytest ends the source of a frame, which stands above it."""
_BEGINS_SOURCE = re.compile(r"\s*(?:async )?def (?P<function>\w+)\(")
_PARTS = re.compile(r"(?:_ ){5}|_{5,} |={5}")
MOST_SOURCE = 400
_NO_PYTHON = re.compile(r"$|ray::|\?\?|[^<\n]*\.(?:so|cpp|cc|cu|c|h)\b")
_OPEN = re.compile(r'File "[^"\n]{0,500}$|\.py"?(?:, line|:\d+ in$|", l?i?n?e?)|", line \d+')
_EXCEPTION = re.compile(r"\s{0,3}(?:[\w.]*(?:Error|Exception|Exit|Interrupt|OutOfResources)\b|ray\.exceptions|Killed\b)")
_CARETS = re.compile(r"\s*[~^]+\s*$")
_NUMBERED = re.compile(r"\s*(?P<arrow>❱|-{1,8}>)?\s*(?P<number>\d{1,6})(?:[ │|]+(?P<code>.*)|$)|\s*\(\.\.\.\)$")
MOST_JOINED = 3
CONTEXT = 12
"""Lines of source that are shown around the one where a frame stands, at the most."""


def may_show_frame(text: str) -> bool:
    """Does one of the texts stand in it without which no line shows a frame?"""
    return ".py" in text or 'File "' in text or "#" in text[:12] or "ray::" in text


def frame_of(line: LogLine, following: Sequence[LogLine] = (), order: int = 0) -> tuple[Frame, int] | None:
    """(the frame that a line shows, with the source code behind it on the same line; how many of the lines after it complete it).

    `order` is the line's place.
    """
    text = line.text
    found = _matched(text) or _completed(text, line, following)
    if found is None:
        return None
    form, match, joined = found
    number = match["line"] if "line" in match.re.groupindex else None
    behind = "" if form.signature or len(match.string) >= 4000 else match.string[match.end() :].strip()
    file_line = int(number) if number is not None and number.isdigit() else None
    function = re.split(r"\.|::", match["function"])[-1]
    path = match["path"] or ""
    if (name := path.rpartition("/")[2]).count(" ") and _EATEN.fullmatch(name):  # a chat took the underscores for italics
        path = path.removesuffix(name) + name.replace(" ", "_")
        if _EATEN.fullmatch(f"{behind}.py"):
            function, behind = f"{function} {behind}".replace(" ", "_"), ""
    return Frame(path, function, line.speaker, line.source, line.number, file_line, behind, order), joined


def _matched(text: str, joined: int = 0) -> _Found | None:
    for form in _FORMS:
        if form.needs[0] in text and all(need in text for need in form.needs) and (match := form.pattern.search(text)) is not None:
            return form, match, joined
    return None


def _completed(text: str, line: LogLine, following: Sequence[LogLine]) -> _Found | None:
    if not _OPEN.search(text[-600:]):
        return None
    tight = loose = text
    for joined, nxt in enumerate(following[:MOST_JOINED], start=1):
        if (nxt.signed and nxt.speaker != line.speaker) or not nxt.text.strip():
            return None
        tight, loose = tight + nxt.text.strip(), loose.rstrip() + " " + nxt.text.strip()
        found = _matched(loose, joined) or _matched(tight, joined)
        if found is not None:
            return found
    return None


def source_blocks(lines: Sequence[LogLine]) -> dict[int, tuple[Frame, range]]:
    """Where pytest printed a function's source and, below it, where it stands: that place -> (its frame, the source)."""
    found: dict[int, tuple[Frame, range]] = {}
    last = -1
    for order, line in enumerate(lines):
        if ".py:" not in line.text or len(line.text) > 400 or (match := _ENDS_SOURCE.match(line.text)) is None:
            continue
        above = range(order - 1, max(last, order - MOST_SOURCE), -1)
        first = next((n for n in above if _PARTS.match(lines[n].text)), above.stop)
        begins = next((n for n in range(first + 1, order) if _BEGINS_SOURCE.match(lines[n].text)), None)
        last = order
        if begins is not None and (function := _BEGINS_SOURCE.match(lines[begins].text)) is not None:
            source = range(begins, next((n for n in range(begins, order) if lines[n].text.startswith("E  ")), order))
            shown = next((lines[n].text.strip() for n in reversed(source) if lines[n].text.strip()), "")
            file_line = int(match["line"])
            frame = Frame(match["path"], function["function"], line.speaker, line.source, line.number, file_line, shown, order)
            found[order] = frame, source
    return found


def says_more(frame: Frame) -> bool:
    """Is it a debugger's or Ray's, whose line says more than where the code stands: which engine it is, which worker?"""
    return not frame.path.endswith((".py", ".pyx")) and _NO_PYTHON.match(frame.path) is not None


def is_echo(line: LogLine) -> bool:
    """Does this line, standing below a frame of the same speaker, show source code rather than an exception?"""
    return not _EXCEPTION.match(line.text) or line.text.lstrip().startswith("raise ")


def is_carets(text: str) -> bool:
    """The marks that Python 3.11 draws below a source line."""
    return bool(_CARETS.match(text))


def numbered_source(text: str, frame: Frame) -> tuple[bool, str] | None:
    """(does an arrow say that the frame stands here, the code) of a line of source with its number, as notebooks and rich show it."""
    match = _NUMBERED.match(text) if text[:1] in " ❱-(" or text[:1].isdigit() else None
    if match is None or (text[:1].isdigit() and abs(int(match["number"]) - (frame.file_line or -CONTEXT)) >= CONTEXT):
        return None
    return match["arrow"] is not None, (match["code"] or "").strip(" │")
