"""A call to Slack that is under way while its worker loses the claim, dies, or never hears the end: one message stands all the same."""

import asyncio

import pytest

from bot.slack import calls, outbox, seen
from bot.store.deliveries import HELD
from bot.store.store import Store
from tests.slack.material import CRASH, SECRETS
from tests.slack.world import World, words


@pytest.fixture
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first worker of a delivery cannot renew its claim, as when its way to the database is cut."""
    renew = Store.renew

    async def not_now(store: Store, delivery: int, lease_seconds: float = 60) -> bool:
        held = HELD.get()
        if held is not None and held[1] == 1:
            raise OSError("no way to the database")
        return await renew(store, delivery, lease_seconds)

    monkeypatch.setattr(Store, "renew", not_now)


async def test_a_post_that_outlives_its_claim_is_found_by_the_heir(world: World, forgetful: None) -> None:
    world.slack.fault("chat.postMessage", "slow", value=3.0)
    async with world.bot(lease=1.0):
        ts = await world.ann.mention(world.channel, CRASH)
        await world.answer(world.channel, ts)
        await world.quiet()
        assert len(world.slack.called("conversations.replies")) > 1, "it was looked for"
        assert len(world.slack.called("chat.postMessage")) == 1
        kept = await world.store.reply_of(world.team.id, world.channel.id, ts, "diagnosis")
        assert kept is not None
        assert kept.ts == world.answers(world.channel)[0]["ts"]


async def test_a_post_that_comes_when_the_heir_no_longer_waited_is_taken_back(
    world: World, forgetful: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seen, "SETTLES", 1.5)
    world.slack.fault("chat.postMessage", "slow", value=4.0)
    async with world.bot(lease=1.0):
        ts = await world.ann.mention(world.channel, CRASH)
        await world.until(lambda: world.slack.called("chat.delete"))
        await world.quiet()
        assert len(world.slack.called("chat.postMessage")) == 2
        (left,) = world.answers(world.channel)
        kept = await world.store.reply_of(world.team.id, world.channel.id, ts, "diagnosis")
        assert kept is not None
        assert kept.ts == left["ts"]


async def test_a_post_without_an_end_is_looked_for_before_it_is_made_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "POST_SECONDS", 1.0)
    world.slack.fault("chat.postMessage", "slow", value=3.0)
    async with world.bot():
        ts = await world.ann.mention(world.channel, CRASH)
        await world.answer(world.channel, ts)
        await world.quiet()
        assert len(world.slack.called("chat.postMessage")) == 1


async def test_where_slack_gives_no_marks_back_the_text_tells(world: World) -> None:
    world.slack.gives_metadata = False
    world.slack.fault("chat.postMessage", "drop")
    async with world.bot():
        ts = await world.ann.mention(world.channel, CRASH)
        await world.answer(world.channel, ts)
        await world.quiet()
        assert len(world.answers(world.channel)) == 1
        assert len(world.slack.called("chat.postMessage")) == 1


async def test_an_answer_far_down_a_long_thread_is_found(http_world: World) -> None:
    world = http_world
    async with world.bot():
        ts = await world.ann.say(world.channel, "it crashed")
        for number in range(450):
            world.channel.messages.append(
                {"type": "message", "user": world.bob.id, "text": f"me too {number}", "ts": world.slack.clock.ts(), "thread_ts": ts}
            )
        world.slack.fault("chat.postMessage", "drop")
        await world.ann.mention(world.channel, CRASH, thread=ts)
        await world.quiet()
        assert len(world.slack.called("chat.postMessage")) == 1


async def test_evidence_is_uploaded_once_though_the_end_was_not_heard(world: World) -> None:
    async with world.bot():
        ts = await world.ann.mention(world.channel, CRASH)
        answer = await world.answer(world.channel, ts)
        await world.quiet()
        world.slack.fault("files.completeUploadExternal", "drop")
        await world.ann.click(world.channel, answer, "evidence")
        await world.quiet(30)
        assert len([m for m in world.answers(world.channel) if m.get("files")]) == 1
        await world.ann.click(world.channel, answer, "evidence")
        await world.until(
            lambda: "already in the thread" in words(world.ann.sees(world.channel)[-1]) if world.ann.sees(world.channel) else None
        )


async def test_a_word_in_a_direct_message_is_said_once(world: World) -> None:
    async with world.bot():
        await world.ann.mention(world.channel, "hello")  # so that the next fault meets the second post alone
        await world.quiet()
        direct = world.slack.direct(world.team, world.ann.id)
        ts = await world.ann.dm(CRASH)
        await world.answer(direct, ts)
        await world.quiet()
        world.slack.fault("chat.postMessage", "drop")
        await world.ann.dm(SECRETS + CRASH, thread=ts)
        await world.quiet()
        await asyncio.sleep(0.2)
        told = [m for m in world.answers(direct) if "hidden before anything was stored" in words(m)]
        assert len(told) == 1


async def test_a_post_that_slack_carries_out_long_after_it_was_given_up_is_taken_back(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "POST_SECONDS", 0.5)
    monkeypatch.setattr(seen, "SETTLES", 1.0)
    monkeypatch.setattr(outbox, "SETTLES", 1.0)
    monkeypatch.setattr(outbox, "LOST", 1.0)
    monkeypatch.setattr(outbox, "LOOK_BACK", (4.0,))
    world.slack.fault("chat.postMessage", "slow", value=3.0)
    async with world.bot():
        ts = await world.ann.mention(world.channel, CRASH)
        await world.until(lambda: len(world.answers(world.channel, ts)) == 2)
        await world.until(lambda: world.slack.called("chat.delete"))
        (left,) = world.answers(world.channel, ts)
        kept = await world.store.reply_of(world.team.id, world.channel.id, ts, "diagnosis")
        assert kept is not None
        assert kept.ts == left["ts"]
