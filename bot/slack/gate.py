"""Between a verified request and its acknowledgement: events are stored first, commands greeted first, clicks stored in time."""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bot.slack.calls import POST_SECONDS
from bot.slack.inbox import Arrival, arrival, said_in
from bot.slack.installs import Identity
from bot.slack.room import Job, Room
from bot.slack.surfaces import SURFACES
from bot.slack.surfaces.buttons import FORMS
from bot.slack.surfaces.surface import Surface
from bot.slack.workers import Workers
from bot.store.errors import StoreError

log = logging.getLogger(__name__)
SOON = 0.2  # seconds that an acknowledgement may wait for storing, of the half that a person notices
AT_MOST = 2.4  # seconds for storing, of the three that Slack waits
LATER = (0.5, 1, 2, 4, 8, 16)  # seconds between tries to store what was already acknowledged
NOT_KEPT = "This could not be kept: the database does not answer. Nothing was done; please try again in a minute."
UNSURE = "If nothing comes within a minute, ask again."
REMEMBERED = 1_000  # messages kept or being kept
OPENS = "message_shortcut"
"""Opens a view and is worked all the same: what is stored waits for that view, as long as Slack may take to open it."""
OPENED = POST_SECONDS + 1.0
AT_ONCE = frozenset({"command", "shortcut", OPENS})

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
        if came.kind in AT_ONCE:
            if who is not None:
                greeting = self._room.start(self._greeted(surface, Job(who, came)), f"greeting of {surface.name}")
                await asyncio.wait({greeting}, timeout=SOON)  # Slack sends none of these again: where storing is quick, it comes first
                if says is not None and not greeting.done():  # what is not stored yet does not outlive this process: who asked should know
                    return 200, {**says, "text": f"{says['text']} {UNSURE}"}
            return 200, says
        return await self._stored(surface, came, who, says, said)

    async def _greeted(self, surface: Surface, job: Job) -> None:
        """Acknowledged already; the sign is given, then it is stored, patiently. Whose sign takes its time is stored beside that."""
        came = job.arrival
        if came.kind != OPENS:
            opened = await surface.greet(self._room, job) if surface.greet else {}
            if opened is not None:
                await self._kept(replace(came, body={**came.body, **opened}))
            return
        keeping = self._room.start(self._kept(came, after=OPENED), f"keeping a {came.kind}")
        opened = await surface.greet(self._room, job) if surface.greet else {}
        if await keeping:
            whole = replace(came, body={**came.body, **(opened or {})})
            try:
                await self._room.store.amend(whole.team, whole.key, whole.payload())
                self._workers.wake()
            except StoreError as lost:  # then it is worked a little later, and its end is not said in the view
                log.warning("%s stays as it was kept: %s", came.kind, lost)

    async def _kept(self, came: Arrival, *, after: float = 0.0) -> bool:
        for wait in (*LATER, None):
            try:
                await self._keep(came, after)
                return True
            except StoreError as lost:
                log.warning("%s not kept yet: %s", came.kind, lost)
                if wait is not None:
                    await asyncio.sleep(wait)
        if came.body.get("response_url"):
            await self._room.asides.respond(came.body["response_url"], NOT_KEPT)
        return False

    async def _stored(self, surface: Surface, came: Arrival, who: Identity | None, says: dict[str, Any] | None, said: str | None) -> Answer:
        if who is not None and came.kind == "click" and came.body["action"] in FORMS:
            self._room.start(self._greeted(surface, Job(who, came)), "form")
            return 200, None
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

    async def _keep(self, came: Arrival, after: float = 0.0) -> None:
        given = (came.team, came.channel, came.thread, came.key, came.kind, came.payload(), came.enterprise)
        await self._room.store.deliver(*given, after=after)
        self._workers.wake()


async def _in_time(keeping: "asyncio.Task[None]") -> bool:
    """Kept, before Slack takes the silence for a failure."""
    await asyncio.wait({keeping}, timeout=AT_MOST)
    return keeping.done() and not keeping.cancelled() and keeping.exception() is None
