"""What every use case works with; `serve` or a command lays it out once."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from bot.domain.incident import Contribution
from bot.settings import Settings
from bot.usecases.reply import Unusable

if TYPE_CHECKING:
    from bot.rulebook.book import Rulebook
    from bot.store.store import Store

Judge = Callable[[Sequence[Contribution], Sequence[Mapping[str, Any]]], Awaitable[Mapping[str, Any]]]
"""(contributions so far, precedents) -> the contract's diagnosis document; may run in a worker process."""


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who asks. `channels` None: may see all of the team (the command line, the open local page)."""

    team: str
    user: str | None = None
    enterprise: str | None = None
    channels: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Desk:
    """`store` is None where nothing is kept (`--no-store`)."""

    settings: Settings
    rulebook: "Callable[[], Rulebook]"
    judge: Judge
    now: Callable[[], datetime]
    store: "Store | None" = None


def kept(desk: Desk) -> "Store":
    """The store; Unusable where nothing is kept."""
    if desk.store is None:
        raise Unusable("Nothing is kept here (--no-store), so there is no history. Leave that option out.")
    return desk.store
