"""An edited message: its old words are erased, its new ones judged with the rest of the thread."""

from bot.slack.conversation import diagnose, hear, incident_of, place_of
from bot.slack.inbox import Arrival
from bot.slack.room import Job, Room
from bot.slack.surfaces.surface import Surface
from bot.slack.withdrawn import withdraw
from bot.slack.words import is_evidence, short_of_memory


def takes(arrival: Arrival) -> bool:
    """Edits that changed words or files."""
    return arrival.kind == "edit"


async def work(room: Room, job: Job) -> None:
    """Only what is already part of an incident, or was said to the bot or in a watched channel and now holds evidence."""
    body = job.body
    place = place_of(body)
    incident = await incident_of(room, job, place)
    # An earlier try may have erased the old words already: then the new ones are still owed.
    part = incident is not None and any(c.message == body["ts"] and (c.text is not None or job.again) for c in incident.contributions)
    asked = body["mention"] or place.channel.startswith("D")
    asked = asked or (short_of_memory(body["text"]) and await room.store.watched(job.who.team, place.channel))
    if not part and not (asked and (body["files"] or is_evidence(body["text"]))):
        return
    await room.store.erase_message(job.who.team, place.channel, body["ts"], anew=False)
    await withdraw(room, job, place)
    await diagnose(room, job, place, await hear(room, job, place, free=part), remark="Updated with the edited message")


SURFACE = Surface(name="edits", takes=takes, work=work)
