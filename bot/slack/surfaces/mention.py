"""Named in a channel or thread: a verb, a paste, a file, or a look at the thread it was called into."""

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from slack_sdk.errors import SlackApiError

from bot.slack.allowance import had_read, used_up
from bot.slack.conversation import diagnose, hear, incident_of, place_of, unheard
from bot.slack.current import as_it_stands
from bot.slack.inbox import Arrival, message
from bot.slack.intake import Gathered
from bot.slack.outbox import Place
from bot.slack.room import Job, Room
from bot.slack.surfaces.surface import Surface
from bot.slack.surfaces.thread import follow_up
from bot.slack.surfaces.verbs import addressed, outcome_in_words
from bot.slack.surfaces.watch import read_alert
from bot.slack.words import is_evidence

PAGE, MOST_PAGES = 200, 14  # Slack gives some apps 15 messages at a time, once a minute
CUT = "This thread is long: I read its first {count:,} messages. If the log came later, paste it here."
LATE = 30.0  # seconds after which a message was not delivered at the first try


def takes(arrival: Arrival) -> bool:
    """A message that names the bot."""
    return arrival.kind == "message" and bool(arrival.body["mention"])


async def work(room: Room, job: Job) -> None:
    """Answers in the thread; when there is nothing to read, says what could be sent."""
    if job.body["bot"]:
        await read_alert(room, job)
        return
    if job.body.get("bare") and not is_evidence(job.body["text"]):
        job = await _whole(room, job)
    await addressed(room, job, _read)


async def _whole(room: Room, job: Job) -> Job:
    """The event that names the bot may come without the message's files: then Slack is asked for the message itself."""
    try:
        said = await as_it_stands(room.outbox, job.who, job.body)
    except SlackApiError:
        return job
    if said is None or not said["files"]:
        return job
    return replace(job, arrival=replace(job.arrival, body={**job.body, "files": said["files"]}))


async def _read(room: Room, job: Job) -> bool:
    body = job.body
    place = place_of(body)
    incident = await incident_of(room, job, place)
    if incident is not None and (await outcome_in_words(room, job, incident) or await follow_up(room, job, place, incident)):
        return True
    in_thread = bool(body.get("thread_ts")) and body["thread_ts"] != body["ts"]
    gathered = await (_called(room, job, place) if in_thread or _is_late(body) else hear(room, job, place, alone=True))
    if incident is not None and body["text"] and not unheard(gathered.contributions, incident.contributions):
        return False
    return (await diagnose(room, job, place, gathered)).where != "nowhere"


async def _called(room: Room, job: Job, place: Place) -> Gathered:
    """Into a thread: what was said there before, and what came with the call; where Slack brings that late, also what was said since."""
    if said := await used_up(room, job, place):
        return Gathered((), (said,))
    found = await _thread(room, job, place)
    found[job.body["ts"]] = await hear(room, job, place, alone=not job.body.get("thread_ts"), free=True)
    return sum((found[ts] for ts in sorted(found)), Gathered(()))


def _is_late(body: Mapping[str, Any]) -> bool:
    """Replies to it may have been here first, when there was nothing yet that they could have belonged to."""
    return time.time() - float(body["ts"]) > LATE


async def _thread(room: Room, job: Job, place: Place) -> dict[str, Gathered]:
    """What was said in the thread before the bot was called in, by ts; a sentence where Slack does not let us read it."""
    found: dict[str, Gathered] = {}
    try:
        before, cut = await _messages(room, job, place)
    except SlackApiError as refused:
        if not job.body.get("thread_ts"):  # called at its very beginning: there is hardly more to it
            return {}
        sentence = f"This thread cannot be read ({refused.response.get('error')}): paste the log here, or use the message shortcut."
        return {"": Gathered((), (sentence,))}
    for said in before:
        if said.get("user") == job.who.bot_user or said.get("bot_id") == job.who.bot_id or said["ts"] == job.body["ts"]:
            continue
        if said["ts"] > job.body["ts"] and not _is_late(job.body):
            continue
        slim = message(said, job.who.bot_user)
        if slim["files"] or is_evidence(slim["text"]):
            await had_read(room, job, place, said["ts"], slim["user"])
            found[said["ts"]] = await room.intake.gather(job.who, slim, text=is_evidence(slim["text"]))
    if cut:
        found[""] = Gathered((), (CUT.format(count=len(before)),))
    return found


async def _messages(room: Room, job: Job, place: Place) -> tuple[list[dict[str, Any]], bool]:
    """The thread's messages from its first on, and whether there are more."""
    found: list[dict[str, Any]] = []
    page: dict[str, Any] = {}
    for _ in range(MOST_PAGES):
        answer = await room.outbox.call(job.who, "conversations.replies", channel=place.channel, ts=place.thread, limit=PAGE, **page)
        found += answer.get("messages") or ()
        page = {"cursor": (answer.get("response_metadata") or {}).get("next_cursor")}
        if not page["cursor"]:
            return found, False
    return found, True


SURFACE = Surface(name="mention", takes=takes, work=work)
