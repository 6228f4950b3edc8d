"""The Rulebook: every rule, looked up the way that reading and diagnosis ask for it."""

import re
from collections.abc import Mapping

from bot.rulebook import files

_WITHIN = re.compile(r"[-_](?<=\w[-_])(?=\w)")
"""It begins with what it is about, so that other letters are passed quickly."""


def texts(value: files.Texts) -> list[str]:
    """One text or several, as a list without empty ones."""
    return [value] if isinstance(value, str) and value else [v for v in value if v] if isinstance(value, list) else []


def written(said: str) -> str:
    """A word or text in small letters, a hyphen or underscore within a word as a space."""
    return _WITHIN.sub(" ", said.lower())


class Rulebook(files.Tables, frozen=True, kw_only=True, eq=False):
    """All rules of one folder. `digest` names exactly these rules; `homes` says which file an id stands in."""

    homes: Mapping[str, str]
    digest: str
