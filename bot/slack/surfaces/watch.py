"""A channel where a member switched the bot on: only what shows that memory ran out is answered."""

import asyncio

from bot.slack.allowance import say_so, used_up
from bot.slack.conversation import diagnose, eyes_off, eyes_on, incident_of, place_of
from bot.slack.inbox import Arrival
from bot.slack.room import Job, Room
from bot.slack.surfaces.surface import Surface
from bot.slack.words import shows_shortage


def takes(arrival: Arrival) -> bool:
    """Any other message in a channel, other bots' alerts included; whether the channel is watched is asked of the store."""
    return arrival.kind == "message" and bool(arrival.body["files"] or shows_shortage(arrival.body["text"]))


async def work(room: Room, job: Job) -> None:
    """Only where a member switched it on."""
    if await room.store.watched(job.who.team, job.body["channel"]):
        await read_alert(room, job)


async def read_alert(room: Room, job: Job) -> None:
    """Diagnoses a message if it shows that memory ran out; another bot gets at most one answer in a thread."""
    body = job.body
    place = place_of(body)
    if body["bot"] and await incident_of(room, job, place) is not None and not job.again:
        return
    if said := await used_up(room, job, place):
        if shows_shortage(body["text"]):
            await say_so(room, job, place, said)
        return
    gathered = await room.intake.gather(job.who, body)
    # Beside the event loop: a file may have 20 MB.
    if not await asyncio.to_thread(lambda: any(shows_shortage(c.text or "") for c in gathered.contributions)):
        return
    await eyes_on(room, job)
    try:
        await diagnose(room, job, place, gathered)
    finally:
        await eyes_off(room, job)


SURFACE = Surface(name="watch", takes=takes, work=work)
