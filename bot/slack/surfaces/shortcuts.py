"""“Diagnose this message” on any message, and the global shortcut with a form that takes a file."""

from typing import Any

from slack_sdk.errors import SlackApiError

from bot.slack.allowance import had_read
from bot.slack.calls import UnsureError
from bot.slack.conversation import diagnose, hear, incident_of, place_of
from bot.slack.inbox import Arrival
from bot.slack.render.forms import log_form, notice_view
from bot.slack.render.notices import HINT, NOT_OPENED
from bot.slack.room import Job, Room
from bot.slack.surfaces.surface import Surface

SAID = {
    "thread": "Answered in the thread.",
    "alone": "Answered for you alone, with the reason.",
    "word": "The answer is in a word to you alone.",
    "nowhere": f"There is nothing to read in this message: no error, and no file. {HINT}",
}


def takes(arrival: Arrival) -> bool:
    """Both shortcuts."""
    return arrival.kind in ("shortcut", "message_shortcut")


async def greet(room: Room, job: Job) -> dict[str, Any] | None:
    """A view opened at once, while the trigger lives: the form itself, or the sign that the message is being read."""
    trigger = job.body["trigger_id"]
    view = log_form("") if job.arrival.kind == "shortcut" else notice_view("Reading the message…")
    try:
        opened = await room.outbox.call(job.who, "views.open", sure=True, trigger_id=trigger, view=view)
    except (SlackApiError, UnsureError):
        if job.arrival.kind == "message_shortcut":
            return {}
        said = "The form could not be opened. Use the shortcut again, or send me the log here."
        await room.asides.tell(job.who, job.body["user"], said, about=job.arrival.key)
        return None
    return None if job.arrival.kind == "shortcut" else {"view_id": opened["view"]["id"]}


async def work(room: Room, job: Job) -> None:
    """Diagnoses in the message's thread; where the bot may not write, for the asker alone."""
    if job.arrival.kind == "shortcut":
        await room.asides.tell(job.who, job.body["user"], NOT_OPENED, about=job.arrival.key)
        return
    place = place_of(job.body)
    if job.who.bot_user == job.body.get("author") or (job.body["bot"] and job.body["bot"] == job.who.bot_id):
        ours = await incident_of(room, job, place)
        await close(room, job, f"This is an answer of mine: {ours.id}." if ours else "This is a message of mine.")
        return
    gathered = await hear(room, job, place, alone=True)
    if not gathered.contributions:
        await close(room, job, " ".join(gathered.refusals) or SAID["nowhere"])
        return
    await had_read(room, job, place, job.body["ts"], job.body.get("author"))
    answer = await diagnose(room, job, place, gathered)
    known = answer.where == "thread" and answer.incident
    await close(room, job, f"Answered in the thread: {answer.incident}." if known else SAID[answer.where])


async def close(room: Room, job: Job, said: str) -> None:
    """The last word in the view that was opened, or by the response URL when there is none."""
    if job.body.get("view_id"):
        try:
            await room.outbox.call(job.who, "views.update", view_id=job.body["view_id"], view=notice_view(said))
        except SlackApiError:
            pass  # the person has closed it
        else:
            return
    if job.body.get("response_url"):
        url = job.body["response_url"]
        await room.asides.alone(job.who, place_of(job.body), job.body["user"], said, about=job.arrival.key, name="end", url=url)


SURFACE = Surface(name="shortcuts", takes=takes, work=work, greet=greet)
