"""Submitted forms: a sizing question, or a log for the bot to read."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from slack_sdk.errors import SlackApiError

from bot.domain.incident import Contribution
from bot.slack.allowance import used_up
from bot.slack.conversation import diagnose
from bot.slack.hint import hint
from bot.slack.inbox import Arrival
from bot.slack.intake import Gathered
from bot.slack.offers import quoted, reading
from bot.slack.outbox import Place
from bot.slack.render.blocks import Block, line, person, rich
from bot.slack.render.forms import LOG, SIZING, notice_view, sizing_view, words_of_form
from bot.slack.render.sizing import sizing_message
from bot.slack.room import Job, Room
from bot.slack.surfaces.surface import Surface
from bot.slack.words import Verb
from bot.usecases.reply import Unusable
from bot.usecases.sizing.arguments import argument_of, value_of

NOT_IN_IT = (
    "You are not in that channel, so nothing was posted there. Send it again with another, or with none: then I answer you directly."
)


def takes(arrival: Arrival) -> bool:
    """Both forms."""
    return arrival.kind == "submission" and arrival.body["callback"] in (SIZING, LOG)


def says(arrival: Arrival) -> dict[str, Any] | None:
    """What is missing is said beside its field; otherwise the form turns into the sign that work is under way."""
    body = arrival.body
    if body["callback"] == SIZING:
        if not str(body["values"].get("model") or "").strip():
            return {"response_action": "errors", "errors": {"model": "Name a model: a Hugging Face id, for example Qwen/Qwen3-32B."}}
        if unread := _unread(body["values"]):
            return {"response_action": "errors", "errors": unread}
        return {"response_action": "update", "view": notice_view("Working it out…")}
    if not body["files"] and not str(body["values"].get("text") or "").strip():
        return {"response_action": "errors", "errors": {"log": "Add the log as a file, or paste its first error below."}}
    return {"response_action": "update", "view": notice_view("Reading the log…")}


def _unread(values: Mapping[str, Any]) -> dict[str, str]:
    """A sentence for each field of a figure that holds none."""
    said = {}
    for name in ("tp", "ctx"):
        given, argument = str(values.get(name) or "").strip(), argument_of(name)
        try:
            if given and argument and not any(sign.isdigit() for sign in given):
                value_of(argument, given)
        except ValueError as unread:
            said[name] = str(unread).partition("; ")[2].capitalize() + "."
    return said


async def work(room: Room, job: Job) -> None:
    """The answer, where the form was opened from."""
    if job.body["callback"] == SIZING:
        await _size(room, job)
    else:
        await _log(room, job)


async def _size(room: Room, job: Job) -> None:
    words = words_of_form(job.body["values"])
    meta = json.loads(job.body["meta"] or "{}")
    sight = await room.visibility.sight(job.who, job.body["user"], None)
    try:
        reply = await room.asks.size_words(room.desk, words, sight.viewer)
    except Unusable as unusable:
        await _close(room, job, notice_view(str(unusable)))
        return
    blocks, text = sizing_message(reply.document, words)
    if meta.get("response_url") and await _answer(room, job, meta, text, blocks, words):
        await _close(room, job, notice_view("The answer is in the channel, for you alone."), told=True)
        return
    await _close(room, job, sizing_view(reply.document, words))


async def _answer(room: Room, job: Job, meta: Mapping[str, Any], text: str, blocks: Sequence[Block], words: str) -> bool:
    """Where the form was opened from; the form itself is left for where that is no longer possible."""
    body = job.body
    return await room.asides.alone(
        job.who, Place(meta.get("channel") or "", None), body["user"], text, blocks, about=job.arrival.key, name="answer",
        url=meta["response_url"], answering=quoted(words), anew=reading(Verb("size", words), body), elsewhere=False,
    )  # fmt: skip


async def _log(room: Room, job: Job) -> None:
    body = job.body
    user = body["user"]
    try:
        chosen = body["values"].get("channel")
        if chosen and not await room.visibility.may_post(job.who, user, chosen, foreign=bool(body["foreign"])):
            await _close(room, job, notice_view(NOT_IN_IT))
            return
        channel = chosen or (await room.outbox.call(job.who, "conversations.open", users=user))["channel"]["id"]
        if no_more := await used_up(room, job, Place(channel, None)):
            await _close(room, job, notice_view(no_more))
            return
        gathered = await _gathered(room, job)
        if not gathered.contributions:
            await _close(room, job, notice_view(" ".join(gathered.refusals) or "There was nothing to read."))
            return
        place = await _opened(room, job, channel)
    except SlackApiError as refused:
        await _close(
            room,
            job,
            notice_view(f"I may not write there ({refused.response.get('error')}): invite me to the channel, or send me a direct message."),
        )
        return
    there = replace(job.arrival, channel=place.channel, body={**body, "channel": place.channel, "ts": place.thread, "text": ""})
    said = Job(job.who, there, job.attempt)
    if (await diagnose(room, said, place, gathered)).where == "nowhere":
        await hint(room, said)
    await _close(room, job, notice_view("Answered in the thread of the message that I posted for you."), told=True)


async def _gathered(room: Room, job: Job) -> Gathered:
    """The files of the form, and what was pasted into it."""
    files = await room.intake.gather(job.who, {**job.body, "text": "", "hidden": 0, "ts": None})
    pasted = str(job.body["values"].get("text") or "").strip()
    if not pasted:
        return files
    text = Contribution("paste", pasted, author=job.body["user"], message=job.arrival.key)
    return Gathered((text,)) + files


async def _opened(room: Room, job: Job, channel: str) -> Place:
    """A thread for the log: one short message that says whose it is."""
    blocks = [rich(line("A log from ", person(job.body["user"]), ", sent by the form. The answer is in the thread."))]
    text = "A log, sent by the form. The answer is in the thread."
    ts = await room.outbox.post(job.who, Place(channel, None), f"form:{job.body['view_id']}", blocks, text)
    return Place(channel, ts)


async def _close(room: Room, job: Job, view: dict[str, Any], *, told: bool = False) -> None:
    """The last word in the form. `told`: the answer stands elsewhere, so nothing is missed where the form was closed."""
    try:
        await room.outbox.call(job.who, "views.update", view_id=job.body["view_id"], view=view)
    except SlackApiError:
        meta = json.loads(job.body["meta"] or "{}")
        if meta.get("response_url") and not told:
            said = "The form was closed before the answer came. Ask again."
            place, key, url = Place(meta.get("channel") or "", None), job.arrival.key, meta["response_url"]
            await room.asides.alone(job.who, place, job.body["user"], said, about=key, name="end", url=url)


SURFACE = Surface(name="modals", takes=takes, work=work, says=says)
