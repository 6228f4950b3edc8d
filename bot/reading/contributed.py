"""A decoded text as a contribution: cut to its telling lines where it is very large, its secrets hidden."""

from typing import Literal

from bot.domain.incident import Contribution
from bot.reading.large import LARGE, condensed
from bot.reading.redact import redact
from bot.reading.text import split_lines


def contributed(kind: Literal["paste", "file"], name: str | None, text: str) -> Contribution:
    """A paste or a file as every door hands it on: small enough to be kept, and to pass between processes."""
    cut = False
    if len(text) > LARGE:
        lines = split_lines(text)
        del text  # a log may have 200 MB
        text, cut = condensed(lines)
    return without_secrets(kind, name, text, cut)


def without_secrets(kind: Literal["paste", "file"], name: str | None, text: str, truncated: bool = False) -> Contribution:
    """The contribution whose text and name (a file's, an archive's member's) hold no secret: the one place where either becomes one."""
    hidden, redactions = redact(text)
    return Contribution(kind, hidden, name=name and redact(name)[0], redactions=redactions, truncated=truncated)
