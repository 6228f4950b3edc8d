"""Tracebacks that a record holds as objects, as Python prints them."""

from collections.abc import Iterator, Mapping
from typing import Any

DEEPEST = 20
"""Objects and arrays within one another in which a traceback is looked for; Sentry's own stands six deep."""


def stack(value: Any, depth: int = 0) -> Iterator[str]:
    """The lines of all tracebacks inside a record's value: their frames, and what was raised behind them."""
    if depth > DEEPEST:
        return
    if isinstance(value, list):
        for one in value:
            yield from stack(one, depth + 1)
    if isinstance(value, dict):
        frames = value.get("frames")
        for frame in frames if isinstance(frames, list) else ():
            yield from frame_lines(frame) if isinstance(frame, dict) else ()
        yield from (line for name, inner in value.items() if name != "frames" for line in stack(inner, depth + 1))
        yield from raised_line(value)


def frame_lines(frame: Mapping[str, Any]) -> Iterator[str]:
    """An object with filename, lineno and function, as Sentry and structlog write them."""
    path, function, line = frame.get("filename"), frame.get("function", frame.get("name")), frame.get("lineno")
    if path and function and line:
        yield f'  File "{path}", line {line}, in {function}'
        yield from (f"    {str(frame[key]).strip()}" for key in ("context_line", "line") if frame.get(key))


def raised_line(exception: Mapping[str, Any]) -> Iterator[str]:
    """An object with the exception's type and value, or nothing."""
    raised, said = exception.get("exc_type", exception.get("type")), exception.get("exc_value", exception.get("value"))
    if isinstance(raised, str) and isinstance(said, str) and raised.endswith(("Error", "Exception")):
        yield f"{raised}: {said}"
