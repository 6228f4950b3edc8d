"""How the contract's ids are said to people, once."""

import re
from datetime import datetime

from bot.domain import phases
from bot.domain.size import gib as in_best_unit

PHASES = {phase: words.few for phase, words in phases.PHASES.items()}
_COMMAND = re.compile(r"`oombot (?=(?:size|history|show|explain|stats|forget|outcome|settings)\b)")
OUTCOMES = {"fixed": "it worked", "moved": "the error moved", "same": "same error", "wrong": "wrong diagnosis", "other": "something else"}


def as_asked_here(text: str) -> str:
    """A sentence of every door: a command of the terminal as it is said to the bot."""
    return _COMMAND.sub("`@oombot ", text)


def gib(count: int | None) -> str:
    """Bytes in GiB with two decimals; a dash for what was not reported."""
    return "–" if count is None else f"{count / 2**30:,.2f}"


def size(count: int | None) -> str:
    """Bytes with the unit that reads best; a dash for what was not reported."""
    return "–" if count is None else in_best_unit(count)


def number(value: object) -> str:
    """A count with thousands separators, other values as they are; a dash for None."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,.2f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def moment(at: str | None) -> str:
    """An ISO time as date and minute, UTC."""
    if not at:
        return "–"
    try:
        return datetime.fromisoformat(at).strftime("%Y-%m-%d %H:%M UTC")
    except ValueError:
        return at
