"""An incident that was settled, added to or erased elsewhere, or with age: its message here says so too."""

from bot.slack.inbox import Arrival
from bot.slack.room import Job, Room
from bot.slack.surfaces.surface import Surface
from bot.slack.surfaces.verbs import refresh
from bot.store.deliveries import CHANGED


def takes(arrival: Arrival) -> bool:
    """Changes made by another door."""
    return arrival.kind == CHANGED


async def work(room: Room, job: Job) -> None:
    """Edited in place. With erased evidence the files that showed it go, and what is left of it is judged anew."""
    incident, erased = str(job.body["incident"]), bool(job.body["erased"])
    if erased:
        await room.asks.judge_left(room.desk, job.who.team, incident)
    await refresh(room, job, incident, erased=erased)


SURFACE = Surface(name="changed", takes=takes, work=work)
