"""kill -9 at any moment: after the event is stored, while Slack is being called, after the answer is posted."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from bot.slack.workers import LEASE
from bot.store.store import open_store
from tests.slack.lives import Life, born
from tests.slack.material import CRASH
from tests.slack.world import World, words


@asynccontextmanager
async def process(world: World) -> AsyncIterator[Life]:
    slack = world.slack
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    slack.events_url = f"http://127.0.0.1:{port}/slack/events"
    more = [slack.app_token] if slack.transport == "socket" else []
    before = slack.links_made
    bot = await born([slack.api_url, world.url, world.team.token, slack.signing_secret, str(port), str(LEASE), *more])
    try:
        await slack.linked_anew(before)
        yield bot
    finally:
        await bot.kill()


async def test_an_outcome_clicked_before_the_end_is_recorded_once(world: World) -> None:
    async with process(world) as bot:
        ts = await world.ann.mention(world.channel, CRASH)
        answer = await world.answer(world.channel, ts)
        await world.until(lambda: [r for r in world.slack.reactions if not r[3]])
        world.slack.fault("chat.update", "slow", value=30.0)
        await world.ann.click(world.channel, answer, "same")
        await world.until(lambda: world.slack.called("chat.update"))  # kept by now, and not shown yet
        await bot.kill()
    async with process(world):
        await world.answer(world.channel, ts, lambda said: "Marked: same error" in said)
    store = await open_store(world.url)
    kept = await store.load(world.team.id, "D-0001")
    await store.close()
    assert kept is not None
    assert [trial.result for trial in kept.trials] == ["same", None]
    assert [c.text for c in kept.contributions if c.kind == "outcome"] == ["same"]


async def test_a_command_is_answered_though_the_process_ended_as_soon_as_it_was_acknowledged(world: World) -> None:
    async with process(world) as bot:
        ack = await world.ann.slash(world.channel, "help")
        await bot.kill()
        assert ack.status == 200
        assert ack.seconds < 0.5
    async with process(world):
        shown = lambda: [one for one in world.ann.sees(world.channel) if "Paste or upload" in words(one)]  # noqa: E731
        await world.until(shown)


async def test_a_message_is_diagnosed_though_the_process_ended_while_its_view_was_opened(world: World) -> None:
    async with process(world) as bot:
        ts = await world.bob.say(world.channel, CRASH)
        world.slack.fault("views.open", "late", value=90.0)
        message = world.channel.message(ts)
        assert message is not None
        ack = await world.ann.shortcut(world.channel, message)
        await bot.kill()
        assert (ack.status, ack.seconds < 0.5) == (200, True)
    async with process(world):
        await world.answer(world.channel, ts, lambda said: "Rank 3 of 4" in said)
        await world.until(lambda: [one for one in world.ann.sees(world.channel) if "Answered in the thread" in words(one)])


MOMENTS = {
    "while the eyes are put on": ("reactions.add", "slow", 30.0),
    "while Slack takes its time to post": ("chat.postMessage", "slow", 4.0),  # carried out when the next life has already begun
    "after Slack has posted, before the bot hears of it": ("chat.postMessage", "late", 30.0),
    "after the answer is posted": None,
}


@pytest.mark.parametrize("moment", MOMENTS)
async def test_the_answer_comes_once_and_soon_after_the_restart(world: World, moment: str) -> None:
    slack = world.slack
    world.expected_refusals = {"already_reacted", "no_reaction"}  # the first life may have come that far
    fault = MOMENTS[moment]
    if fault is not None:
        slack.fault(fault[0], fault[1], value=fault[2])
    async with process(world) as bot:
        ts = await world.ann.mention(world.channel, CRASH)
        await world.until(lambda: slack.called(fault[0]) if fault else world.answers(world.channel))
        if fault is not None and fault[1] == "late":
            await world.until(lambda: world.answers(world.channel))
        await bot.kill()
    async with process(world):
        # Sooner than the dead one's lease ends: its process is gone, and this one can tell.
        await world.until(lambda: len([r for r in slack.reactions if not r[3]]) == 1, 15)
        answer = await world.answer(world.channel, ts)
        await asyncio.sleep(1.5)
        assert len(world.answers(world.channel)) == 1
        assert "Rank 3 of 4" in words(answer)
