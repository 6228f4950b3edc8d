import asyncio

import pytest

from tests.slack.material import CRASH, NO_RANK, PLANTED, SECRETS
from tests.slack.world import World, words


async def test_talk_in_a_channel_is_left_alone(world: World) -> None:
    async with world.bot():
        await world.ann.say(world.channel, "shall we order pizza?")
        await world.ann.say(world.channel, CRASH)
        await world.quiet()
        assert world.answers(world.channel) == []


async def test_a_mention_with_a_log_is_answered_once_in_its_thread(world: World) -> None:
    async with world.bot():
        ts = await world.ann.mention(world.channel, CRASH)
        answer = await world.answer(world.channel, ts)
        await world.quiet()
        assert len(world.answers(world.channel)) == 1, "mention and message are one"
        assert "Rank 3 of 4 ran out of memory" in words(answer)
        assert "--gpu-memory-utilization 0.85" in words(answer)
        assert "D-0001" in answer["text"]
        assert [(ts, name, on) for _, ts, name, on in world.slack.reactions] == [(ts, "eyes", True), (ts, "eyes", False)]


async def test_a_direct_message_is_answered(world: World) -> None:
    async with world.bot():
        ts = await world.ann.dm(CRASH)
        direct = world.slack.direct(world.team, world.ann.id)
        answer = await world.answer(direct, ts)
        assert "CUDA graphs were captured" in words(answer)


async def test_small_talk_in_a_direct_message_gets_a_hint(world: World) -> None:
    async with world.bot():
        ts = await world.ann.dm("hello there")
        answer = await world.answer(world.slack.direct(world.team, world.ann.id), ts)
        assert "Paste the log" in answer["text"]


async def test_an_uploaded_file_is_read_whole(world: World) -> None:
    async with world.bot():
        log = world.ann.file("server.log", (("INFO nothing\n" * 5_000) + CRASH).encode())
        ts = await world.ann.mention(world.channel, "please", files=[log])
        answer = await world.answer(world.channel, ts)
        assert "line 5003" in words(answer)


async def test_the_rank_in_plain_words_in_the_thread_edits_the_one_message(world: World) -> None:
    async with world.bot():
        ts = await world.ann.mention(world.channel, NO_RANK)
        asked = await world.answer(world.channel, ts, lambda said: "Which rank" in said)
        await world.bob.say(world.channel, "looks like gpu3 to me", thread=ts)
        answer = await world.answer(world.channel, ts, lambda said: "Rank 3 ran out" in said)
        assert answer["ts"] == asked["ts"], "edited in place"
        assert len(world.answers(world.channel)) == 1


async def test_talk_in_the_bots_thread_is_left_alone(world: World) -> None:
    async with world.bot():
        ts = await world.ann.mention(world.channel, CRASH)
        await world.answer(world.channel, ts)
        await world.quiet()
        edits = sum(world.slack.edits.values())
        await world.bob.say(world.channel, "thanks, I will have a look after lunch", thread=ts)
        await world.quiet()
        assert sum(world.slack.edits.values()) == edits
        assert len(world.answers(world.channel)) == 1


async def test_a_mention_in_an_old_thread_reads_the_thread(world: World) -> None:
    async with world.bot():
        ts = await world.ann.say(world.channel, CRASH)
        await world.bob.say(world.channel, "hm", thread=ts)
        assert world.answers(world.channel) == []
        await world.bob.mention(world.channel, "can you help?", thread=ts)
        answer = await world.answer(world.channel, ts)
        assert "Rank 3 of 4" in words(answer)


async def _talk(world: World, length: int, log_at: int) -> str:
    world.slack.hear_events = False
    root = ""
    for number in range(length):
        said = await world.bob.say(world.channel, CRASH if number == log_at else f"message {number}", thread=root or None)
        root = root or said
    world.slack.hear_events = True
    return root


@pytest.mark.parametrize(("length", "log_at", "page"), [(400, 1, 1_000), (400, 390, 1_000), (205, 203, 15)])
async def test_a_log_anywhere_in_a_long_thread_is_read(world: World, length: int, log_at: int, page: int) -> None:
    world.slack.most_messages = page
    root = await _talk(world, length, log_at)
    async with world.bot():
        await world.ann.mention(world.channel, "can you look?", thread=root)
        await world.answer(world.channel, root, lambda said: "Rank 3 of 4" in said)
        await world.quiet()
        assert world.ann.sees(world.channel) == []


async def test_of_a_thread_that_is_longer_than_what_is_read_that_is_said(world: World) -> None:
    world.slack.most_messages = 15
    root = await _talk(world, 300, 1)
    async with world.bot():
        await world.ann.mention(world.channel, "can you look?", thread=root)
        await world.answer(world.channel, root, lambda said: "Rank 3 of 4" in said)
        shown = await world.until(lambda: world.ann.sees(world.channel))
        assert shown[0]["text"].startswith("This thread is long: I read its first 210 messages.")


async def test_the_outcome_is_recorded_shown_and_undone(world: World) -> None:
    async with world.bot():
        ts = await world.ann.mention(world.channel, CRASH)
        answer = await world.answer(world.channel, ts)
        ack = await world.bob.click(world.channel, answer, "fixed")
        assert ack.status == 200
        answer = await world.answer(world.channel, ts, lambda said: "it worked" in said)
        assert world.bob.id in words(answer), "who clicked"
        assert "sustained run" in words(answer)
        incident = await world.store.load(world.team.id, "D-0001")
        assert incident is not None
        assert [(trial.result, trial.by) for trial in incident.trials] == [("fixed", world.bob.id)]
        await world.ann.click(world.channel, answer, "undo")
        await world.answer(world.channel, ts, lambda said: "It worked" in said and "Marked" not in said)


async def test_the_same_error_takes_the_change_back_and_offers_the_next(world: World) -> None:
    async with world.bot():
        ts = await world.ann.mention(world.channel, CRASH)
        answer = await world.answer(world.channel, ts)
        await world.ann.click(world.channel, answer, "same")
        answer = await world.answer(world.channel, ts, lambda said: "--max-num-seqs" in said and "refuted" in said)
        assert len(world.answers(world.channel)) == 1


async def test_secrets_are_hidden_and_only_the_author_is_told(world: World) -> None:
    async with world.bot():
        log = world.ann.file("env.log", (SECRETS + CRASH).encode())
        ts = await world.ann.mention(world.channel, SECRETS + CRASH, files=[log])
        await world.answer(world.channel, ts)
        told = await world.until(lambda: world.ann.sees(world.channel))
        assert "secrets hidden" in told[0]["text"]
        assert world.bob.sees(world.channel) == []
    kept = b"".join(path.read_bytes() for path in world.folder.iterdir())
    for secret in PLANTED:
        assert secret.encode() not in kept
        assert secret not in world.slack.everything_said()


async def test_two_people_answering_at_once_are_both_heard(world: World) -> None:
    async with world.bot():
        ts = await world.ann.mention(world.channel, NO_RANK)
        await world.answer(world.channel, ts, lambda said: "Which rank" in said)
        await asyncio.gather(
            world.ann.say(world.channel, "rank 2", thread=ts), world.bob.say(world.channel, "vllm 0.11.0 on 4 x H100, tp 4", thread=ts)
        )
        await world.quiet()
        incident = await world.store.load(world.team.id, "D-0001")
        assert incident is not None
        assert {c.author for c in incident.contributions} == {world.ann.id, world.bob.id}
        assert len(incident.contributions) == 3
