"""A reply in a thread that the bot owns: a paste, a file, or plain words that answer its question; other talk is left alone."""

from bot.domain.incident import Incident
from bot.slack.conversation import diagnose, eyes_off, eyes_on, hear, incident_of, place_of
from bot.slack.hint import is_awaited
from bot.slack.inbox import Arrival
from bot.slack.intake import Gathered
from bot.slack.outbox import Place
from bot.slack.replies import answers
from bot.slack.room import Job, Room
from bot.slack.surfaces import watch
from bot.slack.surfaces.surface import Surface
from bot.slack.words import is_evidence, tells_facts


def takes(arrival: Arrival) -> bool:
    """Any reply in a thread that does not name the bot; whether the thread is the bot's is asked of the store."""
    body = arrival.body
    return arrival.kind == "message" and bool(body["thread_ts"]) and body["thread_ts"] != body["ts"] and not body["bot"]


async def work(room: Room, job: Job) -> None:
    """Judges again with what was added; in a thread without an incident only where a log was asked for, or as any message is."""
    place = place_of(job.body)
    incident = await incident_of(room, job, place)
    if incident is None and not await is_awaited(room, job, place):
        if watch.takes(job.arrival):
            await watch.work(room, job)
        return
    if not adds(questions(incident) if incident else [], job):
        return
    await eyes_on(room, job)
    try:
        if incident is None:
            await diagnose(room, job, place, await hear(room, job, place))
        else:
            await follow_up(room, job, place, incident)
    finally:
        await eyes_off(room, job)


async def follow_up(room: Room, job: Job, place: Place, incident: Incident, *, insist: bool = False) -> bool:
    """Adds this message to the thread's incident. False when it adds nothing. `insist`: it was said to the bot."""
    body = job.body
    gathered = await said_in(room, job, place, questions(incident), insist=insist)
    if not gathered.contributions and not gathered.refusals:
        return False
    answered = any(one.kind == "answer" for one in gathered.contributions)
    await diagnose(room, job, place, gathered, remark=f"Updated with {_what(answered, bool(body['files']))}", known=incident)
    return True


async def said_in(room: Room, job: Job, place: Place, asked: list[str], *, insist: bool = False, free: bool = False) -> Gathered:
    """What a message adds to an incident: an answer to what is `asked`, or evidence; nothing where it is talk. `free` as for `hear`."""
    body = job.body
    said = answers(body["text"], asked) if not body["files"] else []
    if said:
        # “rank 3, on vllm 0.11.0” answers, and tells more: the words are evidence too.
        told = await hear(room, job, place, free=True) if tells_facts(body["text"]) else Gathered(())
        return Gathered((*room.intake.answers(body, said), *told.contributions), told.refusals, max(told.hidden, body["hidden"]))
    if body["files"] or is_evidence(body["text"]) or tells_facts(body["text"]) or insist:
        return await hear(room, job, place, free=free)
    return Gathered(())


def questions(incident: Incident) -> list[str]:
    """The ids of what its diagnosis asks."""
    return [str(question["id"]) for question in incident.document.get("questions") or ()]


def adds(asked: list[str], job: Job) -> bool:
    """Does it look like evidence, or like an answer to what is open?"""
    body = job.body
    if body["files"] or is_evidence(body["text"]) or answers(body["text"], asked):
        return True
    return bool(asked) and tells_facts(body["text"])


def _what(answered: bool, files: bool) -> str:
    return "your answer" if answered else "your file" if files else "your reply"


SURFACE = Surface(name="thread", takes=takes, work=work)
