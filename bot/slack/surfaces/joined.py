"""Added to a channel: one hello, for the one who invited it. Left it, or it turned private: who may see what is asked anew."""

from bot.slack.inbox import Arrival
from bot.slack.outbox import Place
from bot.slack.room import Job, Room
from bot.slack.surfaces.surface import Surface

HELLO = (
    "I read crash logs of LLM servers. Mention me with a pasted log or a file, and I answer in the thread with the phase that failed, "
    "the rank, its memory budget, and one change to try. I stay quiet otherwise; “/oom watch” lets me answer crash logs here unasked."
)


def takes(arrival: Arrival) -> bool:
    """The bot itself joined or left a channel, or a channel turned private."""
    return arrival.kind in ("joined", "left", "turned")


async def work(room: Room, job: Job) -> None:
    """Said once, to the inviter alone."""
    room.visibility.forget(str(job.body.get("channel")))
    if job.arrival.kind == "turned":
        channel = job.body["channel"]
        await room.store.channel_became(job.who.team, channel, await room.visibility.is_private(job.who, channel))
        return
    inviter = job.body.get("inviter")
    if job.arrival.kind != "joined" or not inviter or not job.body["channel"]:
        return
    await room.asides.alone(job.who, Place(job.body["channel"], None), inviter, HELLO, about=job.arrival.key)


SURFACE = Surface(name="joined", takes=takes, work=work)
