"""Nothing lost and nothing doubled: retries, restarts, refusals, rate limits, a locked database."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from bot.slack import workers
from bot.store.store import Store
from bot.usecases.desk import Desk
from bot.usecases.diagnose import diagnose
from bot.usecases.reply import Reply
from tests.fakeslack import Person
from tests.slack import material
from tests.slack.material import CRASH, NO_RANK, SECRETS
from tests.slack.test_workspaces import install, many
from tests.slack.world import World, asks, words


def _event(world: World, ts: str) -> dict[str, object]:
    message = world.channel.message(ts)
    assert message is not None
    return {
        **{k: v for k, v in message.items() if k != "reactions"},
        "channel": world.channel.id,
        "channel_type": "channel",
        "event_ts": ts,
    }


@asynccontextmanager
async def locked(world: World) -> AsyncIterator[None]:
    """Another process holds the database's write lock."""
    other = sqlite3.connect(world.folder / "slack.db", isolation_level=None, check_same_thread=False)
    await asyncio.to_thread(other.execute, "BEGIN IMMEDIATE")  # beside the loop: the bot may hold the lock just now
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


async def test_the_same_event_three_times_at_once_and_after_a_restart_is_one_answer(world: World) -> None:
    async with world.bot():
        ts = await world.ann.mention(world.channel, CRASH)
        event = _event(world, ts)
        await asyncio.gather(*(world.slack.emit(world.team, event, "Ev0001") for _ in range(3)))
        await world.answer(world.channel, ts)
        await world.quiet()
    async with world.bot():
        await world.slack.emit(world.team, event, "Ev0001")
        await world.slack.emit(world.team, event, "Ev0002")
        await world.quiet()
        assert len(world.answers(world.channel)) == 1
        incident = await world.store.load(world.team.id, "D-0001")
        assert incident is not None
        assert len(incident.contributions) == 1
        assert await world.store.load(world.team.id, "D-0002") is None


async def test_an_event_under_a_locked_database_is_not_acknowledged_and_slacks_retry_brings_it(world: World) -> None:
    world.slack.retry_after = (0.2, 3.0, 5.0)
    async with world.bot():
        async with locked(world):
            sent = asyncio.create_task(world.ann.mention(world.channel, CRASH))
            await asyncio.sleep(2.0)
            assert world.answers(world.channel) == []
        ts = await sent
        await world.answer(world.channel, ts)
        await world.quiet()
        assert len(world.answers(world.channel)) == 1


async def test_a_slash_command_is_acknowledged_within_half_a_second_under_a_locked_database(world: World) -> None:
    async with world.bot():
        async with locked(world):
            ack = await world.ann.slash(world.channel, "size llama-70b-fp8 gpu=H100")
            assert ack.status == 200
            assert ack.seconds < 0.5
            assert ack.body["text"] == "Working it out…"
            await asyncio.sleep(2.0)
        shown = await world.until(lambda: world.ann.sees(world.channel))
        assert "562,736" in words(shown[0])
        assert (await world.ann.slash(world.channel, "help")).body["text"] == "Here is what I can do."


async def test_a_slash_command_is_acknowledged_within_half_a_second_while_a_large_log_is_read(world: World) -> None:
    async with world.bot():
        log = world.ann.file("server.log", ("INFO 11-30 04:10:02 [x.py:1] nothing of interest here\n" * 370_000 + CRASH).encode())
        assert len(log.data) > 19_000_000
        sent = asyncio.create_task(world.ann.mention(world.channel, "please", files=[log]))
        seconds = []
        for _ in range(5):
            ack = await world.bob.slash(world.channel, "help")
            seconds.append(ack.seconds)
            await asyncio.sleep(0.3)
        ts = await sent
        await world.until(lambda: world.answers(world.channel, ts), 60)
        assert max(seconds) < 0.5, seconds


async def test_a_click_under_a_locked_database_fails_visibly(world: World) -> None:
    async with world.bot():
        ts = await world.ann.mention(world.channel, CRASH)
        answer = await world.answer(world.channel, ts)
        await world.quiet()
        async with locked(world):
            ack = await world.ann.click(world.channel, answer, "fixed")
            assert ack.status != 200, "Slack shows that the click failed"
            shown = await world.until(lambda: world.ann.sees(world.channel))
            assert "could not be kept" in words(shown[-1])
        incident = await world.store.load(world.team.id, "D-0001")
        assert incident is not None
        assert [trial.result for trial in incident.trials] == [None]


async def test_a_submission_under_a_locked_database_says_so_in_the_form(world: World) -> None:
    async with world.bot():
        await world.ann.global_shortcut()
        view = await world.until(lambda: world.ann.view() if world.slack.views else None)
        async with locked(world):
            ack = await world.ann.submit(view, {"text": CRASH})
        assert ack.seconds < 3.0
        assert "could not be kept" in ack.body["errors"]["log"]


@pytest.mark.parametrize(
    "fault",
    [("ratelimited", 1), ("status", 500), ("status", 503), ("error", "invalid_blocks"), ("error", "msg_blocks_too_long"), ("drop", None)],
)
@pytest.mark.parametrize("method", ["chat.postMessage", "chat.update"])
async def test_an_answer_arrives_once_whatever_slack_does_first(world: World, method: str, fault: tuple[str, object]) -> None:
    async with world.bot():
        ts = await world.ann.mention(world.channel, NO_RANK)
        if method == "chat.update":
            await world.answer(world.channel, ts)
            await world.quiet()
            world.slack.fault(method, fault[0], value=fault[1])
            await world.ann.say(world.channel, "rank 3", thread=ts)
            await world.answer(world.channel, ts, lambda said: "Rank 3 ran out" in said)
        await world.quiet()
        assert len(world.answers(world.channel)) == 1


@pytest.mark.parametrize(
    "fault", [("ratelimited", 1), ("status", 500), ("error", "invalid_blocks"), ("error", "msg_blocks_too_long"), ("drop", None)]
)
async def test_the_first_answer_is_posted_once_whatever_slack_does_first(world: World, fault: tuple[str, object]) -> None:
    async with world.bot():
        world.slack.fault("chat.postMessage", fault[0], value=fault[1])
        ts = await world.ann.mention(world.channel, CRASH)
        answer = await world.answer(world.channel, ts)
        await world.quiet()
        assert len(world.answers(world.channel)) == 1
        assert "--gpu-memory-utilization 0.85" in words(answer)
        assert answer["text"]


async def test_the_wait_that_slack_asks_for_is_kept(http_world: World) -> None:
    world = http_world
    async with world.bot():
        world.slack.fault("chat.postMessage", "ratelimited", value=2)
        ts = await world.ann.mention(world.channel, CRASH)
        await world.answer(world.channel, ts)
        first, second = world.slack.called("chat.postMessage")
        assert second.at - first.at >= 2.0


async def test_a_layout_refused_twice_still_leaves_a_plain_answer(world: World) -> None:
    async with world.bot():
        world.slack.fault("chat.postMessage", "error", times=2, value="invalid_blocks")
        ts = await world.ann.mention(world.channel, CRASH)
        answer = await world.answer(world.channel, ts)
        assert "Suggested change: lower --gpu-memory-utilization to 0.85" in answer["text"]


async def test_slack_away_for_a_while_delays_the_answer_only(world: World) -> None:
    async with world.bot():
        world.slack.fault("chat.postMessage", "status", times=3, value=502)
        ts = await world.ann.mention(world.channel, CRASH)
        await world.until(lambda: world.answers(world.channel, ts), 30)
        await world.quiet(30)
        assert len(world.answers(world.channel)) == 1


async def test_work_in_one_thread_is_done_in_order(world: World) -> None:
    async with world.bot():
        ts = await world.ann.mention(world.channel, NO_RANK)
        for number in range(1, 6):
            await world.bob.say(world.channel, f"rank {number}", thread=ts)
        await world.quiet()
        incident = await world.store.load(world.team.id, "D-0001")
        assert incident is not None
        assert [c.text for c in incident.contributions][1:] == [f"rank={number}" for number in range(1, 6)]


async def test_a_failure_that_repeats_is_said_in_the_end_and_the_thread_goes_on(http_world: World) -> None:
    world = http_world
    failures = []

    async def broken(*given: object, **more: object) -> object:
        failures.append(1)
        raise RuntimeError("hf_QWERTYuiopASDFghjklZXCVbnm123456 must not be said")

    from bot.slack import workers

    usual = workers.TRIES
    workers.TRIES = 2
    try:
        async with world.bot(asks=asks(diagnose=broken)):
            await world.ann.mention(world.channel, CRASH)
            shown = await world.until(lambda: world.ann.sees(world.channel), 15)
            assert "could not be worked on (RuntimeError" in shown[0]["text"]
            assert "hf_" not in words(shown[0])
            assert len(failures) == 2
    finally:
        workers.TRIES = usual


async def test_a_connection_that_slack_takes_back_is_made_again(http_world: World) -> None:
    world = http_world
    world.slack.transport = "socket"
    async with world.bot():
        await world.slack.disconnect()
        await world.slack.connected()
        ts = await world.ann.mention(world.channel, CRASH)
        await world.answer(world.channel, ts)


async def test_a_command_that_was_acknowledged_just_before_the_end_is_answered_after_the_restart(http_world: World) -> None:
    world = http_world
    async with world.bot():
        await world.ann.slash(world.channel, "help")
    async with world.bot():
        shown = await world.until(lambda: world.ann.sees(world.channel))
        assert "Paste or upload" in words(shown[0])
        await world.quiet()
        assert len(world.ann.sees(world.channel)) == 1


async def test_a_command_that_cannot_be_answered_is_said_within_seconds(http_world: World) -> None:
    world = http_world

    async def broken(*given: object, **more: object) -> object:
        raise RuntimeError("broken")

    async with world.bot(asks=asks(size_words=broken)):
        await world.ann.slash(world.channel, "size llama gpu=H100")
        shown = await world.until(lambda: world.ann.sees(world.channel), 15)
        assert "could not be worked on (RuntimeError" in shown[0]["text"]


@pytest.mark.parametrize("way", ["slash", "mention", "click"])
async def test_an_outcome_that_is_tried_again_is_recorded_once(world: World, way: str) -> None:
    world.expected_refusals = {"fatal_error"}
    async with world.bot():
        ts = await world.ann.mention(world.channel, CRASH)
        answer = await world.answer(world.channel, ts)
        await world.quiet()
        world.slack.fault("chat.update", "error", value="fatal_error")  # after the outcome was kept, before it is shown
        if way == "slash":
            await world.ann.slash(world.channel, "outcome D-0001 same")
        elif way == "mention":
            await world.ann.mention(world.channel, "outcome same", thread=ts)
        else:
            await world.ann.click(world.channel, answer, "same")
        await world.answer(world.channel, ts, lambda said: "Marked: same error" in said)
        await world.quiet()
        kept = await world.store.load(world.team.id, "D-0001")
        assert kept is not None
        assert [trial.result for trial in kept.trials] == ["same", None], "the next change was not tried yet"
        assert [c.text for c in kept.contributions if c.kind == "outcome"] == ["same"]


async def test_an_undo_that_is_tried_again_takes_one_outcome_back(world: World) -> None:
    world.expected_refusals = {"fatal_error"}
    async with world.bot():
        ts = await world.ann.mention(world.channel, CRASH)
        await world.answer(world.channel, ts)
        for said in ("outcome same", "outcome fixed"):
            await world.ann.mention(world.channel, said, thread=ts)
            await world.quiet()
        world.slack.fault("chat.update", "error", value="fatal_error")
        await world.ann.click(world.channel, world.answers(world.channel, ts)[0], "undo")
        await world.until(lambda: len(world.slack.called("chat.update")) >= 4)
        await world.quiet()
        kept = await world.store.load(world.team.id, "D-0001")
        assert kept is not None
        assert [trial.result for trial in kept.trials] == ["same", None]


async def test_an_edit_that_is_tried_again_still_brings_its_new_words(world: World) -> None:
    broken = True

    async def once(*given: Any, **more: Any) -> Any:
        nonlocal broken
        if broken and "capture_model" in str(given):
            broken = False
            raise RuntimeError("a worker process died")
        return await material.judge(*given, **more)

    desk = Desk(world.settings(), SimpleNamespace, once, lambda: datetime.now(UTC))  # type: ignore[arg-type]
    async with world.bot(desk=desk):
        root = await world.ann.mention(world.channel, NO_RANK)
        await world.answer(world.channel, root)
        reply = await world.bob.say(world.channel, f"{NO_RANK} and more", thread=root)
        await world.quiet()
        await world.bob.edit(world.channel, reply, CRASH)
        await world.answer(world.channel, root, lambda said: "Rank 3 of 4" in said)


def dies_after_keeping() -> Callable[..., Awaitable[Reply]]:
    """The use case, and then, once, the end of the process that called it."""
    died = False

    async def kept(*given: Any, **more: Any) -> Reply:
        nonlocal died
        reply = await diagnose(*given, **more)
        if not died:
            died = True
            raise RuntimeError("killed")
        return reply

    return kept


async def test_a_form_that_is_tried_again_keeps_its_paste_once(world: World) -> None:
    async with world.bot(asks=asks(diagnose=dies_after_keeping())):
        await world.ann.global_shortcut()
        view = await world.until(lambda: world.slack.views and world.ann.view())
        direct = world.slack.direct(world.team, world.ann.id)
        await world.ann.submit(view, {"text": CRASH})
        await world.until(lambda: len(world.answers(direct)) == 2)
        await world.quiet()
        kept = await world.store.load(world.team.id, "D-0001")
        assert kept is not None
        assert [c.kind for c in kept.contributions] == ["paste"]


async def test_while_slack_is_out_of_reach_nothing_is_given_up(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "TRIES", 1)
    monkeypatch.setattr("bot.slack.outbox.TRIES", 1)
    monkeypatch.setattr("bot.slack.seen.SETTLES", 0.2)
    monkeypatch.setattr("bot.slack.outbox.SETTLES", 0.2)
    world.expected_refusals = {"internal_error"}
    async with world.bot():
        world.slack.fault("chat.postMessage", "status", times=2, value=502)
        ts = await world.ann.mention(world.channel, CRASH)
        await world.answer(world.channel, ts, lambda said: "Rank 3 of 4" in said)
        await world.quiet()
        assert len(world.answers(world.channel, ts)) == 1


async def test_a_refused_file_is_told_once_however_often_the_answer_is_tried(world: World) -> None:
    world.expected_refusals = {"fatal_error"}
    async with world.bot():
        ts = await world.ann.mention(world.channel, NO_RANK)
        await world.answer(world.channel, ts)
        await world.quiet()
        world.slack.fault("chat.update", "error", value="fatal_error")
        gone = world.ann.file("too-large.log", b"x", size=30 * 2**20)
        await world.ann.say(world.channel, CRASH, thread=ts, files=[gone])
        await world.answer(world.channel, ts, lambda said: "Rank 3 of 4" in said)
        await world.quiet()
        assert len([one for one in world.ann.sees(world.channel) if "too-large.log" in one["text"]]) == 1


@pytest.mark.parametrize("way", ["slash", "mention", "refused file and secret", "closed channel"])
async def test_words_to_one_person_are_said_once_though_their_delivery_is_tried_again(
    world: World, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    finish, ended = Store.finish, []

    async def not_yet(store: Store, delivery: int) -> bool:
        if not ended:
            ended.append(delivery)
            raise OSError("the process ended here")
        return await finish(store, delivery)

    monkeypatch.setattr(Store, "finish", not_yet)
    async with world.bot():
        if way == "slash":
            await world.ann.slash(world.channel, "help")
        elif way == "mention":
            await world.ann.mention(world.channel, "history")
        elif way == "closed channel":
            world.slack.fault("chat.postMessage", "error", times=9, value="restricted_action")
            await world.ann.mention(world.channel, CRASH)
        else:
            gone = world.ann.file("too-large.log", b"x", size=30 * 2**20)
            await world.ann.mention(world.channel, f"{SECRETS}{CRASH}", files=[gone])
        await world.until(lambda: ended)
        await world.quiet()
        said = [words(one) for one in world.ann.sees(world.channel)]
        assert len(said) == (2 if way == "refused file and secret" else 1), said


async def test_a_channel_that_slack_holds_back_holds_up_no_other(world: World) -> None:
    other = world.slack.channel(world.team, "gpu-more", members=[world.ann.id])
    async with world.bot():
        world.slack.fault("chat.postMessage", "ratelimited", value=6)
        for number in range(workers.WORKERS + 2):
            await world.bob.mention(world.channel, f"{NO_RANK} {number}")
        await world.until(lambda: len(world.slack.called("reactions.add")) >= workers.WORKERS)
        ts = await world.ann.mention(other, CRASH)
        await world.answer(other, ts)
        assert len(world.answers(world.channel)) < workers.WORKERS + 2, "some are held back still"
        await world.until(lambda: len(world.answers(world.channel)) == workers.WORKERS + 2)


async def test_a_worker_outlives_what_nobody_foresaw(http_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world = http_world
    async with world.bot():
        claim, failures = world.store.claim, [RuntimeError("unforeseen")] * (workers.WORKERS + 1)

        async def broken(*given: Any) -> Any:
            if failures:
                raise failures.pop()
            return await claim(*given)

        monkeypatch.setattr(world.store, "claim", broken)
        ts = await world.ann.mention(world.channel, CRASH)
        await world.answer(world.channel, ts)
        assert failures == []


@pytest.mark.parametrize("kept", ["not at all", "before it is worked"])
async def test_a_message_that_comes_after_its_deletion_is_not_read(world: World, kept: str) -> None:
    """Its first delivery may have failed while the app was down, and Slack sends it again a minute later."""
    async with world.bot():
        ts = await world.ann.say(world.channel, "something before")
        message = {"type": "message", "user": world.ann.id, "text": f"<@{world.team.bot_user}> {CRASH}", "ts": world.slack.clock.ts()}
        message |= {"channel": world.channel.id, "channel_type": "channel", "team": world.team.id}
        gone = {"type": "message", "subtype": "message_deleted", "channel": world.channel.id, "channel_type": "channel", "hidden": True}
        gone |= {"deleted_ts": message["ts"], "ts": world.slack.clock.ts(), "previous_message": message}
        await world.slack.emit(world.team, gone)
        if kept == "not at all":
            await world.quiet()
        await world.slack.emit(world.team, message)
        await world.slack.emit(world.team, message | {"type": "app_mention"})
        await world.quiet()
        assert world.answers(world.channel) == []
        assert await world.store.load(world.team.id, "D-0001") is None
        assert ts not in [call.args.get("timestamp") for call in world.slack.called("reactions.add")]


@pytest.mark.parametrize("fault", [("error", "internal_error"), ("status", 500), ("ratelimited", 1)])
async def test_what_comes_before_slack_says_who_the_bot_is_is_not_lost(world: World, fault: tuple[str, object]) -> None:
    world.slack.fault("auth.test", fault[0], times=3, value=fault[1])
    async with world.bot():
        ts = await world.ann.mention(world.channel, CRASH)
        await world.answer(world.channel, ts)
        await world.quiet()
        assert len(world.answers(world.channel)) == 1
        assert max(ack.tries for _, ack in world.slack.deliveries) > 1


@pytest.mark.parametrize("fault", [("error", "internal_error"), ("status", 500)])
async def test_a_socket_that_slack_cannot_give_yet_is_asked_for_again(world: World, fault: tuple[str, object]) -> None:
    world.slack.fault("apps.connections.open", fault[0], value=fault[1])
    async with world.bot():
        await world.answer(world.channel, await world.ann.mention(world.channel, CRASH))


async def test_a_token_that_cannot_be_renewed_yet_is_used_on(http_world: World) -> None:
    world, slack = http_world, http_world.slack
    slack.manifest["settings"]["token_rotation_enabled"] = True
    slack.token_life = 3_600
    async with world.bot(many(world)):
        await install(world)
        team = next(team for team in slack.teams.values() if team.name.startswith("Installed"))
        ann, before = Person(slack, team), team.token
        channel = slack.channel(team, "help", members=[ann.id])
        slack.fault("oauth.v2.access", "status", times=99, value=503)
        ts = await ann.mention(channel, CRASH)
        await world.answer_in(team, channel, ts)
        assert team.token == before
