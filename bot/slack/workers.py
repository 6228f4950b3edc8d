"""Works what was stored: a few at a time, in order per thread, again after a failure or a crash."""

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import aiohttp
from slack_sdk.errors import SlackApiError

from bot.slack.alive import is_dead, worker_name
from bot.slack.calls import UnsureError, is_final
from bot.slack.current import as_it_stands
from bot.slack.inbox import Arrival, deleted
from bot.slack.installs import Identity, refusal
from bot.slack.outbox import Place
from bot.slack.room import Job, Room
from bot.slack.surfaces import SURFACES
from bot.store.deliveries import CHANGED
from bot.store.errors import LostClaimError, StoreError

if TYPE_CHECKING:
    from bot.store.store import Delivery

log = logging.getLogger(__name__)
WORKERS = 6
MOST_LENT = 30  # workers that stand in for others
LEASE = 20.0  # seconds a claim holds without renewal: how long an answer is late after kill -9
PAUSE = 1.0  # seconds between looks at an empty queue
INHERIT_EVERY = 3.0  # seconds between looks for workers that died
TRIES = 6
OUTAGE = 30  # tries while Slack or the database cannot be reached: about half an hour, with a minute between them in the end
WORLD = (UnsureError, StoreError, aiohttp.ClientError, TimeoutError)
TRIES_WAITED_FOR = 3  # a person looks at “Working it out…”: better told soon than answered in a minute
NOTED_EVERY = 300.0  # seconds
DOOR, LAST_ARRIVAL = "slack", "last_arrival"
EDITED = "edited:"
"""Kind of the note on a message's newest edit."""
ABSENT = ("not_in_channel", "channel_not_found")
AGAIN = "Please send it again, or tell whoever runs me."


class Workers:
    """Claims deliveries from the store until it is stopped."""

    def __init__(self, room: Room, count: int = WORKERS, lease: float = LEASE) -> None:
        self._room = room
        self._count = count
        self._lease = lease
        self._name = worker_name()
        self._tasks: list[asyncio.Task[None]] = []
        self._woken = asyncio.Event()
        self._looking = asyncio.Lock()
        self._stopping = False
        self._noted = -NOTED_EVERY
        self._inherited = -INHERIT_EVERY
        self._lent: set[asyncio.Task[None]] = set()
        self._erased = False

    def start(self) -> None:
        """Begins to work."""
        self._room.outbox.calls.rest = self.lent
        never = asyncio.Event()
        run = [self._run(never, first=number == 0) for number in range(self._count)]
        self._tasks = [asyncio.create_task(work, name=f"slack worker {number}") for number, work in enumerate(run)]

    def wake(self) -> None:
        """Something has been stored."""
        self._woken.set()

    async def stop(self, patience: float = 10.0) -> None:
        """Lets work under way end, then stops; what is left is claimed again after the next start."""
        self._stopping = True
        self._woken.set()
        if working := [*self._tasks, *self._lent]:
            _, late = await asyncio.wait(working, timeout=patience)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    @asynccontextmanager
    async def lent(self) -> AsyncIterator[None]:
        """While one waits because Slack asked for it, another works: what is held back in one channel holds up no other."""
        back = asyncio.Event()
        if len(self._lent) < MOST_LENT and not self._stopping:
            standing_in = asyncio.create_task(self._run(back), name="slack worker, standing in")
            self._lent.add(standing_in)
            standing_in.add_done_callback(self._lent.discard)
        try:
            yield
        finally:
            back.set()

    async def _run(self, end: asyncio.Event, *, first: bool = False) -> None:
        """Claims and works. Of those that find nothing, one looks again after a pause, for what comes due; the others sleep."""
        if first:
            await self._inherit()
        while not (self._stopping or end.is_set()):
            self._woken.clear()
            try:
                worked = await self._turn()
            except Exception:  # the top of a background task: whatever ended it would leave the bot silent and looking well
                log.exception("a turn ended early; what it held is worked again when its lease ends")
                worked = False
            if not worked:
                await self._wait()

    async def _turn(self) -> bool:
        """Claims one delivery and works it; False when there was none."""
        try:
            delivery = await self._room.store.claim(self._name, self._lease)
        except StoreError as lost:
            log.error("the queue could not be read: %s", lost)
            return False
        if delivery is None:
            return False
        self._woken.set()  # there may be more
        await self._deliver(delivery)
        return True

    async def _inherit(self) -> None:
        """What a process held that was killed here is worked at once, be it an earlier one or one beside this."""
        self._inherited = time.monotonic()
        try:
            if count := await self._room.store.release(is_dead):
                log.warning("taken over from a process that ended: %s", count)
                self._woken.set()
        except StoreError as lost:
            log.warning("claims of dead workers could not be looked for, and end with their leases: %s", lost)

    async def _wait(self) -> None:
        if self._looking.locked():
            await self._woken.wait()
            return
        async with self._looking:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._woken.wait(), PAUSE)
            if time.monotonic() - self._inherited > INHERIT_EVERY:
                await self._inherit()
            if self._erased:
                await self._wipe()

    async def _wipe(self) -> None:
        """What was erased while a delivery of it was in work lay in that delivery still, when the file was cleaned."""
        self._erased = False  # before it is begun: what is erased while it lasts is for the next one
        try:
            if not await self._room.store.wipe():
                self._erased = True
        except StoreError as lost:
            self._erased = True
            log.warning("the database's log could not be emptied yet: %s", lost)

    async def _deliver(self, delivery: "Delivery") -> None:
        """The one error handler: what is not mended here is tried again later, and said in the end."""
        arrival = Arrival(
            delivery.kind, delivery.team, delivery.enterprise, delivery.channel, delivery.thread, delivery.key, json.loads(delivery.payload)
        )
        keeping = asyncio.create_task(self._keep(delivery.id))
        try:
            await self._work(arrival, attempt=delivery.attempts)
            await self._room.store.finish(delivery.id)
            self._erased |= arrival.kind == "delete" or (arrival.kind == CHANGED and bool(arrival.body["erased"]))
        except LostClaimError as lost:
            log.warning("left to another worker: %s", lost)
        except Exception as failed:  # whatever a surface could not mend: kept, tried again, and said when it is given up
            await self._failed(delivery, arrival, failed)
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)

    async def _work(self, arrival: Arrival, *, attempt: int) -> None:
        if arrival.kind == "revoked":
            who: Identity | None = Identity(arrival.team, arrival.enterprise, "", "", "")
        else:
            who = await self._room.installs.of(arrival.enterprise, arrival.team)
        if who is None:
            log.warning("%s for workspace %s, where the app is not installed", arrival.kind, arrival.team)
            return
        surface = next((surface for surface in SURFACES if surface.takes(arrival)), None)
        if surface is None:
            return
        await self._note_arrival()
        now = await self._as_of_now(who, arrival)
        if now is None:
            return
        arrival = now
        begun = time.monotonic()
        await surface.work(self._room, Job(who, arrival, attempt))
        log.info("%s worked in %.2f s", surface.name, time.monotonic() - begun)

    async def _as_of_now(self, who: Identity, arrival: Arrival) -> Arrival | None:
        """What is said now: Slack may send a message or an edit late, after its deletion or a newer edit. None: nothing is left of it."""
        if arrival.kind not in ("message", "edit"):
            return arrival
        channel, ts, store = arrival.channel or "", str(arrival.body["ts"]), self._room.store
        if await store.arrived(arrival.team, deleted(channel, ts)):
            self._erased = True  # its words came after their deletion, and lay in the inbox
            return None
        newest = await store.reply_of(arrival.team, channel, ts, EDITED)
        if arrival.kind == "edit":
            if newest is not None and newest.ts > arrival.body["edited"]:
                return None
            await store.remember_reply(None, arrival.team, channel, ts, str(arrival.body["edited"]), EDITED)
        elif newest is not None:
            return await self._read_again(who, arrival)
        return arrival

    async def _read_again(self, who: Identity, arrival: Arrival) -> Arrival | None:
        try:
            said = await as_it_stands(self._room.outbox, who, arrival.body)
        except SlackApiError:
            return arrival
        if said is None:
            return None
        return replace(arrival, body={**arrival.body, **{name: said[name] for name in ("text", "hidden", "files")}, "bare": False})

    async def _note_arrival(self) -> None:
        """For doctor, which runs in a process of its own: when Slack last reached us, to within a few minutes."""
        if time.monotonic() - self._noted > NOTED_EVERY:
            self._noted = time.monotonic()
            await self._room.store.set_setting(DOOR, LAST_ARRIVAL, datetime.now(UTC).isoformat(timespec="minutes"))

    async def _keep(self, delivery: int) -> None:
        while True:
            await asyncio.sleep(self._lease / 3)
            try:
                await self._room.store.renew(delivery, self._lease)
            except LostClaimError:
                return
            except StoreError as lost:
                log.warning("the claim on delivery %s could not be renewed: %s", delivery, lost)

    async def _failed(self, delivery: "Delivery", arrival: Arrival, failed: Exception) -> None:
        final = isinstance(failed, SlackApiError) and is_final(failed)
        if final:
            reason = f"Slack refused: {refusal(failed)}" if isinstance(failed, SlackApiError) else ""
            log.error("delivery %s (%s) given up: %s", delivery.id, delivery.kind, reason)
        else:
            where = None if isinstance(failed, (SlackApiError, *WORLD)) else failed  # a fault of ours needs its place
            what = f"{type(failed).__name__}: {refusal(failed) if isinstance(failed, SlackApiError) else failed}"
            log.error("delivery %s (%s), try %s: %s", delivery.id, delivery.kind, delivery.attempts, what, exc_info=where)
            reason = f"{type(failed).__name__}"
        tries = TRIES_WAITED_FOR if delivery.kind == "command" else OUTAGE if isinstance(failed, WORLD) else TRIES
        last = final or delivery.attempts >= tries
        try:
            if last:  # said first: what is put away is never looked at again
                await self._say_so(delivery, arrival, reason)
            await self._room.store.fail(delivery.id, reason, None if last else min(2.0**delivery.attempts, 60.0))
        except LostClaimError as lost:
            log.warning("left to another worker: %s", lost)
        except StoreError as lost:
            log.error("delivery %s stays claimed until its lease ends: %s", delivery.id, lost)

    async def _say_so(self, delivery: "Delivery", arrival: Arrival, reason: str) -> None:
        tried = "" if delivery.attempts == 1 else f", tried {delivery.attempts} times"
        mend = "Invite me to the channel, then send it again." if reason.endswith(ABSENT) else AGAIN
        said = f"This could not be worked on ({reason}; delivery {delivery.id}){tried}. {mend}"
        body = arrival.body
        try:
            who = await self._room.installs.of(arrival.enterprise, arrival.team)
            if who is not None and body.get("user"):
                place = Place(body.get("channel") or "", body.get("thread_ts") or body.get("ts"))
                url = body.get("response_url")
                await self._room.asides.alone(who, place, body["user"], said, about=arrival.key, name="failed", url=url)
        except LostClaimError:
            raise
        except Exception as failed:  # whatever keeps the person from being told must not keep the delivery
            log.warning("delivery %s: the person could not be told: %s", delivery.id, type(failed).__name__)
