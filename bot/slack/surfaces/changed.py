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
    """Edited in place, and with erased evidence the files that showed it go."""
    await refresh(room, job, str(job.body["incident"]), erased=bool(job.body["erased"]))


SURFACE = Surface(name="changed", takes=takes, work=work)
