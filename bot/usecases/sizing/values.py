"""Single values of a sizing question, checked; every error names the value and what it must be."""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from bot.reading.model.quantization_config import settings_of

MOST = 10**15
"""More bytes, tokens or requests than any deployment has; beyond it figures multiply to what no float holds."""


class Refused(ValueError):
    """The question has no answer. `by`: `engine` when vLLM itself refuses these arguments, `oombot` when we do not know enough."""

    def __init__(self, message: str, by: str = "oombot") -> None:
        super().__init__(message)
        self.by = by


def integer(question: Mapping[str, Any], name: str) -> int | None:
    """A whole number of the question, None when it is not given. Raises Refused when it is none."""
    value = question.get(name)
    if value is None:
        return None
    figure = _figure(name, value)
    if figure != int(figure):
        raise Refused(f"{name} is {shown(value)}; it must be a whole number")
    return int(value) if isinstance(value, int | str) else int(figure)


def counted(question: Mapping[str, Any], name: str) -> int | None:
    """A count of at least 1, None when it is not given."""
    value = integer(question, name)
    if value is not None and value < 1:
        raise Refused(f"{name} is {value}; it must be at least 1", by="engine")
    return value


def positive(question: Mapping[str, Any], name: str) -> int:
    """A count of at least 1, which is also its default."""
    return counted(question, name) or 1


def held_bytes(question: Mapping[str, Any], name: str, least: int = 0) -> int | None:
    """Bytes that something holds: `least` or more, None when they are not given."""
    value = integer(question, name)
    if value is not None and value < least:
        raise Refused(f"{name} is {value}; it must be at least {least}")
    return value


def amount(question: Mapping[str, Any], name: str) -> float | None:
    """A figure of 0 or more, such as GiB, None when it is not given."""
    value = question.get(name)
    figure = None if value is None else _figure(name, value)
    if figure is not None and figure < 0:
        raise Refused(f"{name} is {shown(value)}; it must be at least 0", by="engine")
    return figure


def named(question: Mapping[str, Any], name: str, choices: Sequence[str]) -> str | None:
    """One of the names that the engine takes, None when none is given."""
    value = question.get(name)
    if value is None or str(value) in choices:
        return None if value is None else str(value)
    raise Refused(f"{name} is {shown(value)}; vLLM takes {', '.join(choices)}", by="engine")


def share(question: Mapping[str, Any], name: str, default: float) -> float:
    """A fraction above 0 and up to 1."""
    value = question.get(name)
    figure = default if value is None else _figure(name, value)
    if not 0 < figure <= 1:
        raise Refused(f"{name} is {shown(value)}; it must lie above 0 and be at most 1", by="engine")
    return figure


def table(question: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    """Settings by name, None when they are not given."""
    value = question.get(name)
    if value is not None and not isinstance(value, Mapping):
        raise Refused(f"{name} is {shown(value)}; it must be a table of settings, as in the model's own file")
    return value


def text(question: Mapping[str, Any], name: str) -> str | None:
    """A word, None when it is not given."""
    value = question.get(name)
    if isinstance(value, list | Mapping):
        raise Refused(f"{name} is {shown(value)}; it must be one word")
    return None if value is None else str(value)


def flag(question: Mapping[str, Any], name: str, default: bool) -> bool:
    """A switch of the question, `default` when it is not given. Raises Refused for a word that is neither on nor off."""
    value = question.get(name)
    if value is None:
        return default
    word = str(value).lower()
    if word not in _ON | _OFF:
        raise Refused(f"{name} is {shown(value)}; it must be true or false")
    return word in _ON


_ON, _OFF = frozenset({"true", "1", "yes", "on"}), frozenset({"false", "0", "no", "off"})


def per_rank(question: Mapping[str, Any], name: str, ranks: int) -> Sequence[int] | None:
    """One figure for every rank, or a list with one per rank (pipeline × tensor); None when it is not given."""
    value = question.get(name)
    if not isinstance(value, list | tuple):
        number = integer(question, name)
        return None if number is None else [number] * ranks
    if len(value) != ranks:
        raise Refused(f"{name} lists {len(value)} figures, but there are {ranks} ranks")
    return [int(_figure(name, figure)) for figure in value]


def _figure(name: str, value: Any) -> float:
    try:
        figure = float("nan" if isinstance(value, bool) else value)
    except (TypeError, ValueError, OverflowError):
        figure = float("nan")
    if not isfinite(figure):
        raise Refused(f"{name} is {shown(value)}; it must be a number")
    if abs(figure) > MOST:
        raise Refused(f"{name} is {shown(value)}; it must be at most {MOST:,}")
    return figure


def shown(value: Any) -> str:
    """A wrong value as an error quotes it, long ones cut."""
    said = repr(value)
    return said if len(said) <= 60 else f"{said[:60]}…"


def quantization_method(given: Mapping[str, Any]) -> str:
    """How the weights are quantized: the flag, else what config.json or the file beside it says; empty when they are not."""
    config = given.get("config")
    settings = settings_of(config) if isinstance(config, Mapping) else None
    named = str(settings.get("quant_method") or "") if isinstance(settings, Mapping) else ""
    return str(given.get("quantization") or named or ("modelopt" if given.get("hf_quant_config") else ""))
