"""What is said to the bot itself, by name or in a direct message: a verb is run, all else is read; a hint where nothing could be."""

from collections.abc import Awaitable, Callable

from bot.slack.conversation import eyes_off, eyes_on, place_of
from bot.slack.render.notices import HINT
from bot.slack.room import Job, Room
from bot.slack.surfaces.verbs import run_verb
from bot.slack.words import verb


async def addressed(room: Room, job: Job, read: Callable[[Room, Job], Awaitable[bool]]) -> None:
    """`read` returns False when there was nothing to read."""
    body = job.body
    asked = verb(body["text"])
    if asked is not None and not body["files"]:
        await run_verb(room, job, asked)
        return
    await eyes_on(room, job)
    try:
        if not await read(room, job):
            await room.outbox.post(job.who, place_of(body), f"hint:{body['ts']}", [], HINT, doubtful=job.again)
    finally:
        await eyes_off(room, job)
