"""Clicks: how the change went, undo, the rank, the evidence, sharing and changing a sizing."""

import asyncio
import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from slack_sdk.errors import SlackApiError

from bot.domain.incident import NOT_KNOWN
from bot.pictures import alt_text, bars_of, budget_png
from bot.slack.allowance import used_up
from bot.slack.calls import UnsureError, is_final
from bot.slack.conversation import diagnose, message_of
from bot.slack.files import GONE
from bot.slack.inbox import Arrival
from bot.slack.installs import refusal
from bot.slack.intake import Gathered, moment
from bot.slack.offers import SHOW, asked_of, said_of
from bot.slack.outbox import Place, Upload
from bot.slack.render.diagnosis import undoes
from bot.slack.render.escape import cut
from bot.slack.render.evidence import evidence_text
from bot.slack.render.forms import log_form, sizing_form
from bot.slack.render.notices import NOT_OPENED, for_you_alone
from bot.slack.render.sizing import sizing_message
from bot.slack.render.wording import OUTCOMES as SAID
from bot.slack.render.wording import as_asked_here
from bot.slack.repeats import ANEW, again
from bot.slack.room import Job, Room
from bot.slack.surfaces.home import show_home, turned
from bot.slack.surfaces.surface import Surface
from bot.slack.surfaces.verbs import OURS_ONLY, answer, refresh
from bot.slack.withdrawn import EVIDENCE, withdraw
from bot.usecases.desk import Viewer
from bot.usecases.erased import is_all_erased
from bot.usecases.recall import shown_trial
from bot.usecases.reply import Unusable

OUTCOMES = ("fixed", "moved", "same", "wrong")
ANSWERS = ("answer_rank", "dont_know")
FORMS = frozenset({"change_inputs", "home_size", "home_log"})
"""Clicks that only open a form: where that was done, nothing is left to work."""
OF_YORE = "This button is of another version of mine and does nothing any more. Mention me in the thread: the answer then has new ones."
SECOND_CLICK = 60.0  # seconds
NOT_YOURS = "This belongs to a channel that you are not a member of now."


def takes(arrival: Arrival) -> bool:
    """Any click."""
    return arrival.kind == "click"


async def greet(room: Room, job: Job) -> dict[str, Any] | None:
    """Forms open while the trigger lives; then nothing is left to do."""
    body = job.body
    meta = json.dumps({"channel": body.get("channel"), "response_url": body.get("response_url")})
    if body["action"] == "change_inputs":
        view = sizing_form(meta, body["value"])
    elif body["action"] in ("home_size", "home_log"):
        view = sizing_form("") if body["action"] == "home_size" else log_form("")
    else:
        return {}
    try:
        await room.outbox.call(job.who, "views.open", sure=True, trigger_id=body["trigger_id"], view=view)
    except (SlackApiError, UnsureError):
        said = "The form could not be opened. Click again."
        await _tell(room, job, said)
    return None


async def work(room: Room, job: Job) -> None:
    """One click."""
    body = job.body
    action = body["action"]
    if action in FORMS:
        await _tell(room, job, NOT_OPENED)
    elif action.startswith("home_"):
        await show_home(room, job, body["values"], turned(body))
    elif action == "share":
        await _share(room, job)
    elif action == ANEW:
        await _anew(room, job)
    elif action == SHOW:
        await _show(room, job)
    elif action in (*OUTCOMES, *ANSWERS, "undo", "evidence"):
        await _incident(room, job)
    else:
        await _tell(room, job, OF_YORE)


async def _anew(room: Room, job: Job) -> None:
    """A diagnosis of its own for a log that was diagnosed a moment ago elsewhere."""
    body = job.body
    if not await _may_touch(room, job, body["channel"]):
        await _tell(room, job, OURS_ONLY if body["foreign"] else NOT_YOURS)
        return
    place = Place(body["channel"], body["thread_ts"])
    if said := await used_up(room, job, place):
        await _tell(room, job, said)
        return
    given = await again(room, job)
    if not given:
        await _tell(room, job, "The earlier log has been erased since: send yours again.")
        return
    await diagnose(room, job, place, Gathered(tuple(given)), anew=True)


async def _show(room: Room, job: Job) -> None:
    """The answer in place of the line that offered it: clicked twice, or tried again, it still stands once."""
    body = job.body
    lying = said_of(str(body["value"]))
    if lying is None:
        asked, thread = asked_of(str(body["value"]))
        given = replace(job.arrival, body={**body, "thread_ts": thread})
        blocks, text = await answer(room, replace(job, arrival=given), asked)
    else:
        text, blocks = lying
    place = Place(body["channel"], body["thread_ts"])
    url = body["response_url"]
    await room.asides.alone(job.who, place, body["user"], text, blocks, about=job.arrival.key, name="answer", url=url, replace=True)


async def _may_touch(room: Room, job: Job, channel: str) -> bool:
    """A member of the channel; also who was shown something alone in that very channel, which may be one that the bot is not in."""
    body = job.body
    if body["ephemeral"] and body["channel"] == channel and not body["foreign"]:
        return True
    return await room.visibility.may_touch(job.who, body["user"], channel, foreign=bool(body["foreign"]))


async def _incident(room: Room, job: Job) -> None:
    body = job.body
    incident, _, extra = str(body["value"]).partition(" ")
    kept = await room.store.load(job.who.team, incident)
    if kept is None or not kept.origin.channel:
        await _tell(room, job, f"{incident} is not known here.")
        return
    place = Place(kept.origin.channel, kept.origin.thread)
    if not await _may_touch(room, job, place.channel):
        await _tell(room, job, OURS_ONLY if body["foreign"] else NOT_YOURS)
        return
    if body["action"] == "evidence":
        await _evidence(room, job, place, incident)
    elif body["action"] in ANSWERS:
        gathered = Gathered(room.intake.answers({**body, "ts": job.arrival.key}, _answers(body["action"], extra)))
        await diagnose(room, job, place, gathered, remark="Updated with your answer")
    else:
        await _settle(room, job, place, incident, extra)


def _answers(action: str, extra: str) -> list[str]:
    """A picked rank, or that nobody knows: `name=value` for each question it answers."""
    if action == "answer_rank" and extra != NOT_KNOWN:
        return [f"rank={extra}"]
    return [f"{question}={NOT_KNOWN}" for question in (["failing_rank"] if action == "answer_rank" else extra.split(","))]


async def _settle(room: Room, job: Job, place: Place, incident: str, trial: str) -> None:
    body = job.body
    viewer = Viewer(job.who.team, body["user"], job.who.enterprise, frozenset({place.channel}))
    at, said = moment(body["at"]), "It is noted."
    try:
        if body["action"] == "undo" and await _is_undone(room, job, incident):
            await _tell(room, job, "That outcome was taken back before, or another one came after it.")
        elif body["action"] == "undo":
            said = (await room.asks.undo(room.desk, viewer, incident, message=job.arrival.key, at=at)).document["says"]
        elif (settled := await _settled(room, job, incident, trial)) is None:
            told = await room.asks.settle(room.desk, viewer, incident, body["action"], message=job.arrival.key, at=at)
            said = told.document["says"]
        elif settled != body["action"]:
            await _tell(room, job, f"This change is already marked: {SAID.get(settled, settled)}. Press Undo first.")
    except Unusable as unusable:
        await _tell(room, job, as_asked_here(str(unusable)))
    shown = await refresh(room, job, incident)
    kept = await room.store.load(job.who.team, incident)
    elsewhere = body["ephemeral"] or body["channel"] != place.channel
    if elsewhere and body.get("response_url") and kept is not None:
        blocks, text = message_of(kept, kept.document)
        await room.asides.respond(body["response_url"], text, blocks, replace=True)
    elif not shown:
        await _tell(room, job, f"{said} Slack does not let me edit the message above: “show {incident}” shows it as it is now.")


async def _settled(room: Room, job: Job, incident: str, trial: str) -> str | None:
    """The result of the change that the button was shown for: of an earlier click, or of this one before a crash."""
    kept = await room.store.load(job.who.team, incident)
    found = next((one for one in (kept.trials if kept else ()) if str(one.number) == trial), None)
    return None if found is None else found.result


async def _is_undone(room: Room, job: Job, incident: str) -> bool:
    """Whether the newest outcome is another one than the button was shown for, and not by this click at an earlier try."""
    kept = await room.store.load(job.who.team, incident)
    if kept is None or any(one.message == job.arrival.key for one in kept.contributions):
        return False
    newest = next((shown_trial(trial) for trial in reversed(kept.trials) if trial.result), None)
    return newest is not None and job.body["value"] not in (incident, undoes(incident, newest))


async def _evidence(room: Room, job: Job, place: Place, incident: str) -> None:
    viewer = Viewer(job.who.team, job.body["user"], job.who.enterprise, frozenset({place.channel}))
    kept = await room.store.reply_of(job.who.team, place.channel, place.thread or "", EVIDENCE)
    try:
        document = (await room.asks.show(room.desk, viewer, incident)).document
    except Unusable as unusable:
        await _tell(room, job, as_asked_here(str(unusable)))
        return
    if is_all_erased(document):
        await _tell(room, job, f"The evidence of {incident} is erased.")
        return
    text = evidence_text(document)
    if kept is not None and kept.digest == str(len(text)) and await _is_there(room, job, kept.ts):
        await _tell(room, job, f"The evidence of {incident} is already in the thread.")
        return
    try:
        files = [Upload(f"{incident}-evidence.txt", text.encode()), *await asyncio.to_thread(_picture, document)]
        shared = await room.outbox.upload(job.who, place, EVIDENCE, files, f"Evidence of {incident}", job.body.get("at"))
    except SlackApiError as refused:
        said = refusal(refused)
        if not is_final(refused) and said != "unknown_method":
            raise
        scope = said in ("missing_scope", "not_allowed_token_type", "unknown_method")
        why = "The app lacks files:write, so here is the start of it:" if scope else for_you_alone(said)
        await _tell(room, job, f"{why}\n{text[:600]}")
        return
    await room.store.remember_reply(incident, job.who.team, place.channel, place.thread or "", " ".join(shared), EVIDENCE, str(len(text)))
    left = (await room.asks.show(room.desk, viewer, incident)).document["contributions"]
    if any(one["text"] and not now["text"] for one, now in zip(document["contributions"], left, strict=False)):
        await withdraw(room, job, place)  # whoever erased it in the meantime found no file yet


async def _is_there(room: Room, job: Job, files: str) -> bool:
    """Anybody in the channel may have deleted what was uploaded."""
    try:
        return (await room.outbox.call(job.who, "files.info", file=files.split()[0]))["file"].get("mode") not in GONE
    except SlackApiError as refused:
        return refusal(refused) not in ("file_deleted", "file_not_found")


def _picture(document: Mapping[str, Any]) -> list[Upload]:
    """The budget as a picture, where enough was reported for one."""
    bars = bars_of(document["diagnosis"])
    return [Upload(f"{document['id']}-budget.png", budget_png(bars), cut(alt_text(bars), 1_000))] if bars else []


async def _share(room: Room, job: Job) -> None:
    body = job.body
    words = str(body["value"])
    channel = body.get("channel") or body["values"].get("channel")
    if not channel:
        await _tell(room, job, "Choose a channel first.")
        return
    chosen = not body.get("channel")
    if chosen and not await room.visibility.may_post(job.who, body["user"], channel, foreign=bool(body["foreign"])):
        await _tell(room, job, NOT_YOURS)
        return
    reply = await room.asks.size_words(room.desk, words, await room.visibility.readers(job.who, body["user"], channel))
    blocks, text = sizing_message(reply.document, words, shared_by=body["user"])
    try:
        await room.outbox.post(job.who, Place(channel, None), await _sharing(room, job, channel, words), blocks, text)
    except SlackApiError as refused:
        await _tell(room, job, f"I may not write there ({refused.response.get('error')}): invite me to the channel first.")
        return
    if body.get("response_url"):
        await room.asides.respond(body["response_url"], "Shared in the channel.", replace=True)


async def _sharing(room: Room, job: Job, channel: str, words: str) -> str:
    """What it is known by. The same answer of the same person within a minute is a second click, whatever Slack says it was on."""
    body = job.body
    note = f"shared:{body['user']}:{hashlib.sha256(words.encode()).hexdigest()[:12]}"
    before = await room.store.reply_of(job.who.team, channel, "", note)
    if before is not None and time.time() - before.at < SECOND_CLICK:
        return before.ts
    kind = f"share:{body.get('view_id') or body['ts'] or job.arrival.key}"
    await room.store.remember_reply(None, job.who.team, channel, "", kind, note)
    return kind


async def _tell(room: Room, job: Job, said: str) -> None:
    body = job.body
    place = Place(body.get("channel") or "", body.get("thread_ts"))
    await room.asides.alone(job.who, place, body["user"], said, about=job.arrival.key, name="told", url=body.get("response_url"))


SURFACE = Surface(name="buttons", takes=takes, work=work, greet=greet)
