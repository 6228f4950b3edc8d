"""A post that was made again because the first one's end was not known: had Slack carried out both, the extra one goes."""

import logging

from slack_sdk.errors import SlackApiError

from bot.slack.inbox import Arrival
from bot.slack.outbox import TWICE
from bot.slack.room import Job, Room
from bot.slack.seen import marked, ours
from bot.slack.surfaces.surface import Surface

log = logging.getLogger(__name__)


def takes(arrival: Arrival) -> bool:
    """A look back that has come due."""
    return arrival.kind == TWICE


async def work(room: Room, job: Job) -> None:
    """Keeps the message that is edited from now on."""
    body, who = job.body, job.who
    channel, thread, kind = str(body["channel"]), str(body["thread"]), str(body["kind"])
    kept = await room.store.reply_of(who.team, channel, thread, kind)
    if kept is None or not kept.ts:
        return
    mine = marked(kind, str(body["text"]))
    try:
        found = [str(m["ts"]) async for m in ours(room.outbox.call, who, channel, thread or None, mine, body.get("since"))]
        for ts in found if kept.ts in found else ():
            if ts != kept.ts:
                log.warning("%s in %s was carried out twice: one is taken back", kind, channel)
                await room.outbox.call(who, "chat.delete", channel=channel, ts=ts)
    except SlackApiError as refused:
        log.warning("%s cannot be looked through for a second %s: %s", channel, kind, refused.response.get("error"))


SURFACE = Surface(name="twice", takes=takes, work=work)
