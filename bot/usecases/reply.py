"""What every use case returns and every door shows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

ReplyKind = Literal[
    "diagnosis", "sizing", "history", "incident", "outcome", "explanation", "stats", "checks", "settings", "notice", "audit"
]


@dataclass(frozen=True, slots=True)
class Reply:
    """`document` is the whole answer as the contract's JSON: what `--json` prints, and all that a door may draw from.

    `warning` is said beside the answer (standard error, an ephemeral line), never inside it.
    """

    kind: ReplyKind
    document: Mapping[str, Any]
    warning: str | None = None


def notice(says: str) -> Reply:
    """A sentence, where there is nothing else to show."""
    return Reply("notice", {"schema": "oombot.notice/1", "says": says})


class Unusable(Exception):
    """What a person gave cannot be used. The message says what, where, and what to do; exit status 2."""
