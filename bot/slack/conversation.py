"""From what was said in a thread to the one message of its incident: judge, show, tell the author what was hidden."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from bot.domain.incident import Contribution, Incident, Origin
from bot.slack.allowance import say_so, used_up
from bot.slack.intake import Gathered
from bot.slack.outbox import Place
from bot.slack.render.blocks import Block
from bot.slack.render.diagnosis import diagnosis_message
from bot.slack.repeats import repeated
from bot.slack.room import Job, Room
from bot.slack.words import wants_anew
from bot.usecases.recall import shown_trial
from bot.usecases.reply import Unusable

log = logging.getLogger(__name__)
LATEST = "latest"
PATIENT = 4  # tries to keep a diagnosis, before it is shown all the same
DIAGNOSIS = "diagnosis"


class NotKeptError(Exception):
    """The diagnosis could not be kept: worked again a little later."""


def place_of(body: Mapping[str, Any]) -> Place:
    """The thread that an answer to this message belongs into."""
    return Place(body["channel"], body.get("thread_ts") or body.get("ts"))


async def diagnose(
    room: Room,
    job: Job,
    place: Place,
    gathered: Gathered,
    *,
    remark: str | None = None,
    known: Incident | None = None,
    anew: bool = False,
) -> str | None:
    """Judges everything said so far in the thread and shows it in its one message. Its id; None when there was nothing to read.

    `known`: the thread's incident, where the caller has just loaded it. `anew`: also when the same was diagnosed a moment ago.
    """
    body = job.body
    await _whisper_refusals(room, job, place, gathered)
    if not gathered.contributions:
        return None
    known = known or await incident_of(room, job, place)
    fresh = _unheard(gathered.contributions, known.contributions if known else ())
    private = await room.visibility.is_private(job.who, place.channel, body.get("channel_type"))
    if known is not None and known.origin.private != private:
        await room.store.channel_became(job.who.team, place.channel, private)
    origin = Origin(job.who.team, job.who.enterprise, place.channel, place.thread, private)
    given = job.arrival.kind != "edit" and any(c.kind in ("paste", "file") for c in fresh)
    if given and (said := await used_up(room, job, place)):
        await say_so(room, job, place, said)
        return None
    if known is None and not anew and not wants_anew(body.get("text") or "") and (told := await repeated(room, job, place, origin, fresh)):
        await room.outbox.reply(job.who, place, None, DIAGNOSIS, *told)
        await _tell_hidden(room, job, place, gathered.hidden)
        return None
    if fresh or known is None:
        try:
            reply = await room.asks.diagnose(room.desk, origin, fresh, into=known.id if known else None)
        except Unusable as unusable:
            await room.outbox.whisper(job.who, place, body["user"], str(unusable), about=job.arrival.key)
            return None
        document: Mapping[str, Any] = reply.document
        if reply.warning and document.get("id") is None and job.attempt < PATIENT:
            raise NotKeptError(reply.warning)
    else:
        document = known.document
    await show(room, job, place, document, remark=remark if known else None)
    await _tell_hidden(room, job, place, gathered.hidden)
    incident: str | None = document.get("id")
    if incident:
        await _remember(room, job, place, incident, document)
    return incident


async def _remember(room: Room, job: Job, place: Place, incident: str, document: Mapping[str, Any]) -> None:
    """What later arrivals need: which message a file came with, the newest incident of a direct message, when to ask how it went."""
    for file in job.body.get("files") or ():
        await room.store.remember_reply(incident, job.who.team, "", file["id"], job.body.get("ts") or file["id"], "file", place.channel)
    if document.get("recommendation"):
        await room.reminders.note(job.who.team, incident, place, job.who.enterprise)
    if place.channel.startswith("D"):
        # A direct message is one conversation: what is said outside a thread belongs to the newest incident.
        await room.store.remember_reply(incident, job.who.team, place.channel, "", place.thread or "", LATEST)


async def show(room: Room, job: Job, place: Place, document: Mapping[str, Any], *, remark: str | None = None) -> None:
    """The incident's one message, posted or edited, with its outcomes so far."""
    kept = await room.store.load(job.who.team, document["id"]) if document.get("id") else None
    if document.get("similar") and await room.visibility.is_shared(job.who, place.channel):
        # People of other organisations read along: what other channels met is not theirs to see.
        near = [(row, await room.store.load(job.who.team, row["id"])) for row in document["similar"]]
        document = {**document, "similar": [row for row, other in near if other and other.origin.channel == place.channel]}
    blocks, text = message_of(kept, document, remark)
    await room.outbox.reply(job.who, place, document.get("id"), DIAGNOSIS, blocks, text)


def message_of(kept: Incident | None, document: Mapping[str, Any], remark: str | None = None) -> tuple[list[Block], str]:
    """Blocks and text of an incident as it stands; `kept` None where nothing is kept."""
    if kept is None:
        return diagnosis_message(document, (), remark)
    said = {c.message or c.at for c in kept.contributions if c.kind in ("paste", "file", "answer")}
    return diagnosis_message(document, [shown_trial(trial) for trial in kept.trials], remark, rounds=len(said) - 1)


async def incident_of(room: Room, job: Job, place: Place) -> Incident | None:
    """The newest incident of a thread."""
    return await room.store.in_thread(job.who.team, place.channel, place.thread or "")


async def eyes_on(room: Room, job: Job) -> None:
    """The sign on the person's own message that it is being read."""
    await room.outbox.react(job.who, job.body["channel"], job.body["ts"], on=True)


async def eyes_off(room: Room, job: Job) -> None:
    """Taken away once the answer stands."""
    await room.outbox.react(job.who, job.body["channel"], job.body["ts"], on=False)


def _unheard(given: Sequence[Contribution], before: Sequence[Contribution]) -> list[Contribution]:
    """What a crash between storing and answering has not already added."""
    heard = {(c.message, c.kind, c.name, c.text if c.kind == "answer" else None) for c in before if c.message and c.text is not None}
    return [c for c in given if not c.message or (c.message, c.kind, c.name, c.text if c.kind == "answer" else None) not in heard]


async def _whisper_refusals(room: Room, job: Job, place: Place, gathered: Gathered) -> None:
    if gathered.refusals:
        text = "\n".join(gathered.refusals[:5])
        if job.body.get("user"):
            await room.outbox.whisper(job.who, place, job.body["user"], text, about=job.arrival.key)


async def _tell_hidden(room: Room, job: Job, place: Place, hidden: int) -> None:
    """Said to the author only: the channel need not know that there was something to hide."""
    author = job.body.get("user")
    if not hidden or not author or job.body.get("bot"):
        return
    what = "1 secret" if hidden == 1 else f"{hidden:,} secrets"
    said = f"{what} hidden before anything was stored. It was posted in Slack all the same: rotate it."
    await room.outbox.whisper(job.who, place, author, said, about=job.arrival.key)
