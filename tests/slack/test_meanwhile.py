"""Two things at once: clicks of two people, an edit under an answer, a removal under work, Slack holding back whatever it is asked."""

import asyncio
import sqlite3
import time

import pytest

from tests.fakeslack.methods import METHODS
from tests.slack.material import CRASH, NO_RANK
from tests.slack.test_exactly_once import locked
from tests.slack.world import World, words


async def test_of_two_outcomes_that_are_clicked_at_once_one_counts_and_the_other_person_is_told(world: World) -> None:
    async with world.bot():
        ts = await world.ann.mention(world.channel, CRASH)
        answer = await world.answer(world.channel, ts)
        await world.quiet()
        await asyncio.gather(world.ann.click(world.channel, answer, "fixed"), world.bob.click(world.channel, answer, "same"))
        await world.quiet()
        kept = await world.store.load(world.team.id, "D-0001")
        assert kept is not None
        (outcome,) = [c for c in kept.contributions if c.kind == "outcome"]
        other = world.bob if outcome.author == world.ann.id else world.ann
        assert [one["user"] for one in world.channel.ephemerals] == [other.id]
        assert "already marked" in other.sees(world.channel)[0]["text"]
        assert len(world.answers(world.channel, ts)) == 1


@pytest.mark.parametrize("second", ["ann", "bob"])
async def test_undo_that_is_clicked_twice_takes_one_outcome_back(world: World, second: str) -> None:
    async with world.bot():
        ts = await world.ann.mention(world.channel, CRASH)
        answer = await world.answer(world.channel, ts)
        for count in (1, 2):
            await world.ann.click(world.channel, answer, "same")
            await world.quiet()
            kept = await world.store.load(world.team.id, "D-0001")
            assert kept is not None
            assert [trial.result for trial in kept.trials].count("same") == count
        before = {**answer, "blocks": list(answer["blocks"])}
        await world.ann.click(world.channel, before, "undo")
        await getattr(world, second).click(world.channel, before, "undo")
        await world.quiet()
        kept = await world.store.load(world.team.id, "D-0001")
        assert kept is not None
        assert [trial.result for trial in kept.trials][:2] == ["same", None]
        (told,) = getattr(world, second).sees(world.channel)
        assert told["text"] == "That outcome was taken back before, or another one came after it."


async def test_an_undo_of_an_older_message_takes_no_newer_outcome_back(world: World) -> None:
    async with world.bot():
        ts = await world.ann.mention(world.channel, CRASH)
        answer = await world.answer(world.channel, ts)
        await world.ann.click(world.channel, answer, "same")
        await world.quiet()
        before = {**answer, "blocks": list(answer["blocks"])}
        await world.ann.click(world.channel, answer, "undo")
        await world.quiet()
        await world.bob.click(world.channel, answer, "fixed")
        await world.quiet()
        await world.ann.click(world.channel, before, "undo")
        await world.quiet()
        kept = await world.store.load(world.team.id, "D-0001")
        assert kept is not None
        assert kept.trials[0].result == "fixed"


async def test_an_answer_does_not_wait_until_slack_lets_the_eyes_be_put_on(world: World) -> None:
    async with world.bot():
        for _ in range(2):
            world.slack.fault("reactions.add", "ratelimited", value=40)
        for text in (CRASH, NO_RANK):
            begun = time.monotonic()
            ts = await world.ann.mention(world.channel, text)
            await world.answer(world.channel, ts)
            assert time.monotonic() - begun < 30
        assert len(world.slack.called("reactions.add")) == 1, "Slack asked not to"


async def test_a_message_that_is_edited_while_its_answer_is_posted_is_answered_as_it_stands(world: World) -> None:
    async with world.bot():
        world.slack.fault("chat.postMessage", "slow", value=2.0)
        ts = await world.ann.mention(world.channel, NO_RANK)
        await world.until(lambda: world.slack.called("chat.postMessage"))
        await world.ann.edit(world.channel, ts, f"<@{world.team.bot_user}> {CRASH}")
        await world.answer(world.channel, ts, lambda said: "Rank 3 of 4" in said)
        await world.quiet()
        assert len(world.answers(world.channel, ts)) == 1


async def test_a_workspace_that_removes_the_app_while_a_log_is_answered_leaves_nothing_of_it(world: World) -> None:
    async with world.bot():
        world.slack.fault("chat.postMessage", "slow", value=2.0)
        await world.ann.mention(world.channel, CRASH)
        await world.until(lambda: world.slack.called("chat.postMessage"))
        await world.slack.emit(world.team, {"type": "app_uninstalled"})
        await asyncio.sleep(3.0)
        await world.quiet()
    with sqlite3.connect(world.folder / "slack.db") as database:
        for table in ("incidents", "contributions", "diagnoses", "trials", "replies"):
            assert database.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,), table


async def test_whatever_slack_holds_back_comes_a_moment_later(world: World) -> None:
    async with world.bot():
        for method in METHODS:
            world.slack.fault(method, "ratelimited", value=1)
        ts = await world.ann.mention(world.channel, "see", files=[world.ann.file("server.log", CRASH.encode())])
        answer = await world.answer(world.channel, ts, lambda said: "Rank 3 of 4" in said)
        await world.ann.mention(world.channel, "history", thread=ts)
        await world.until(lambda: [one for one in world.ann.sees(world.channel) if "1 incident" in words(one)])
        await world.bob.click(world.channel, answer, "evidence")
        await world.until(lambda: [m for m in world.answers(world.channel, ts) if m.get("files")])
        await world.bob.click(world.channel, answer, "same")
        await world.answer(world.channel, ts, lambda said: "Marked: same error" in said)
        await world.bob.open_home()
        await world.until(lambda: world.team.homes.get(world.bob.id))
        await world.quiet()
        assert len([m for m in world.answers(world.channel, ts) if not m.get("files")]) == 1
        assert len(world.ann.sees(world.channel)) == 1


async def test_shortcuts_are_acknowledged_at_once_with_their_view_under_a_locked_database(world: World) -> None:
    async with world.bot():
        ts = await world.bob.say(world.channel, CRASH)
        message = world.channel.message(ts)
        assert message is not None
        async with locked(world):
            acks = [await world.ann.shortcut(world.channel, message), await world.bob.global_shortcut()]
            assert [ack.status for ack in acks] == [200, 200]
            assert max(ack.seconds for ack in acks) < 0.5
            await world.until(lambda: len(world.slack.views) == 2, 1)
            await asyncio.sleep(2.0)
        await world.answer(world.channel, ts, lambda said: "Rank 3 of 4" in said)
        await world.until(lambda: "Answered in the thread: D-0001." in str(world.ann.view().body))
