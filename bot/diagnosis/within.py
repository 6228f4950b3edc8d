"""A change inside the value of another option, where the start that was given says it there."""

import ast
import json
from collections.abc import Mapping, Sequence


def within(name: str, value: str | None, given: Sequence[str]) -> list[str] | None:
    """The words with the change where it stands inside the value of another option (`--compilation-config '{"cudagraph_mode": …}'`, or
    `-cc.cudagraph_mode=…`), for an engine refuses what is given at both places; None where it stands in none.
    """
    for place, word in enumerate(given):
        head, equals, tail = ("", "", word) if word[:1] == "{" else word.partition("=")
        if word[:1] == "-" and head.rpartition(".")[2].replace("-", "_") == name and "." in head and equals and value is not None:
            return [*given[:place], f"{head}={json.dumps(_value_of(value))}", *given[place + 1 :]]
        options = _options(tail) if tail[:1] == "{" else {}
        if name in options and value is not None:
            changed = {**options, name: _value_of(value)}
            written = repr(changed) if equals and word[:1] != "-" else json.dumps(changed)
            return [*given[:place], f"{head}{equals}{written}", *given[place + 1 :]]
    return None


def _options(text: str) -> Mapping[str, object]:
    """JSON, or a dict of Python; empty where it is neither."""
    for parse in (json.loads, ast.literal_eval):
        try:
            read = parse(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        return read if isinstance(read, dict) else {}
    return {}


def _value_of(value: str) -> object:
    """A value as JSON has it: `1 2 4` is a list, `512` a number."""
    parts = value.split()
    if parts and all(part.isdigit() for part in parts):
        return [int(part) for part in parts] if len(parts) > 1 else int(value)
    return value
