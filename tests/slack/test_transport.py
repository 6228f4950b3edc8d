"""What comes in, over HTTP and over Socket Mode: whose it is, how it is acknowledged, and what happens when the way is cut."""

import asyncio
import json
import time

import aiohttp
import pytest

from tests.slack.material import CRASH, NO_RANK
from tests.slack.world import World, words

CHALLENGE = json.dumps({"type": "url_verification", "token": "old", "challenge": "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P"})


async def _post(world: World, raw: str, headers: dict[str, str], kind: str = "application/json") -> tuple[int, str]:
    given = headers | {"Content-Type": kind}
    async with aiohttp.ClientSession() as session, session.post(world.slack.events_url or "", data=raw.encode(), headers=given) as answer:
        return answer.status, await answer.text()


async def test_the_address_is_verified_with_its_challenge(http_world: World) -> None:
    world = http_world
    async with world.bot():
        status, said = await _post(world, CHALLENGE, world.slack.signed(CHALLENGE))
        assert status == 200
        assert "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P" in said
        assert (await _post(world, CHALLENGE, world.slack.signed(CHALLENGE, secret="another")))[0] == 401


@pytest.mark.parametrize("minutes", [-6, 6])
async def test_a_stamp_that_is_far_from_now_is_refused(http_world: World, minutes: int) -> None:
    world = http_world
    async with world.bot():
        signed = world.slack.signed(CHALLENGE, at=int(time.time()) + minutes * 60)
        assert (await _post(world, CHALLENGE, signed))[0] == 401


@pytest.mark.parametrize("left_out", ["X-Slack-Signature", "X-Slack-Request-Timestamp"])
async def test_what_is_not_signed_is_refused(http_world: World, left_out: str) -> None:
    world = http_world
    async with world.bot():
        headers = {name: value for name, value in world.slack.signed(CHALLENGE).items() if name != left_out}
        assert (await _post(world, CHALLENGE, headers))[0] == 401


async def test_slacks_look_at_the_certificate_is_answered(http_world: World) -> None:
    world = http_world
    async with world.bot():
        raw = "ssl_check=1&token=old"
        assert (await _post(world, raw, {}, "application/x-www-form-urlencoded"))[0] == 200


@pytest.mark.parametrize(
    "raw", ["{", "[]", '"x"', "null", "payload=%7B", "{}", '{"type":"event_callback"}', '{"type":"event_callback","event":{}}']
)
async def test_a_signed_body_that_is_none_of_slacks_is_no_fault(http_world: World, raw: str) -> None:
    world = http_world
    kind = "application/x-www-form-urlencoded" if raw.startswith("payload") else "application/json"
    async with world.bot():
        status, said = await _post(world, raw, world.slack.signed(raw), kind)
        assert status < 500
        assert "Traceback" not in said
        ts = await world.ann.mention(world.channel, CRASH)
        await world.answer(world.channel, ts)


async def test_an_event_whose_first_delivery_never_came_is_worked_from_its_retry(world: World) -> None:
    async with world.bot():
        world.slack.hear_events = False
        ts = await world.ann.mention(world.channel, CRASH)
        message = world.channel.message(ts)
        assert message is not None
        event = {**message, "channel": world.channel.id, "channel_type": "channel", "event_ts": ts}
        body = {"team_id": world.team.id, "event": event, "type": "event_callback", "event_id": "Ev9", "event_time": 1}
        assert (await world.slack.deliver("events_api", body, retry=1, reason="http_timeout"))[0] == 200
        await world.answer(world.channel, ts)


async def test_an_event_of_a_kind_that_nobody_works_is_acknowledged(world: World) -> None:
    async with world.bot():
        for kind in ("channel_rename", "reaction_added", "team_join", "file_shared", "app_rate_limited"):
            ack = await world.slack.emit(world.team, {"type": kind, "user": world.ann.id, "event_ts": "1.1"})
            assert (ack.status, ack.tries) == (200, 1)
        for subtype in ("channel_join", "channel_topic", "message_replied", "pinned_item", "assistant_app_thread"):
            event = {"type": "message", "subtype": subtype, "channel": world.channel.id, "user": world.ann.id, "text": CRASH, "ts": "171.1"}
            assert (await world.slack.emit(world.team, event | {"channel_type": "channel", "event_ts": "171.1"})).status == 200
        await world.quiet()
        assert world.answers(world.channel) == []


async def test_a_control_that_is_not_known_is_acknowledged_and_does_nothing(world: World) -> None:
    async with world.bot():
        ts = await world.ann.mention(world.channel, CRASH)
        answer = await world.answer(world.channel, ts)
        await world.quiet()
        button = {"type": "button", "action_id": "of another time", "value": "x", "text": {"type": "plain_text", "text": "x"}}
        old = {**answer, "blocks": [{"type": "actions", "elements": [button]}]}
        ack = await world.ann.click(world.channel, old, "of another time")
        assert ack.status == 200
        await world.quiet()
        assert (
            await world.slack.deliver("interactive", {"type": "block_suggestion", "team": {"id": world.team.id}, "user": {"id": "U1"}})
        )[0] == 200
        assert (
            await world.slack.deliver(
                "interactive", {"type": "view_closed", "team": {"id": world.team.id}, "user": {"id": "U1"}, "view": {"id": "V1"}}
            )
        )[0] == 200


@pytest.fixture
def socket_world(http_world: World) -> World:
    http_world.slack.transport = "socket"
    return http_world


@pytest.mark.parametrize(("reason", "notice"), [("warning", 1.0), ("refresh_requested", 0.0), ("too_many_websockets", 0.0)])
async def test_a_connection_is_made_again_before_slack_ends_the_old_one(socket_world: World, reason: str, notice: float) -> None:
    world = socket_world
    async with world.bot():
        await world.slack.disconnect(reason, notice=notice)
        await world.slack.connected()
        ts = await world.ann.mention(world.channel, CRASH)
        await world.answer(world.channel, ts)
        assert len(world.answers(world.channel)) == 1


async def test_a_connection_that_breaks_without_a_word_is_made_again(socket_world: World) -> None:
    world = socket_world
    async with world.bot():
        world.slack.cut()
        await world.slack.connected()
        ts = await world.ann.mention(world.channel, CRASH)
        await world.answer(world.channel, ts)


async def test_a_connection_that_ends_before_slacks_hello_is_made_again(socket_world: World) -> None:
    world = socket_world
    async with world.bot():
        world.slack.fault("hello", "close", times=3)
        await world.slack.disconnect()
        await world.slack.connected()
        assert [fault.times for fault in world.slack.faults] == [0]
        await world.answer(world.channel, await world.ann.mention(world.channel, CRASH))


async def test_socket_mode_switched_off_and_on_again_needs_no_restart_and_leaves_no_trace(
    socket_world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world = socket_world
    async with world.bot():
        world.slack.linked = False
        await world.slack.disconnect("link_disabled")
        await asyncio.sleep(2.0)
        assert not await world.door.ready()
        world.slack.linked = True
        await world.slack.connected()
        ts = await world.ann.mention(world.channel, CRASH)
        await world.answer(world.channel, ts)
    assert "link_disabled" in caplog.text
    assert "Traceback" not in caplog.text


async def test_a_message_of_another_workspaces_member_in_a_shared_channel_comes_through_ours(world: World) -> None:
    async with world.bot():
        world.channel.shared = True
        text = f"<@{world.team.bot_user}> {NO_RANK}"
        event = {
            "type": "message",
            "channel": world.channel.id,
            "channel_type": "channel",
            "user": "U0EVE",
            "text": text,
            "ts": world.slack.clock.ts(),
        }
        event |= {"team": "TFOREIGN", "user_team": "TFOREIGN", "source_team": "TFOREIGN", "event_ts": event["ts"]}
        world.channel.messages.append(event)
        ack = await world.slack.emit(world.team, event, sent_from="TFOREIGN")
        assert ack.status == 200
        answer = await world.answer(world.channel, event["ts"])
        assert "does not show on which rank" in words(answer)
        incident = await world.store.load(world.team.id, "D-0001")
        assert incident is not None
