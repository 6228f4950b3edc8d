"""A message as Slack holds it now: where its event came late, or without its files."""

from collections.abc import Mapping
from typing import Any

from bot.slack.inbox import message
from bot.slack.installs import Identity
from bot.slack.outbox import Outbox


async def as_it_stands(outbox: Outbox, who: Identity, body: Mapping[str, Any]) -> dict[str, Any] | None:
    """The slim message anew; None when it is no longer there. SlackApiError where Slack does not let us look."""
    thread = body.get("thread_ts") or body["ts"]
    answer = await outbox.call(
        who, "conversations.replies", channel=body["channel"], ts=thread, oldest=body["ts"], inclusive=True, limit=10
    )
    said = next((one for one in answer.get("messages") or () if one["ts"] == body["ts"]), None)
    return None if said is None else message(said, who.bot_user)
