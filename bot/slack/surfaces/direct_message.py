"""Written to directly: every message is for the bot; what is said outside a thread belongs to the newest incident."""

from bot.slack.conversation import LATEST, diagnose, hear, incident_of, place_of
from bot.slack.inbox import Arrival
from bot.slack.outbox import Place
from bot.slack.room import Job, Room
from bot.slack.surfaces.surface import Surface
from bot.slack.surfaces.thread import follow_up
from bot.slack.surfaces.verbs import addressed, outcome_in_words
from bot.slack.words import is_evidence


def takes(arrival: Arrival) -> bool:
    """Any message of a person in a direct message with the bot."""
    return arrival.kind == "message" and (arrival.channel or "").startswith("D") and not arrival.body["bot"]


async def work(room: Room, job: Job) -> None:
    """A verb, evidence, an answer, or a hint at what can be sent."""
    await addressed(room, job, _read)


async def _read(room: Room, job: Job) -> bool:
    body = job.body
    place = place_of(body)
    if body.get("thread_ts"):
        incident = await incident_of(room, job, place)
        if incident is not None:
            return await outcome_in_words(room, job, incident) or await follow_up(room, job, place, incident, insist=True)
    elif body["files"] or is_evidence(body["text"]):
        pass
    elif (latest := await room.store.reply_of(job.who.team, place.channel, "", LATEST)) is not None:
        earlier = Place(place.channel, latest.ts)
        incident = await incident_of(room, job, earlier)
        if incident is not None and (await outcome_in_words(room, job, incident) or await follow_up(room, job, earlier, incident)):
            return True
    return (await diagnose(room, job, place, await hear(room, job, place, alone=True))).where != "nowhere"


SURFACE = Surface(name="direct message", takes=takes, work=work)
