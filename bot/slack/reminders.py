"""Which incidents are to be asked about after a day without an outcome."""

import asyncio
import json
import logging
import time
from collections.abc import Callable, Container, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from bot.slack.outbox import Place

if TYPE_CHECKING:
    from bot.store.store import Store

log = logging.getLogger(__name__)
AFTER = 24 * 3600.0  # seconds
EVERY = 600.0
SETTING = "slack.reminders"


class Reminders:
    """Which incidents are due when, kept in the team's settings so that a restart forgets none."""

    def __init__(self, store: "Store") -> None:
        self._store = store

    async def note(self, team: str, incident: str, place: Place, enterprise: str | None) -> None:
        """An incident got its first recommendation."""
        entry = {"at": time.time(), "channel": place.channel, "thread": place.thread, "enterprise": enterprise}
        await self._store.change_setting(team, SETTING, lambda noted: {incident: entry, **(noted or {})})

    async def run(self, wake: Callable[[], None]) -> None:
        """Looks every ten minutes."""
        while True:
            try:
                await self.look(time.time())
                wake()
            except Exception:  # the top of a background task: ended, it would be silent for good
                log.exception("reminders could not be looked through")
            await asyncio.sleep(EVERY)

    async def look(self, now: float) -> None:
        """Hands what is due to the queue; its key lets each through once."""
        for team, noted in (await self._store.settings_named(SETTING)).items():
            due = {incident: entry for incident, entry in noted.items() if entry["at"] + AFTER <= now}
            for incident, entry in due.items():
                await self._hand_over(team, incident, entry)
            if due:
                await self._store.change_setting(team, SETTING, partial(_without, due))

    async def _hand_over(self, team: str, incident: str, entry: Mapping[str, Any]) -> None:
        body = {"incident": incident, "channel": entry["channel"], "thread": entry["thread"]}
        thread = "direct" if entry["channel"].startswith("D") else entry["thread"]
        key = f"reminder:{incident}"
        await self._store.deliver(team, entry["channel"], thread, key, "reminder", json.dumps(body).encode(), entry["enterprise"])


def _without(due: Container[str], noted: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return {incident: entry for incident, entry in (noted or {}).items() if incident not in due} or None
