"""A deleted message or file takes its evidence with it."""

from bot.slack.inbox import Arrival
from bot.slack.room import Job, Room
from bot.slack.surfaces.surface import Surface


def takes(arrival: Arrival) -> bool:
    """Deleted messages and deleted files."""
    return arrival.kind in ("delete", "file_deleted")


async def work(room: Room, job: Job) -> None:
    """Blanks what was kept of it; its answer, which quotes lines of it, is drawn anew behind this. The verdict stays."""
    body = job.body
    if job.arrival.kind == "delete":
        await room.store.erase_message(job.who.team, body["channel"], body["ts"])
        return
    for channel, ts in await room.store.messages_with(job.who.team, str(body["file"])):
        await room.store.erase_message(job.who.team, channel, ts)


SURFACE = Surface(name="files gone", takes=takes, work=work)
