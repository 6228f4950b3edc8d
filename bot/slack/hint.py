"""What the bot says when it was called and found nothing to read: what can be sent, or the topic of a question."""

from bot.slack.conversation import place_of
from bot.slack.outbox import Place
from bot.slack.render.blocks import Block, small
from bot.slack.render.explanation import explanation_message
from bot.slack.render.notices import HINT
from bot.slack.room import Job, Room
from bot.usecases.desk import Viewer
from bot.usecases.reply import Unusable

AWAITED = "awaits:log"
"""Kind of the note on a thread in which a log was asked for."""


async def hint(room: Room, job: Job) -> None:
    """Said once about a message. The log may then come into this thread without the bot being named again."""
    body, place = job.body, place_of(job.body)
    ts = await room.outbox.post(job.who, place, f"hint:{body['ts']}", *await _said(room, job))
    await room.store.remember_reply(None, job.who.team, place.channel, place.thread or "", ts, AWAITED)


async def is_awaited(room: Room, job: Job, place: Place) -> bool:
    """Whether a log was asked for in this thread."""
    return await room.store.reply_of(job.who.team, place.channel, place.thread or "", AWAITED) is not None


async def _said(room: Room, job: Job) -> tuple[list[Block], str]:
    text = str(job.body["text"])
    if "?" in text or "？" in text:
        viewer = Viewer(job.who.team, job.body["user"], job.who.enterprise, frozenset())
        try:
            blocks, short = explanation_message((await room.asks.explain(room.desk, viewer, text)).document)
        except Unusable:
            pass  # about something else
        else:
            return [*blocks, small(HINT)], short
    return [], HINT
