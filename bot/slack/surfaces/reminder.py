"""A day without an outcome: asked once in the thread how the change went."""

from bot.slack.conversation import incident_of
from bot.slack.inbox import Arrival
from bot.slack.outbox import Place
from bot.slack.room import Job, Room
from bot.slack.surfaces.surface import Surface

TEXT = "Did the suggested change help? The buttons above take the outcome; it helps the next one who meets this. I will not ask again."


def takes(arrival: Arrival) -> bool:
    """A reminder that has come due."""
    return arrival.kind == "reminder"


async def work(room: Room, job: Job) -> None:
    """Nothing is said when an outcome is there, when the evidence was erased, or when nothing was recommended."""
    place = Place(job.body["channel"], job.body["thread"])
    incident = await incident_of(room, job, place)
    if incident is None or incident.erased or incident.id != job.body["incident"] or not incident.document.get("recommendation"):
        return
    if any(trial.result for trial in incident.trials):
        return
    await room.outbox.post(job.who, place, f"reminder:{incident.id}", [], TEXT)


SURFACE = Surface(name="reminder", takes=takes, work=work)
