"""An edited message: its old words are erased, its new ones judged with the rest of the thread."""

from bot.slack.conversation import diagnose, incident_of, place_of
from bot.slack.inbox import Arrival
from bot.slack.room import Job, Room
from bot.slack.surfaces.surface import Surface
from bot.slack.words import is_evidence, tells_facts


def takes(arrival: Arrival) -> bool:
    """Edits that changed words or files."""
    return arrival.kind == "edit"


async def work(room: Room, job: Job) -> None:
    """Only in threads with an incident that this message is part of, or that named the bot."""
    body = job.body
    place = place_of(body)
    incident = await incident_of(room, job, place)
    if incident is None:
        return
    part = any(c.message == body["ts"] and c.text is not None for c in incident.contributions)
    if not part and not (body["mention"] and (body["files"] or is_evidence(body["text"]))):
        return
    if not job.again:
        await room.store.erase_message(job.who.team, place.channel, body["ts"])
    gathered = await room.intake.gather(job.who, body, text=is_evidence(body["text"]) or tells_facts(body["text"]))
    await diagnose(room, job, place, gathered, remark="Updated with the edited message")


SURFACE = Surface(name="edits", takes=takes, work=work)
