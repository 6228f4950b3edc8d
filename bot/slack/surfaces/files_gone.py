"""A deleted message or file takes its evidence with it."""

from bot.slack.inbox import Arrival
from bot.slack.room import Job, Room
from bot.slack.surfaces.surface import Surface
from bot.slack.surfaces.verbs import refresh


def takes(arrival: Arrival) -> bool:
    """Deleted messages and deleted files."""
    return arrival.kind in ("delete", "file_deleted")


async def work(room: Room, job: Job) -> None:
    """Blanks what was kept of it, and the lines that its answer quotes; the verdict stays."""
    body = job.body
    if job.arrival.kind == "delete":
        touched = await room.store.erase_message(job.who.team, body["channel"], body["ts"])
    else:
        found = await room.store.reply_of(job.who.team, "", str(body["file"]), "file")
        touched = await room.store.erase_message(job.who.team, found.digest or "", found.ts) if found is not None else []
    for incident in touched:
        await refresh(room, job, incident, erased=True)


SURFACE = Surface(name="files gone", takes=takes, work=work)
