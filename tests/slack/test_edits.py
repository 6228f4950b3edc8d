"""An edited answer answers anew, and an edit into talk takes the answer back; wherever it was given."""

import pytest

from tests.slack.material import CRASH, NO_RANK
from tests.slack.world import World, words


@pytest.mark.parametrize(("said", "then"), [("rank 3", "rank 2"), ("3", "2"), ("gpu3 I think", "no, it was gpu 2")])
@pytest.mark.parametrize("where", ["thread", "direct"])
async def test_an_answer_that_is_edited_counts_as_it_stands(world: World, where: str, said: str, then: str) -> None:
    async with world.bot():
        if where == "thread":
            channel, root = world.channel, await world.ann.mention(world.channel, NO_RANK)
        else:
            channel, root = world.slack.direct(world.team, world.ann.id), await world.ann.dm(NO_RANK)
        await world.answer(channel, root, lambda said: "Which rank" in said)
        reply = await world.ann.say(channel, said, thread=root if where == "thread" else None)
        await world.answer(channel, root, lambda said: "Rank 3 ran out" in said)
        await world.quiet()
        await world.ann.edit(channel, reply, then)
        await world.answer(channel, root, lambda said: "Rank 2 ran out" in said)
        await world.quiet()
        assert len(world.answers(channel)) == 1
        kept = await world.store.load(world.team.id, "D-0001")
        assert kept is not None
        assert [c.text for c in kept.contributions if c.kind == "answer"] == [None, "rank=2"]


async def test_an_answer_that_is_edited_into_talk_is_taken_back(world: World) -> None:
    async with world.bot():
        root = await world.ann.mention(world.channel, NO_RANK)
        await world.answer(world.channel, root, lambda said: "Which rank" in said)
        reply = await world.bob.say(world.channel, "rank 3", thread=root)
        await world.answer(world.channel, root, lambda said: "Rank 3 ran out" in said)
        await world.quiet()
        await world.bob.edit(world.channel, reply, "sorry, wrong thread")
        await world.answer(world.channel, root, lambda said: "Rank 3 ran out" not in said)
        kept = await world.store.load(world.team.id, "D-0001")
        assert kept is not None
        assert [c.text for c in kept.contributions] == [NO_RANK, None]


@pytest.mark.parametrize("where", ["channel", "direct"])
async def test_a_log_that_is_edited_away_leaves_no_line_in_our_answer(world: World, where: str) -> None:
    async with world.bot():
        channel = world.channel if where == "channel" else world.slack.direct(world.team, world.ann.id)
        named = f"<@{world.team.bot_user}> " if where == "channel" else ""
        ts = await world.ann.say(channel, named + CRASH)
        await world.answer(channel, ts, lambda said: "64.00 MiB" in said)
        await world.quiet()
        await world.ann.edit(channel, ts, f"{named}never mind")
        answer = await world.answer(channel, ts, lambda said: "64.00 MiB" not in said)
        await world.quiet()
        assert "12.50 MiB" not in words(answer)
        assert len(world.answers(channel)) == 1
        shown = await world.store.load(world.team.id, "D-0001")
        assert shown is not None
        assert not [c for c in shown.contributions if "64.00" in (c.text or "")]


async def test_a_reply_with_a_log_that_is_edited_away_leaves_no_line_in_our_answer(world: World) -> None:
    async with world.bot():
        root = await world.ann.mention(world.channel, NO_RANK)
        await world.answer(world.channel, root)
        reply = await world.bob.say(world.channel, CRASH, thread=root)
        await world.answer(world.channel, root, lambda said: "64.00 MiB" in said)
        await world.quiet()
        await world.bob.edit(world.channel, reply, "removed, it was another server")
        await world.answer(world.channel, root, lambda said: "64.00 MiB" not in said)
