"""Between a verified request and its acknowledgement: events are stored first, commands noted first, clicks stored in time."""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bot.slack.inbox import Arrival, arrival, said_in
from bot.slack.installs import Identity
from bot.slack.room import Job, Room
from bot.slack.spool import keep
from bot.slack.surfaces import SURFACES
from bot.slack.surfaces.buttons import FORMS
from bot.slack.surfaces.surface import Surface
from bot.slack.workers import Workers
from bot.store.errors import StoreError

log = logging.getLogger(__name__)
SOON = 0.2  # seconds that an acknowledgement may wait, of the half that a person notices
AT_MOST = 2.4  # seconds for storing, of the three that Slack waits
NOT_KEPT = "This could not be kept: the database does not answer. Nothing was done; please try again in a minute."
UNSURE = "If nothing comes within a minute, ask again."
REMEMBERED = 1_000  # messages kept or being kept
AT_ONCE = frozenset({"command", "shortcut", "message_shortcut"})

Answer = tuple[int, dict[str, Any] | None]


class Gate:
    """Decides what Slack is answered, and when."""

    def __init__(self, room: Room, workers: Workers) -> None:
        self._room = room
        self._workers = workers
        self._keeping: dict[str | None, asyncio.Task[None]] = {}

    async def enter(self, body: Mapping[str, Any], who: Identity | None) -> Answer:
        """Status and acknowledgement for one verified payload."""
        if body.get("type") == "app_rate_limited":
            log.warning("Slack holds events back: the workspace sends more than 30,000 an hour")
        said = said_in(body)
        if said in self._keeping:
            return (200, None) if await _in_time(self._keeping[said]) else (503, None)
        came = arrival(body, who.bot_user if who else "")
        if came is None:
            return 200, None
        surface = next((surface for surface in SURFACES if surface.takes(came)), None)
        if surface is None:
            return 200, None
        says = surface.says(came) if surface.says else None
        if says and says.get("response_action") == "errors":
            return 200, says
        if came.kind in AT_ONCE or (came.kind == "click" and came.body["action"] in FORMS):
            return 200, says if who is None else await self._at_once(surface, Job(who, came), says)
        return await self._stored(surface, came, says, said)

    async def _at_once(self, surface: Surface, job: Job, says: dict[str, Any] | None) -> dict[str, Any] | None:
        """Slack sends none of these again, and a view opens within three seconds or never: noted on the disk, however the database is."""
        noting = self._room.start(self._noted(job.arrival), f"noting a {job.arrival.kind}")
        greeting = self._room.start(self._greeted(surface, job, noting), f"greeting of {surface.name}")
        await asyncio.wait({noting, greeting}, timeout=SOON)
        if says is None or greeting.done() or (noting.done() and noting.result()):
            return says
        return {**says, "text": f"{says['text']} {UNSURE}"}  # neither disk nor database has it: a kill would lose it, and who asked knows

    async def _noted(self, came: Arrival) -> bool:
        try:
            await self._room.spool.note(came)
        except OSError as lost:
            log.error("a %s lies in memory alone until the database has it: %s: %s", came.kind, self._room.spool.place, lost.strerror)
            return False
        return True

    async def _greeted(self, surface: Surface, job: Job, noting: "asyncio.Task[bool]") -> None:
        """The sign is given, then what is left to do comes into the inbox."""
        came, spool = job.arrival, self._room.spool
        try:
            opened = await surface.greet(self._room, job) if surface.greet else {}
            noted = await noting
            if opened:
                came = replace(came, body={**came.body, **opened})
            if opened is not None and not await self._kept(came, noted, more=bool(opened)):
                return
            if noted:
                await spool.drop(came)
        finally:
            spool.leave(came)

    async def _kept(self, came: Arrival, noted: bool, *, more: bool) -> bool:
        """`more` is known by now than was noted."""
        try:
            await self._keep(came)
        except StoreError as lost:
            log.warning("%s not in the inbox yet: %s", came.kind, lost)
            if not noted and came.body.get("response_url"):
                await self._room.asides.respond(came.body["response_url"], NOT_KEPT)
            elif noted and more:
                await self._noted(came)
            return False
        return True

    async def _stored(self, surface: Surface, came: Arrival, says: dict[str, Any] | None, said: str | None) -> Answer:
        keeping = self._room.start(self._keep(came), f"keeping a {came.kind}")
        if said is not None:
            self._remember(said, keeping)
        if not await _in_time(keeping):
            # A locked database does not let go at once, so it is not waited for. An event may still be stored: its retry is then known.
            if came.kind in ("click", "submission"):
                keeping.cancel()
            log.warning("%s not kept within %.1f s, so not acknowledged", came.kind, AT_MOST)
            return self._not_kept(came)
        return 200, says

    def _remember(self, said: str, keeping: "asyncio.Task[None]") -> None:
        """The same message in its other event, or again, then costs no second look and no query."""
        self._keeping[said] = keeping
        keeping.add_done_callback(lambda kept: self._keeping.pop(said, None) if kept.cancelled() or kept.exception() else None)
        if len(self._keeping) > REMEMBERED:
            del self._keeping[next(iter(self._keeping))]

    def _not_kept(self, came: Arrival) -> Answer:
        """Slack sends an event again; a person who clicked or submitted sees that it failed."""
        if came.kind == "submission":
            block = "log" if came.body["callback"] == "log" else "model"
            return 200, {"response_action": "errors", "errors": {block: NOT_KEPT}}
        if came.body.get("response_url"):
            self._room.start(self._room.asides.respond(came.body["response_url"], NOT_KEPT), "not kept")
        return 503, None

    async def _keep(self, came: Arrival) -> None:
        await keep(self._room.store, came)
        self._workers.wake()


async def _in_time(keeping: "asyncio.Task[None]") -> bool:
    """Kept, before Slack takes the silence for a failure."""
    await asyncio.wait({keeping}, timeout=AT_MOST)
    return keeping.done() and not keeping.cancelled() and keeping.exception() is None
