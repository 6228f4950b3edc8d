"""What the bot says when it was called and found nothing to read: what can be sent, beside the answer to a question where there is one."""

from collections.abc import Sequence

from slack_sdk.errors import SlackApiError

from bot.slack.conversation import give_alone, place_of
from bot.slack.outbox import Place
from bot.slack.render.blocks import Block, small
from bot.slack.render.notices import HINT
from bot.slack.room import Job, Room

AWAITED = "awaits:log"
"""Kind of the note on a thread in which a log was asked for."""


async def hint(room: Room, job: Job, answered: tuple[Sequence[Block], str] | None = None, sentence: str = HINT) -> None:
    """Said once about a message. The log may then come into this thread without the bot being named again."""
    body, place = job.body, place_of(job.body)
    blocks, text = ([*answered[0], small(sentence)], answered[1]) if answered else ([], sentence)
    try:
        ts = await room.outbox.post(job.who, place, f"hint:{body['ts']}", blocks, text)
    except SlackApiError as refused:
        if not await give_alone(room, job, place, refused, blocks, text):
            raise
        return
    await room.store.remember_reply(None, job.who.team, place.channel, place.thread or "", ts, AWAITED)


async def is_awaited(room: Room, job: Job, place: Place) -> bool:
    """Whether a log was asked for in this thread."""
    return await room.store.reply_of(job.who.team, place.channel, place.thread or "", AWAITED) is not None
