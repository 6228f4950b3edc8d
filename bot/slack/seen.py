"""Looks in Slack itself for a message of ours whose posting was begun and whose end is not known."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

from slack_sdk.errors import SlackApiError

from bot.slack.installs import Identity

log = logging.getLogger(__name__)
METADATA = "oombot_reply"
SETTLES = 20.0  # seconds after which a call that was begun has been carried out, or never will be
PAGES = 5
Message = Mapping[str, Any]
Call = Callable[..., Awaitable[dict[str, Any]]]


def marked(kind: str, text: str) -> Callable[[Message], bool]:
    """A message with our mark; where Slack gives no marks back, one with the same text."""

    def mine(message: Message) -> bool:
        metadata = message.get("metadata")
        if not metadata:
            return message.get("text") == text
        return bool(metadata.get("event_type") == METADATA and (metadata.get("event_payload") or {}).get("kind") == kind)

    return mine


def holding(name: str) -> Callable[[Message], bool]:
    """A message with a file of that name."""
    return lambda message: any(file.get("name") == name for file in message.get("files") or ())


async def sought(
    call: Call, who: Identity, channel: str, thread: str | None, mine: Callable[[Message], bool], begun: float, since: str | None = None
) -> Message | None:
    """It, as soon as Slack shows it; None once a post begun then (Unix seconds) must have come, or where Slack does not let us look.

    `since`: only messages after this ts.
    """
    while True:
        try:
            found = await anext(ours(call, who, channel, thread, mine, since), None)
        except SlackApiError as refused:
            log.warning("%s cannot be looked through for an answer of ours: %s", channel, refused.response.get("error"))
            return None
        left = begun + SETTLES - time.time()
        if found is not None or left <= 0:
            return found
        await asyncio.sleep(min(1.0, left))


async def ours(
    call: Call, who: Identity, channel: str, thread: str | None, mine: Callable[[Message], bool], since: str | None = None
) -> AsyncIterator[Message]:
    """All of ours that Slack shows there now, after the ts `since`. SlackApiError where Slack does not let us look."""
    cursor = ""
    for _ in range(PAGES):
        page: dict[str, Any] = {"cursor": cursor} if cursor else {}
        page |= {"oldest": since} if since else {}
        if thread is None:
            answer = await call(who, "conversations.history", channel=channel, limit=200, include_all_metadata=True, **page)
        else:
            answer = await call(who, "conversations.replies", channel=channel, ts=thread, limit=200, include_all_metadata=True, **page)
        for message in answer.get("messages") or ():
            own = message.get("bot_id") == who.bot_id or message.get("user") == who.bot_user
            if own and mine(message) and (since is None or float(message["ts"]) > float(since)):
                yield message
        cursor = (answer.get("response_metadata") or {}).get("next_cursor") or ""
        if not cursor or thread is None:  # a channel's history comes newest first
            return
