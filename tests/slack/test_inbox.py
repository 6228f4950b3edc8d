"""What a message says, wherever Slack puts it; no wire is needed for that."""

import asyncio
import logging
from types import SimpleNamespace
from typing import Any

import pytest

from bot.slack.inbox import text_of
from bot.slack.room import Room
from bot.store.errors import StoreError
from tests.slack.material import CRASH

BLOCKS = [{"type": "section", "text": {"type": "mrkdwn", "text": CRASH}}]
LINKED = {"from_url": "https://example.com/x", "fields": [{"title": "CUDA out of memory", "value": CRASH}]}


@pytest.mark.parametrize(
    "attachment",
    [
        {"fields": [{"title": "pod", "value": "vllm-0", "short": True}, {"title": "Log", "value": CRASH}]},
        {"title": "Pod crashed", "fallback": "Pod crashed", "fields": [{"value": CRASH}]},
        {"fallback": "[no preview available]", "blocks": BLOCKS},
    ],
)
def test_an_alerts_log_is_read_in_fields_and_blocks_of_its_attachment(attachment: dict[str, Any]) -> None:
    assert CRASH in text_of({"bot_id": "BALERT", "text": "Alert: pod crashed", "attachments": [attachment]})
    assert "no preview" not in text_of({"bot_id": "BALERT", "attachments": [attachment]})


def test_what_a_link_leads_to_is_not_said_by_who_posts_it() -> None:
    assert text_of({"user": "U1", "text": "look", "attachments": [LINKED]}) == "look"
    assert text_of({"bot_id": "B1", "text": "", "attachments": [{"fallback": "only this", "fields": [{}, None]}]}) == "only this"


@pytest.mark.parametrize(("failed", "place"), [(StoreError("The database is locked."), False), (ValueError("ours"), True)])
async def test_only_a_fault_of_ours_is_logged_with_its_place(failed: Exception, place: bool, caplog: pytest.LogCaptureFixture) -> None:
    async def fails() -> None:
        raise failed

    task = asyncio.create_task(fails(), name="keeping a message")
    await asyncio.wait({task})
    with caplog.at_level(logging.ERROR):
        Room._ended(SimpleNamespace(running={task}), task)  # type: ignore[arg-type]
    (record,) = caplog.records
    assert (record.exc_info is not None) is place
    assert record.getMessage().startswith("keeping a message: ")
