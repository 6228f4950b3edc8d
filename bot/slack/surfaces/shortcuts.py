"""“Diagnose this message” on any message, and the global shortcut with a form that takes a file."""

from typing import Any

from slack_sdk.errors import SlackApiError

from bot.domain.incident import Origin
from bot.slack.calls import UnsureError
from bot.slack.conversation import diagnose, incident_of, place_of
from bot.slack.inbox import Arrival
from bot.slack.render.diagnosis import diagnosis_message
from bot.slack.render.forms import log_form, notice_view
from bot.slack.room import Job, Room
from bot.slack.surfaces.surface import Surface
from bot.usecases.reply import Unusable

# What Slack says when the bot may not write where the message stands.
ELSEWHERE = frozenset({"not_in_channel", "channel_not_found", "is_archived", "restricted_action", "thread_not_found"})


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
        await room.outbox.tell(job.who, job.body["user"], said, about=job.arrival.key)
        return None
    return None if job.arrival.kind == "shortcut" else {"view_id": opened["view"]["id"]}


async def work(room: Room, job: Job) -> None:
    """Diagnoses in the message's thread; where the bot may not write, for the asker alone."""
    body = job.body
    gathered = await room.intake.gather(job.who, body)
    said = "There is nothing to read in this message: no text and no file."
    if gathered.refusals:
        said = " ".join(gathered.refusals)
    if gathered.contributions:
        try:
            incident = await diagnose(room, job, place_of(body), gathered)
            said = f"Answered in the thread: {incident}." if incident else "The answer stands in the thread, or in a word to you alone."
        except SlackApiError as refused:
            if refused.response.get("error") not in ELSEWHERE:
                raise
            said = await _alone(room, job, gathered.contributions)
    await close(room, job, said)


async def _alone(room: Room, job: Job, contributions: Any) -> str:
    """For a channel that the bot is not in: shown to the asker, kept as private."""
    place = place_of(job.body)
    kept = await incident_of(room, job, place)
    if kept is None:
        try:
            origin = Origin(job.who.team, job.who.enterprise, place.channel, place.thread, private=True)
            document = (await room.asks.diagnose(room.desk, origin, contributions)).document
        except Unusable as unusable:
            return str(unusable)
    else:
        document = kept.document
    blocks, text = diagnosis_message(document)
    await room.outbox.respond(job.body["response_url"], text, blocks)
    return "Answered for you alone: I am not a member of that channel. Invite me to answer in the thread."


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
        await room.outbox.respond(job.body["response_url"], said)


SURFACE = Surface(name="shortcuts", takes=takes, work=work, greet=greet)
