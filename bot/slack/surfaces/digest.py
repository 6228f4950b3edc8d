"""The weekly digest, posted into a channel that asked for it; a week without incidents is not mentioned."""

from bot.slack.digests import is_on
from bot.slack.inbox import Arrival
from bot.slack.outbox import Place
from bot.slack.render.blocks import small
from bot.slack.render.history import stats_message
from bot.slack.room import Job, Room
from bot.slack.surfaces.surface import Surface
from bot.usecases.digest import digest

OFF = "The last seven days in this channel. “/oom settings digest off” ends this weekly message."


def takes(arrival: Arrival) -> bool:
    """A digest that has come due."""
    return arrival.kind == "digest"


async def work(room: Room, job: Job) -> None:
    """Posted once a week, also after a crash half-way."""
    channel, week = job.body["channel"], job.body["week"]
    if not await is_on(room.store, job.who.team, channel):
        return
    document = (await digest(room.desk, job.who.team, job.who.enterprise, channel)).document
    if not document["incidents"]:
        return
    blocks, _ = stats_message(document)
    count = document["incidents"]
    text = f"{count:,} incident{'' if count == 1 else 's'} in this channel in the last seven days."
    await room.outbox.post(job.who, Place(channel, None), f"digest:{week}", [*blocks, small(OFF)], text)


SURFACE = Surface(name="digest", takes=takes, work=work)
