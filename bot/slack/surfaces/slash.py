"""`/oom …`: acknowledged at once with a visible sign, answered to the asker alone by the response URL."""

import json
from typing import Any

from slack_sdk.errors import SlackApiError

from bot.slack.calls import UnsureError
from bot.slack.inbox import Arrival
from bot.slack.offers import quoted, reading
from bot.slack.outbox import Place
from bot.slack.render.forms import sizing_form
from bot.slack.render.notices import NOT_OPENED
from bot.slack.room import Job, Room
from bot.slack.surfaces.surface import Surface
from bot.slack.surfaces.verbs import answer, first_word
from bot.slack.words import Verb

WAITING = {
    "size": "Working it out…",
    "history": "Looking through what was seen before…",
    "show": "Looking it up…",
    "forget": "Erasing its evidence…",
    "stats": "Counting…",
    "explain": "One moment…",
    "help": "Here is what I can do.",
}


def takes(arrival: Arrival) -> bool:
    """Slash commands."""
    return arrival.kind == "command"


def says(arrival: Arrival) -> dict[str, Any]:
    """The sign in the acknowledgement."""
    asked = first_word(arrival.body["text"])
    return {
        "response_type": "ephemeral",
        "text": "Opening the sizing form…" if _wants_form(asked) else WAITING.get(asked.name, "One moment…"),
    }


async def greet(room: Room, job: Job) -> dict[str, Any] | None:
    """`/oom size` alone opens the form while its trigger lives; then nothing is left to do."""
    if not _wants_form(first_word(job.body["text"])):
        return {}
    meta = json.dumps({"channel": job.body["channel"], "response_url": job.body["response_url"]})
    try:
        await room.outbox.call(job.who, "views.open", sure=True, trigger_id=job.body["trigger_id"], view=sizing_form(meta))
    except (SlackApiError, UnsureError):
        await room.asides.respond(job.body["response_url"], "The form could not be opened. In words: /oom size MODEL gpu=H100 tp=2 ctx=32k")
    return None


async def work(room: Room, job: Job) -> None:
    """The answer, for the asker alone."""
    asked = first_word(job.body["text"])
    body = job.body  # its response URL may be spent: half an hour has passed, or it was used up
    place = Place(body["channel"], None)
    if _wants_form(asked):
        url = body["response_url"]
        await room.asides.alone(job.who, place, body["user"], NOT_OPENED, about=job.arrival.key, name="form", url=url)
        return
    blocks, text = await answer(room, job, asked)
    await room.asides.alone(
        job.who, place, body["user"], text, blocks, about=job.arrival.key, name="answer", url=body["response_url"],
        answering=quoted(f"{body['command']} {body['text']}"), anew=reading(asked, body),
    )  # fmt: skip


def _wants_form(asked: Verb) -> bool:
    return asked.name == "size" and not asked.rest


SURFACE = Surface(name="slash", takes=takes, work=work, says=says, greet=greet)
