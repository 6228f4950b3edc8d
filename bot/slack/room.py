"""What every surface works with; `build_slack` lays it out once."""

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bot.settings import Settings
from bot.slack.asides import Asides
from bot.slack.hosts import Hosts
from bot.slack.inbox import Arrival
from bot.slack.installs import Identity, Installs
from bot.slack.intake import Intake
from bot.slack.outbox import Outbox
from bot.slack.reminders import Reminders
from bot.slack.spool import Spool
from bot.slack.visibility import Visibility
from bot.store.errors import StoreError
from bot.usecases.asks import Asks
from bot.usecases.desk import Desk

if TYPE_CHECKING:
    from bot.store.store import Store

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Job:
    """One arrival on its way through a surface; `attempt` counts from 1."""

    who: Identity
    arrival: Arrival
    attempt: int = 1

    @property
    def again(self) -> bool:
        """An earlier try may have got part of the way."""
        return self.attempt > 1

    @property
    def body(self) -> dict[str, Any]:
        """The arrival's slim body."""
        return dict(self.arrival.body)


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """The desk, the store and the ways to Slack."""

    desk: Desk
    settings: Settings
    store: "Store"
    asks: Asks
    hosts: Hosts
    installs: Installs
    outbox: Outbox
    asides: Asides
    intake: Intake
    visibility: Visibility
    reminders: Reminders
    spool: Spool
    running: set[asyncio.Task[Any]] = field(default_factory=set)

    def start(self, work: Coroutine[Any, Any, Any], name: str) -> "asyncio.Task[Any]":
        """Runs beside the caller, with a reference kept so that it is neither collected nor lost at shutdown."""
        task = asyncio.create_task(work, name=name)
        self.running.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        self.running.discard(task)
        if task.cancelled() or (failed := task.exception()) is None:
            return
        if isinstance(failed, StoreError):  # the world's fault, and said in a sentence
            log.error("%s: %s", task.get_name(), failed)
        else:
            log.error("%s: %s", task.get_name(), type(failed).__name__, exc_info=failed)
