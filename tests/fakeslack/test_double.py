"""The double refuses what Slack refuses: a test that passes only because the double is lenient is worth nothing."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from tests.fakeslack import FakeSlack, Person
from tests.fakeslack.blocks import problems, view_problems
from tests.fakeslack.state import Team

QUIET = {"unfurl_links": False, "unfurl_media": False}


@pytest.fixture
async def slack() -> AsyncIterator[FakeSlack]:
    made = FakeSlack("http", retry_after=(0.01, 0.01, 0.01), patience=0.3)
    made.hear_events = False
    async with made.running():
        yield made


@pytest.fixture
def team(slack: FakeSlack) -> Team:
    return slack.team()


def client(slack: FakeSlack, team: Team) -> AsyncWebClient:
    return AsyncWebClient(token=team.token, base_url=slack.api_url, retry_handlers=[])


async def refused(call: Any) -> str:
    with pytest.raises(SlackApiError) as caught:
        await call
    return str(caught.value.response["error"])


async def test_an_unknown_method_and_an_unknown_argument_are_refused(slack: FakeSlack, team: Team) -> None:
    assert await refused(client(slack, team).api_call("chat.shout")) == "unknown_method"
    assert await refused(client(slack, team).api_call("files.info", params={"file": "F1", "fiel": "x"})) == "invalid_arguments"


async def test_a_foreign_token_is_refused(slack: FakeSlack, team: Team) -> None:
    assert await refused(AsyncWebClient(token="xoxb-nobody", base_url=slack.api_url).auth_test()) == "invalid_auth"


async def test_a_call_without_its_scope_names_the_scope(slack: FakeSlack) -> None:
    team = slack.team(scopes={"chat:write"})
    channel = slack.channel(team, "c")
    with pytest.raises(SlackApiError) as caught:
        await client(slack, team).reactions_add(channel=channel.id, timestamp="1.1", name="eyes")
    assert (caught.value.response["error"], caught.value.response["needed"]) == ("missing_scope", "reactions:write")
    assert caught.value.response.headers["x-oauth-scopes"] == "chat:write"


async def test_a_message_is_refused_where_the_bot_is_no_member_without_text_with_unfurls_or_broadcast(slack: FakeSlack, team: Team) -> None:
    channel = slack.channel(team, "c")
    elsewhere = slack.channel(team, "d", with_bot=False)
    hidden = slack.channel(team, "e", private=True, with_bot=False)
    api = client(slack, team)
    assert await refused(api.chat_postMessage(channel=elsewhere.id, text="x", **QUIET)) == "not_in_channel"
    assert await refused(api.chat_postMessage(channel=hidden.id, text="x", **QUIET)) == "channel_not_found"
    assert await refused(api.api_call("chat.postMessage", json={"channel": channel.id, **QUIET})) == "no_text"
    assert await refused(api.chat_postMessage(channel=channel.id, text="x")) == "invalid_arguments"
    assert (
        await refused(api.chat_postMessage(channel=channel.id, text="x", reply_broadcast=True, thread_ts="1", **QUIET))
        == "invalid_arguments"
    )
    assert await refused(api.chat_postMessage(channel=channel.id, text="x", thread_ts="1.1", **QUIET)) == "thread_not_found"


async def test_an_update_is_refused_when_too_long_or_not_ones_own(slack: FakeSlack, team: Team) -> None:
    ann = Person(slack, team)
    channel = slack.channel(team, "c", members=[ann.id])
    api = client(slack, team)
    posted = await api.chat_postMessage(channel=channel.id, text="x", **QUIET)
    assert await refused(api.chat_update(channel=channel.id, ts=posted["ts"], text="é" * 2_001)) == "msg_too_long"
    assert await refused(api.chat_update(channel=channel.id, ts="9.9", text="x")) == "message_not_found"
    theirs = await ann.say(channel, "mine")
    assert await refused(api.chat_update(channel=channel.id, ts=theirs, text="x")) == "cant_update_message"
    shown = await api.chat_postEphemeral(channel=channel.id, user=ann.id, text="psst")
    assert await refused(api.chat_update(channel=channel.id, ts=shown["message_ts"], text="x")) == "message_not_found"
    assert await refused(api.chat_postEphemeral(channel=channel.id, user="U404", text="psst")) == "user_not_in_channel"


async def test_text_alone_takes_the_blocks_away(slack: FakeSlack, team: Team) -> None:
    channel = slack.channel(team, "c")
    api = client(slack, team)
    blocks = [{"type": "header", "text": {"type": "plain_text", "text": "hello"}}]
    posted = await api.chat_postMessage(channel=channel.id, text="x", blocks=blocks, **QUIET)
    await api.chat_update(channel=channel.id, ts=posted["ts"], text="y")
    message = channel.message(posted["ts"])
    assert message is not None
    assert "blocks" not in message


async def test_a_block_id_is_new_at_every_edit(slack: FakeSlack, team: Team) -> None:
    channel = slack.channel(team, "c")
    api = client(slack, team)
    blocks = [{"type": "divider", "block_id": "mine"}]
    posted = await api.chat_postMessage(channel=channel.id, text="x", blocks=blocks, **QUIET)
    assert await refused(api.chat_update(channel=channel.id, ts=posted["ts"], text="y", blocks=blocks)) == "invalid_blocks"
    await api.chat_update(channel=channel.id, ts=posted["ts"], text="y", blocks=[{"type": "divider", "block_id": "newer"}])


def plain(text: str) -> dict[str, str]:
    return {"type": "plain_text", "text": text}


def button(**other: Any) -> dict[str, Any]:
    return {"type": "button", "action_id": "a", "text": plain("ok"), **other}


BAD: dict[str, dict[str, Any]] = {
    "an unknown type": {"type": "nonsense"},
    "a header over 150": {"type": "header", "text": plain("x" * 151)},
    "a header in mrkdwn": {"type": "header", "text": {"type": "mrkdwn", "text": "x"}},
    "an empty header": {"type": "header", "text": plain("")},
    "a section over 3,000": {"type": "section", "text": {"type": "mrkdwn", "text": "x" * 3_001}},
    "eleven fields": {"type": "section", "fields": [plain("x")] * 11},
    "a field over 2,000": {"type": "section", "fields": [plain("x" * 2_001)]},
    "a section of nothing": {"type": "section"},
    "eleven context elements": {"type": "context", "elements": [plain("x")] * 11},
    "no context element": {"type": "context", "elements": []},
    "a button text over 75": {"type": "actions", "elements": [button(text=plain("x" * 76))]},
    "a button value over 2,000": {"type": "actions", "elements": [button(value="x" * 2_001)]},
    "a label over 75": {"type": "actions", "elements": [button(accessibility_label="x" * 76)]},
    "an action id twice": {"type": "actions", "elements": [button(), button()]},
    "26 actions": {"type": "actions", "elements": [button(action_id=str(n)) for n in range(26)]},
    "101 options": {
        "type": "actions",
        "elements": [{"type": "static_select", "action_id": "s", "options": [{"text": plain("x"), "value": "x"}] * 101}],
    },
    "an option of no menu": {"type": "actions", "elements": [{"type": "static_select", "action_id": "s", "options": []}]},
    "an empty cell": {"type": "table", "rows": [[{"type": "raw_text", "text": ""}]]},
    "101 rows": {"type": "table", "rows": [[{"type": "raw_text", "text": "x"}]] * 101},
    "21 columns": {"type": "table", "rows": [[{"type": "raw_text", "text": "x"}] * 21]},
    "rows of different length": {"type": "table", "rows": [[{"type": "raw_text", "text": "x"}], [{"type": "raw_text", "text": "x"}] * 2]},
    "10,001 characters in cells": {"type": "table", "rows": [[{"type": "raw_text", "text": "x" * 10_001}]]},
    "empty rich text": {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": [{"type": "text", "text": ""}]}]},
    "an empty list": {"type": "rich_text", "elements": [{"type": "rich_text_list", "style": "bullet", "elements": []}]},
    "a broadcast": {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": [{"type": "broadcast", "range": "here"}]}]},
    "an unknown property": {"type": "divider", "colour": "red"},
    "an alert in a message": {"type": "alert", "text": plain("x")},
    "a file input in a message": {"type": "input", "label": plain("x"), "element": {"type": "file_input", "action_id": "f"}},
    "a block id over 255": {"type": "divider", "block_id": "x" * 256},
}


@pytest.mark.parametrize("name", BAD)
def test_a_block_that_slack_refuses_is_refused(name: str) -> None:
    assert problems([BAD[name]], "message")


def test_counts_and_surfaces_are_checked() -> None:
    assert problems([{"type": "divider"}] * 51, "message")
    assert not problems([{"type": "divider"}] * 51, "home")
    assert problems([{"type": "divider"}] * 101, "home")
    assert problems([{"type": "divider", "block_id": "a"}, {"type": "divider", "block_id": "a"}], "message")
    table = {"type": "table", "rows": [[{"type": "raw_text", "text": "x"}]]}
    assert not problems([table], "message")
    assert problems([table], "modal")
    modal = {"type": "modal", "title": plain("t"), "blocks": []}
    assert not view_problems(modal)
    assert view_problems({**modal, "title": plain("x" * 25)})
    assert view_problems({**modal, "private_metadata": "x" * 3_001})
    assert view_problems(
        {**modal, "blocks": [{"type": "input", "label": plain("x"), "element": {"type": "plain_text_input", "action_id": "a"}}]}
    ), "no submit"


async def test_the_total_of_a_message_is_counted_over_all_blocks(slack: FakeSlack, team: Team) -> None:
    channel = slack.channel(team, "c")
    block = {"type": "section", "text": {"type": "mrkdwn", "text": "x" * 2_900}}
    assert (
        await refused(client(slack, team).chat_postMessage(channel=channel.id, text="x", blocks=[block] * 4, **QUIET))
        == "msg_blocks_too_long"
    )


async def test_a_trigger_opens_one_view_within_three_seconds(slack: FakeSlack, team: Team) -> None:
    ann = Person(slack, team)
    api = client(slack, team)
    view = {"type": "modal", "title": plain("t"), "blocks": []}
    trigger = slack.trigger(team, ann.id)
    await api.views_open(trigger_id=trigger, view=view)
    assert await refused(api.views_open(trigger_id=trigger, view=view)) == "exchanged_trigger_id"
    late = slack.trigger(team, ann.id)
    slack.later(3.1)
    assert await refused(api.views_open(trigger_id=late, view=view)) == "expired_trigger_id"
    assert await refused(api.views_open(trigger_id="1.2", view=view)) == "invalid_trigger_id"


async def test_a_response_url_replaces_what_was_clicked_also_where_only_one_person_sees_it(slack: FakeSlack, team: Team) -> None:
    ann = Person(slack, team)
    channel = slack.channel(team, "help", members=[ann.id])
    for _ in range(2):
        await client(slack, team).chat_postEphemeral(channel=channel.id, user=ann.id, text="a line")
    async with aiohttp.ClientSession() as session:
        url = slack.response_url(team, channel, ann.id, channel.ephemerals[0]["ts"])
        for _ in range(2):
            await session.post(url, json={"text": "the answer", "replace_original": True})
        await session.post(url, json={"text": "one more", "replace_original": False})
    assert [one["text"] for one in ann.sees(channel)] == ["the answer", "a line", "one more"]


async def test_a_response_url_is_used_up_after_five_uses_and_after_half_an_hour(slack: FakeSlack, team: Team) -> None:
    ann = Person(slack, team)
    channel = slack.channel(team, "c", members=[ann.id])
    async with aiohttp.ClientSession() as session:

        async def use(url: str) -> int:
            async with session.post(url, json={"text": "x"}) as answer:
                return answer.status

        url = slack.response_url(team, channel, ann.id)
        assert [await use(url) for _ in range(6)] == [200] * 5 + [404]
        old = slack.response_url(team, channel, ann.id)
        slack.later(1_801)
        assert await use(old) == 404
    assert len(ann.sees(channel)) == 5
    assert channel.messages == [], "ephemeral unless it says otherwise"


async def test_a_file_is_given_to_the_bearer_only_and_others_get_the_sign_in_page(slack: FakeSlack, team: Team) -> None:
    ann = Person(slack, team)
    file = ann.file("a.log", b"hello", hops=[""])
    url = slack.file_body(file)["url_private_download"]
    async with aiohttp.ClientSession() as session:
        async with session.get(url) as answer:
            assert (answer.status, answer.content_type) == (200, "text/html")
        token = {"Authorization": f"Bearer {team.token}"}
        async with session.get(url, headers=token, allow_redirects=False) as answer:
            assert answer.status == 302
            onward = answer.headers["Location"]
        async with session.get(slack.url + onward, headers=token) as answer:
            assert await answer.read() == b"hello"


async def test_an_upload_is_found_only_after_its_bytes_came(slack: FakeSlack, team: Team) -> None:
    channel = slack.channel(team, "c")
    api = client(slack, team)
    opened = await api.files_getUploadURLExternal(filename="a.txt", length=5)
    assert await refused(api.files_completeUploadExternal(files=[{"id": opened["file_id"]}], channel_id=channel.id)) == "file_not_found"
    async with aiohttp.ClientSession() as session, session.post(opened["upload_url"], data=b"hello") as answer:
        assert answer.status == 200
    await api.files_completeUploadExternal(files=[{"id": opened["file_id"]}], channel_id=channel.id)
    assert channel.messages[-1]["files"][0]["name"] == "a.txt"


async def test_private_channels_are_listed_for_members_only(slack: FakeSlack, team: Team) -> None:
    ann = Person(slack, team)
    seen = slack.channel(team, "seen", private=True, members=[ann.id])
    slack.channel(team, "not-ann", private=True)
    slack.channel(team, "not-bot", private=True, members=[ann.id], with_bot=False)
    answer = await client(slack, team).users_conversations(user=ann.id, types="private_channel")
    assert [channel["id"] for channel in answer["channels"]] == [seen.id]


async def _app(answers: list[int], heard: list[tuple[str, str]], slow: float = 0.0) -> tuple[web.AppRunner, str]:
    async def listen(request: web.Request) -> web.Response:
        heard.append((request.headers.get("X-Slack-Retry-Num", ""), request.headers.get("X-Slack-Retry-Reason", "")))
        await asyncio.sleep(slow)
        return web.Response(status=answers.pop(0) if answers else 200)

    app = web.Application()
    app.router.add_post("/", listen)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    return runner, f"http://127.0.0.1:{runner.addresses[0][1]}/"


async def test_an_event_is_delivered_up_to_four_times_until_it_is_acknowledged(slack: FakeSlack, team: Team) -> None:
    heard: list[tuple[str, str]] = []
    runner, slack.events_url = await _app([500, 503], heard)
    slack.hear_events = True
    try:
        ack = await slack.emit(team, {"type": "app_home_opened", "user": "U1"})
        assert (ack.status, ack.tries) == (200, 3)
        assert heard == [("", ""), ("1", "http_error"), ("2", "http_error")]
    finally:
        await runner.cleanup()


async def test_an_app_that_is_slower_than_slack_waits_is_retried(slack: FakeSlack, team: Team) -> None:
    heard: list[tuple[str, str]] = []
    runner, slack.events_url = await _app([], heard, slow=0.5)
    slack.hear_events = True
    try:
        ack = await slack.emit(team, {"type": "app_home_opened", "user": "U1"})
        assert (ack.status, ack.tries) == (0, 4)
        assert heard[1] == ("1", "http_timeout")
    finally:
        await runner.cleanup()


async def test_faults_come_as_often_as_asked_for(slack: FakeSlack, team: Team) -> None:
    api = client(slack, team)
    slack.fault("auth.test", "ratelimited", times=2, value=7)
    for _ in range(2):
        with pytest.raises(SlackApiError) as caught:
            await api.auth_test()
        assert (caught.value.response.status_code, caught.value.response.headers["Retry-After"]) == (429, "7")
    assert (await api.auth_test())["team_id"] == team.id


async def test_a_dropped_answer_was_carried_out_all_the_same(slack: FakeSlack, team: Team) -> None:
    channel = slack.channel(team, "c")
    slack.fault("chat.postMessage", "drop")
    with pytest.raises(aiohttp.ClientError):
        await client(slack, team).chat_postMessage(channel=channel.id, text="x", **QUIET)
    assert len(channel.messages) == 1


async def test_the_socket_says_hello_and_an_unacknowledged_envelope_comes_again(slack: FakeSlack, team: Team) -> None:
    slack.transport, slack.hear_events = "socket", True
    opened = await AsyncWebClient(base_url=slack.api_url).apps_connections_open(app_token=slack.app_token)
    async with aiohttp.ClientSession() as session, session.ws_connect(opened["url"]) as socket:
        assert (await socket.receive_json())["type"] == "hello"
        sent = slack.emit(team, {"type": "app_home_opened", "user": "U1"})
        first = await socket.receive_json()
        again = await socket.receive_json()
        assert (first["retry_attempt"], again["retry_attempt"]) == (0, 1)
        assert first["payload"]["event_id"] == again["payload"]["event_id"]
        await socket.send_str(json.dumps({"envelope_id": again["envelope_id"]}))
        assert (await sent).tries == 2


async def test_a_person_cannot_say_something_where_they_are_no_member(slack: FakeSlack, team: Team) -> None:
    ann = Person(slack, team)
    with pytest.raises(AssertionError):
        await ann.say(slack.channel(team, "c"), "hello")


async def test_only_the_bots_own_files_can_be_deleted(slack: FakeSlack, team: Team) -> None:
    ann = Person(slack, team)
    api = client(slack, team)
    assert await refused(api.files_delete(file=ann.file("a.log", b"x").id)) == "cant_delete_file"
    opened = await api.files_getUploadURLExternal(filename="a.txt", length=5)
    await api.files_delete(file=opened["file_id"])
    assert await refused(api.files_delete(file=opened["file_id"])) == "file_not_found"
