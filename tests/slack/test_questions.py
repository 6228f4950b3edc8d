"""A question, its answer, nonsense, an answer days later; after two rounds the bot stops asking."""

import pytest

from tests.slack.material import NO_RANK
from tests.slack.world import World, words


async def test_nonsense_is_left_alone_and_the_question_stays(world: World) -> None:
    async with world.bot():
        ts = await world.ann.mention(world.channel, NO_RANK)
        asked = await world.answer(world.channel, ts)
        await world.quiet()
        for said in ("lol", "did you try turning it off and on?", "👍", "."):
            await world.bob.say(world.channel, said, thread=ts)
        await world.quiet()
        assert world.answers(world.channel) == [asked]
        assert "Which rank" in words(asked)


@pytest.mark.parametrize("said", ["rank 3", "gpu3", "GPU 3", "it's rank #3", "3", "Rank: 3."])
async def test_the_rank_is_understood_in_many_words(http_world: World, said: str) -> None:
    world = http_world
    async with world.bot():
        ts = await world.ann.mention(world.channel, NO_RANK)
        await world.answer(world.channel, ts)
        await world.bob.say(world.channel, said, thread=ts)
        await world.answer(world.channel, ts, lambda shown: "Rank 3 ran out" in shown)


@pytest.mark.parametrize("said", ["I don't know", "no idea", "dunno", "not sure, sorry", "I can’t tell"])
async def test_not_knowing_is_an_answer(http_world: World, said: str) -> None:
    world = http_world
    async with world.bot():
        ts = await world.ann.mention(world.channel, NO_RANK)
        await world.answer(world.channel, ts)
        await world.bob.say(world.channel, said, thread=ts)
        await world.quiet()
        incident = await world.store.load(world.team.id, "D-0001")
        assert incident is not None
        assert [c.text for c in incident.contributions][1:] == ["failing_rank=unknown", "first_error=unknown"]


async def test_the_rank_is_picked_from_the_menu(world: World) -> None:
    async with world.bot():
        ts = await world.ann.mention(world.channel, NO_RANK)
        answer = await world.answer(world.channel, ts)
        await world.bob.click(world.channel, answer, "answer_rank", option="D-0001 2")
        await world.answer(world.channel, ts, lambda said: "Rank 2 ran out" in said)
        incident = await world.store.load(world.team.id, "D-0001")
        assert incident is not None
        assert incident.contributions[1].author == world.bob.id


async def test_an_answer_after_a_restart_and_a_day_still_counts(world: World) -> None:
    async with world.bot():
        ts = await world.ann.mention(world.channel, NO_RANK)
        asked = await world.answer(world.channel, ts)
        await world.quiet()
    world.slack.later(25 * 3_600)
    async with world.bot():
        await world.bob.say(world.channel, "rank 1", thread=ts)
        answer = await world.answer(world.channel, ts, lambda said: "Rank 1 ran out" in said)
        assert answer["ts"] == asked["ts"]


async def test_after_two_rounds_the_bot_stops_asking(world: World) -> None:
    async with world.bot():
        ts = await world.ann.mention(world.channel, NO_RANK)
        await world.answer(world.channel, ts, lambda said: "Still open" in said)
        await world.bob.say(world.channel, "vllm 0.11.0 on 4 x H100", thread=ts)
        await world.quiet()
        assert "Still open" in words(world.answers(world.channel)[0])
        await world.bob.say(world.channel, "tp 4, version 0.11.0", thread=ts)

        await world.answer(world.channel, ts, lambda said: "I have stopped asking" in said and "Still open" not in said)


async def test_a_message_with_many_files_is_one_round(http_world: World) -> None:
    world = http_world
    async with world.bot():
        files = [world.ann.file(f"{n}.log", NO_RANK.encode()) for n in range(4)]
        ts = await world.ann.mention(world.channel, NO_RANK, files=files)
        await world.answer(world.channel, ts, lambda said: "Still open" in said)


async def test_not_knowing_is_one_click(world: World) -> None:
    async with world.bot():
        ts = await world.ann.mention(world.channel, NO_RANK)
        answer = await world.answer(world.channel, ts)
        await world.bob.click(world.channel, answer, "dont_know")
        await world.quiet()
        incident = await world.store.load(world.team.id, "D-0001")
        assert incident is not None
        assert [(c.text, c.author) for c in incident.contributions][1:] == [
            ("failing_rank=unknown", world.bob.id),
            ("first_error=unknown", world.bob.id),
        ]
