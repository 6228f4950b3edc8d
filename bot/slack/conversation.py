"""From what was said in a thread to the one message of its incident: judge, show, tell the author what was hidden."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from slack_sdk.errors import SlackApiError

from bot.domain.incident import NOT_KNOWN, Contribution, Incident, Origin
from bot.slack.allowance import used_up
from bot.slack.calls import is_final
from bot.slack.installs import refusal
from bot.slack.intake import Gathered
from bot.slack.offers import reading
from bot.slack.outbox import Place
from bot.slack.render.blocks import Block, line, rich, small
from bot.slack.render.diagnosis import ROUNDS, diagnosis_message
from bot.slack.render.limits import fit_message
from bot.slack.render.notices import for_you_alone
from bot.slack.repeats import repeated
from bot.slack.room import Job, Room
from bot.slack.talk import only_asks
from bot.slack.withdrawn import withdraw_late
from bot.slack.words import Verb, is_evidence, tells_facts, wants_anew
from bot.usecases.diagnose import NoEvidence
from bot.usecases.recall import shown_trial
from bot.usecases.reply import Unusable

log = logging.getLogger(__name__)
LATEST = "latest"
PATIENT = 4  # tries to keep a diagnosis, before it is shown all the same
DIAGNOSIS = "diagnosis"


class NotKeptError(Exception):
    """The diagnosis could not be kept: worked again a little later."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Where it stands: in the thread, shown to the asker alone, or told as a word to them; `nowhere`: there was nothing to answer."""

    where: Literal["thread", "alone", "word", "nowhere"]
    incident: str | None = None


def place_of(body: Mapping[str, Any]) -> Place:
    """The thread that an answer to this message belongs into."""
    return Place(body["channel"], body.get("thread_ts") or body.get("ts"))


async def hear(room: Room, job: Job, place: Place, *, alone: bool = False, free: bool = False) -> Gathered:
    """What a message gives; beyond the hour's measure nothing is fetched, and the sentence that says so is its refusal.

    “Please” beside a file, or “look at this” in a thread, is no evidence. `alone`: words are all there is, so that the judge decides.
    `free`: it has been counted before.
    """
    if not free and (said := await used_up(room, job, place)):
        return Gathered((), (said,))
    text = job.body["text"]
    return await room.intake.gather(job.who, job.body, text=(alone and not job.body["files"]) or is_evidence(text) or tells_facts(text))


async def diagnose(
    room: Room,
    job: Job,
    place: Place,
    gathered: Gathered,
    *,
    remark: str | None = None,
    known: Incident | None = None,
    anew: bool = False,
) -> Answer:
    """Judges everything said so far in the thread and shows it in its one message. What was deleted meanwhile goes again.

    `known`: the thread's incident, where the caller has just loaded it. `anew`: also when the same was diagnosed a moment ago.
    """
    for file, message in gathered.files:
        await room.store.note_file(job.who.team, file, place.channel, message)
    try:
        return await _diagnose(room, job, place, gathered, remark, known, anew)
    finally:  # also where the answer cannot be given: it may have been kept all the same
        await withdraw_late(room, job, place, gathered)


async def _diagnose(
    room: Room, job: Job, place: Place, gathered: Gathered, remark: str | None, known: Incident | None, anew: bool
) -> Answer:
    body = job.body
    if not gathered.contributions:
        await _tell(room, job, place, gathered)
        return Answer("word" if gathered.refusals else "nowhere")
    known = known or await incident_of(room, job, place)
    fresh = unheard(gathered.contributions, known.contributions if known else ())
    private = await room.visibility.is_private(job.who, place.channel, body.get("channel_type"))
    if known is not None and known.origin.private != private:
        await room.store.channel_became(job.who.team, place.channel, private)
    origin = Origin(job.who.team, job.who.enterprise, place.channel, place.thread, private)
    if known is None and not anew and not wants_anew(body.get("text") or "") and (told := await repeated(room, job, place, origin, fresh)):
        where = await _give(room, job, place, None, *told)
        await _tell(room, job, place, gathered)
        return Answer(where)
    if fresh or known is None:
        try:
            reply = await room.asks.diagnose(
                room.desk, origin, fresh, into=known.id if known else None, talk=False, asked=only_asks(body.get("text") or "")
            )
        except NoEvidence:
            await _tell(room, job, place, gathered)
            return Answer("word" if gathered.refusals else "nowhere")
        except Unusable as unusable:
            await _tell(room, job, place, replace(gathered, refusals=(*gathered.refusals, str(unusable))))
            return Answer("word")
        document: Mapping[str, Any] = reply.document
        if reply.warning and document.get("id") is None and job.attempt < PATIENT:
            raise NotKeptError(reply.warning)
    else:
        document = known.document
    where = await _give(room, job, place, document.get("id"), *await _shown(room, job, place, document, remark if known else None))
    incident: str | None = document.get("id")
    if incident:
        await _remember(room, job, place, incident, document, where)
    await _tell(room, job, place, gathered)
    return Answer(where, incident)


async def _give(room: Room, job: Job, place: Place, incident: str | None, blocks: Sequence[Block], text: str) -> Literal["thread", "alone"]:
    """The thread's one message; where the bot may not write, the same for the asker alone, with the reason."""
    try:
        await room.outbox.reply(job.who, place, incident, DIAGNOSIS, blocks, text)
    except SlackApiError as refused:
        anew = reading(Verb("show", incident), job.body) if incident else None
        if not await give_alone(room, job, place, refused, blocks, text, anew=anew):
            raise
        return "alone"
    return "thread"


async def give_alone(
    room: Room, job: Job, place: Place, refused: SlackApiError, blocks: Sequence[Block], text: str, *, anew: str | None = None
) -> bool:
    """What may not be said in a place, to the asker alone, with the reason. False where it is no such refusal, or nobody to tell.

    `anew`: the button's value that asks for it again.
    """
    user = job.body.get("user")
    if not is_final(refused) or not user or job.body.get("bot"):
        return False
    why = for_you_alone(refusal(refused))
    shown = fit_message([small(why), *(blocks or [rich(line(text))])])
    url, ephemeral = job.body.get("response_url"), bool(job.body.get("ephemeral"))
    return await room.asides.alone(
        job.who, place, user, f"{text} {why}", shown, about=job.arrival.key, name="answer", url=url, replace=ephemeral,
        answering="your message", anew=anew,
    )  # fmt: skip


async def _remember(room: Room, job: Job, place: Place, incident: str, document: Mapping[str, Any], where: str) -> None:
    """What later arrivals need: the newest incident of a direct message, when to ask how it went."""
    if document.get("recommendation") and where == "thread":
        await room.reminders.note(job.who.team, incident, place, job.who.enterprise)
    if place.channel.startswith("D"):
        # A direct message is one conversation: what is said outside a thread belongs to the newest incident.
        await room.store.remember_reply(incident, job.who.team, place.channel, "", place.thread or "", LATEST)


async def show(room: Room, job: Job, place: Place, document: Mapping[str, Any]) -> bool:
    """The incident's one message as it is now, where it stands, with its outcomes so far. False where Slack does not let it be edited."""
    return await room.outbox.edit(job.who, place, document["id"], DIAGNOSIS, *await _shown(room, job, place, document, None))


async def _shown(room: Room, job: Job, place: Place, document: Mapping[str, Any], remark: str | None) -> tuple[list[Block], str]:
    kept = await room.store.load(job.who.team, document["id"]) if document.get("id") else None
    if near := document.get("similar"):
        channels = await room.store.channels(job.who.team, [row["id"] for row in near])
        document = {**document, "similar": [row for row in near if await _is_known_here(room, job, place, channels.get(row["id"]))]}
    return message_of(kept, document, remark)


async def _is_known_here(room: Room, job: Job, place: Place, channel: str | None) -> bool:
    """Whether all who read along may know of an incident: people of other organisations may not, and its channel may be private by now."""
    if channel is None or channel == place.channel:
        return channel is not None
    return not (await room.visibility.is_shared(job.who, place.channel) or await room.visibility.is_private(job.who, channel))


def message_of(kept: Incident | None, document: Mapping[str, Any], remark: str | None = None) -> tuple[list[Block], str]:
    """Blocks and text of an incident as it stands; `kept` None where nothing is kept."""
    if kept is None:
        return diagnosis_message(document, (), remark)
    shown = [shown_trial(trial) for trial in kept.trials]
    return diagnosis_message(document, shown, remark, rounds=_rounds(kept, document), heard=heard_since(kept))


def _rounds(kept: Incident, document: Mapping[str, Any]) -> int:
    """How often something was added since the first question; the last round, where nobody knows what is still open."""
    said = {c.message or c.at for c in kept.contributions if c.kind in ("paste", "file", "answer")}
    answers = {c.text for c in kept.contributions if c.kind == "answer"}
    not_known = all(f"{question['id']}={NOT_KNOWN}" in answers for question in document.get("questions") or ())
    return ROUNDS if not_known else len(said) - 1


def heard_since(kept: Incident) -> bool:
    """Whether evidence came since the newest word on how a change ended."""
    kinds = [c.kind for c in kept.contributions]
    since = kinds[len(kinds) - kinds[::-1].index("outcome") :] if "outcome" in kinds else []
    return any(kind in ("paste", "file") for kind in since)


async def incident_of(room: Room, job: Job, place: Place) -> Incident | None:
    """The newest incident of a thread."""
    return await room.store.in_thread(job.who.team, place.channel, place.thread or "")


async def eyes_on(room: Room, job: Job) -> None:
    """The sign on the person's own message that it is being read."""
    await room.outbox.react(job.who, job.body["channel"], job.body["ts"], on=True)


async def eyes_off(room: Room, job: Job) -> None:
    """Taken away once the answer stands."""
    await room.outbox.react(job.who, job.body["channel"], job.body["ts"], on=False)


def unheard(given: Sequence[Contribution], before: Sequence[Contribution]) -> list[Contribution]:
    """What a crash between storing and answering has not already added."""
    heard = {(c.message, c.kind, c.name, c.text if c.kind == "answer" else None) for c in before if c.message and c.text is not None}
    return [c for c in given if not c.message or (c.message, c.kind, c.name, c.text if c.kind == "answer" else None) not in heard]


async def _tell(room: Room, job: Job, place: Place, gathered: Gathered) -> None:
    """Words to the author alone come last: what fails before them is tried again, and would say them again."""
    user = job.body.get("user")
    if gathered.refusals and user:
        text = "\n".join(gathered.refusals[:5])
        await room.asides.alone(job.who, place, user, text, about=job.arrival.key, name="refusals", answering="your message")
    await _tell_hidden(room, job, place, gathered.hidden)


async def _tell_hidden(room: Room, job: Job, place: Place, hidden: int) -> None:
    """Said to the author only: the channel need not know that there was something to hide."""
    author = job.body.get("user")
    if not hidden or not author or job.body.get("bot"):
        return
    what, were, them = ("1 secret", "It was", "it") if hidden == 1 else (f"{hidden:,} secrets", "They were", "them")
    said = f"{what} hidden before anything was stored. {were} posted in Slack all the same: rotate {them}."
    await room.asides.alone(job.who, place, author, said, about=job.arrival.key, name="hidden")
