"""An edited message: its old words are erased, its new ones judged with the rest of the thread."""

from collections.abc import Sequence

from bot.domain.incident import Contribution, Incident
from bot.slack.conversation import diagnose, hear, place_of
from bot.slack.inbox import Arrival
from bot.slack.outbox import Place
from bot.slack.room import Job, Room
from bot.slack.surfaces.surface import Surface
from bot.slack.surfaces.thread import questions, said_in
from bot.slack.surfaces.verbs import refresh
from bot.slack.withdrawn import withdraw
from bot.slack.words import is_evidence, shows_shortage

REMARK = "Updated with the edited message"


def takes(arrival: Arrival) -> bool:
    """Edits that changed words or files."""
    return arrival.kind == "edit"


async def work(room: Room, job: Job) -> None:
    """Only what is already part of an incident, or was said to the bot or in a watched channel and now holds evidence."""
    body = job.body
    known = await room.store.of_message(job.who.team, body["channel"], body["ts"])
    was = [one for one in known.contributions if one.message == body["ts"]] if known else []
    # An earlier try may have erased the old words already: then the new ones are still owed.
    if known is not None and any(one.text is not None or job.again for one in was):
        await _part(room, job, known, was)
        return
    place = place_of(body)
    asked = body["mention"] or place.channel.startswith("D")
    asked = asked or (shows_shortage(body["text"]) and await room.store.watched(job.who.team, place.channel))
    if asked and (body["files"] or is_evidence(body["text"])):
        await diagnose(room, job, place, await hear(room, job, place), remark=REMARK)


async def _part(room: Room, job: Job, known: Incident, was: Sequence[Contribution]) -> None:
    """Its old words go from an incident, its new ones come in their place; where those are talk, the incident is shown without them."""
    body = job.body
    place = Place(known.origin.channel or body["channel"], known.origin.thread)
    await room.store.erase_message(job.who.team, body["channel"], body["ts"], anew=False)
    await withdraw(room, job, place)
    gathered = await said_in(room, job, place, [*questions(known), *_answered(was)], free=True)
    if not gathered.contributions and (body["mention"] or place.channel.startswith("D")):
        gathered = await hear(room, job, place, alone=True, free=True)
    if (await diagnose(room, job, place, gathered, remark=REMARK)).where in ("word", "nowhere"):
        await room.asks.judge_left(room.desk, job.who.team, known.id)
        await refresh(room, job, known.id)


def _answered(was: Sequence[Contribution]) -> list[str]:
    """The questions that a message answered, which are asked no more: an edit answers them again."""
    names = [(one.text or "").partition("=")[0] for one in was if one.kind == "answer"]
    return ["failing_rank" if name == "rank" else name for name in names]


SURFACE = Surface(name="edits", takes=takes, work=work)
