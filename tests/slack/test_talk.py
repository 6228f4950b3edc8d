"""What is said to the bot without any evidence: answered with what can be sent, and kept nowhere."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest

from bot.domain.incident import Result
from bot.rulebook.load import load_rulebook
from bot.slack.talk import asks_to_size, only_asks, told_outcome
from bot.usecases.desk import Desk
from bot.usecases.explain import explain
from bot.usecases.judging import Judges
from tests.slack.material import CRASH, SECRETS
from tests.slack.world import World, asks, words

TALK = ("hello", "thanks!", "hello, which version are you?", "We are planning the team event next week. " * 10, "the gpu has 80 GB")
WRAPPER = "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"


@asynccontextmanager
async def real(world: World) -> AsyncIterator[None]:
    """The bot with the rulebook instead of the stand-in."""
    judges = Judges()
    desk = Desk(world.settings(), load_rulebook, judges.judge, lambda: datetime.now(UTC))
    try:
        async with world.bot(desk=desk, asks=asks(explain=explain)):
            yield
    finally:
        judges.close()


@pytest.mark.parametrize("said", TALK)
@pytest.mark.parametrize("way", ["mention", "direct"])
async def test_talk_opens_no_incident_and_is_told_what_can_be_sent(http_world: World, said: str, way: str) -> None:
    world = http_world
    async with real(world):
        ts = await (world.ann.mention(world.channel, said) if way == "mention" else world.ann.dm(said))
        channel = world.channel if way == "mention" else world.slack.direct(world.team, world.ann.id)
        assert "Paste the log here" in words(await world.answer(channel, ts))
        await world.quiet()
        assert (await world.store.state())["incidents"] == 0
        assert len(world.answers(channel)) == 1


async def test_a_question_is_answered_by_its_topic_and_opens_no_incident(world: World) -> None:
    async with real(world):
        ts = await world.ann.mention(world.channel, "does FP8 KV halve memory in vllm?")
        assert "Does FP8 KV halve memory?" in words(await world.answer(world.channel, ts))
        await world.quiet()
        assert (await world.store.state())["incidents"] == 0


async def test_a_question_that_names_an_engine_and_a_phase_is_a_question_all_the_same(world: World) -> None:
    async with real(world):
        ts = await world.ann.mention(world.channel, "should I raise or lower gpu_memory_utilization when cuda graphs capture fails?")
        assert "utilization" in words(await world.answer(world.channel, ts, lambda said: "Paste the log here" in said))
        await world.quiet()
        assert (await world.store.state())["incidents"] == 0


async def test_a_report_that_asks_for_help_is_asked_for_its_log_and_not_lectured(world: World) -> None:
    async with real(world):
        ts = await world.ann.mention(world.channel, "we get CUDA OOM with llama 70b since yesterday, any idea?")
        assert len((await world.answer(world.channel, ts))["blocks"]) == 1, "what can be sent, and no topic"


async def test_whether_a_model_fits_is_answered_by_its_sizing(world: World) -> None:
    async with real(world):
        ts = await world.ann.mention(world.channel, "will llama-3.3-70b fit on 2xH100?")
        assert "llama" in words(await world.answer(world.channel, ts, lambda said: "it" in said)).lower()
        await world.quiet()
        assert (await world.store.state())["incidents"] == 0
        assert "size" in str(world.answers(world.channel)[0])


@pytest.mark.parametrize("way", ["thread", "direct", "direct thread"])
async def test_how_the_change_ended_may_be_said_in_words(http_world: World, way: str) -> None:
    world = http_world
    async with real(world):
        ts = await (world.ann.mention(world.channel, CRASH) if way == "thread" else world.ann.dm(CRASH))
        channel = world.channel if way == "thread" else world.slack.direct(world.team, world.ann.id)
        await world.answer(channel, ts, lambda said: "CUDA graph capture" in said)
        await world.quiet()
        if way == "thread":
            await world.ann.mention(channel, "same error with 0.85", thread=ts)
        else:
            await world.ann.dm("same error with 0.85", **({"thread": ts} if way == "direct thread" else {}))
        shown = words(await world.answer(channel, ts, lambda said: "Marked: " in said))
        assert "lower --gpu-memory-utilization to 0.85" in shown, "as it was made, whatever was suggested"
        kept = await world.store.load(world.team.id, "D-0001")
        assert kept is not None
        assert (kept.trials[0].result, kept.trials[0].note) == ("same", "same error with 0.85")


async def test_what_is_not_understood_in_a_thread_of_ours_is_said_so(world: World) -> None:
    async with real(world):
        ts = await world.ann.mention(world.channel, CRASH)
        await world.answer(world.channel, ts, lambda said: "CUDA graph capture" in said)
        await world.quiet()
        await world.ann.mention(world.channel, "what about the cat", thread=ts)
        await world.answer(world.channel, ts, lambda said: "In this thread I take" in said)
        await world.ann.mention(world.channel, "thanks a lot!", thread=ts)
        await world.ann.mention(world.channel, "why lower utilization?", thread=ts)
        await world.until(
            lambda: any("tilization" in words(one) and "In this thread" in str(one) for one in world.answers(world.channel, ts))
        )
        await world.quiet()
        assert len(world.answers(world.channel, ts)) == 3, "none to the thanks"
        kept = await world.store.load(world.team.id, "D-0001")
        assert kept is not None
        assert len(kept.contributions) == 1


@pytest.mark.parametrize("said", [WRAPPER, "vllm 0.11.0 on 8xH100, tp 8: it dies while it starts", "CUDA out of memory"])
async def test_a_little_evidence_is_an_incident_with_a_question(http_world: World, said: str) -> None:
    world = http_world
    async with real(world):
        ts = await world.ann.mention(world.channel, said)
        assert "Next: " in words(await world.answer(world.channel, ts))
        await world.quiet()
        assert (await world.store.state())["incidents"] == 1


async def test_a_file_without_evidence_is_what_somebody_wanted_read(world: World) -> None:
    async with real(world):
        ts = await world.ann.mention(world.channel, "", files=[world.ann.file("notes.txt", b"hello\n")])
        assert "no memory error" in words(await world.answer(world.channel, ts))
        await world.quiet()
        assert (await world.store.state())["incidents"] == 1


async def test_the_log_that_was_asked_for_is_read_without_another_mention(world: World) -> None:
    async with real(world):
        root = await world.ann.mention(world.channel, "my server crashed, please help")
        await world.answer(world.channel, root, lambda said: "Paste the log here" in said)
        await world.bob.say(world.channel, "wait, I look for it", thread=root)
        await world.bob.say(world.channel, CRASH, thread=root)
        await world.answer(world.channel, root, lambda said: "CUDA graph capture" in said)
        await world.quiet()
        assert len(world.answers(world.channel, root)) == 2, "the hint, and the answer"


async def test_a_log_in_a_thread_of_others_is_left_alone(world: World) -> None:
    async with world.bot():
        root = await world.bob.say(world.channel, "anyone here?")
        await world.bob.say(world.channel, CRASH, thread=root)
        await world.quiet()
        assert world.answers(world.channel) == []


async def test_in_a_watched_channel_a_log_in_a_thread_is_answered_too(world: World) -> None:
    async with world.bot():
        await world.ann.slash(world.channel, "watch")
        await world.until(lambda: world.ann.sees(world.channel))
        root = await world.bob.say(world.channel, "it crashed")
        await world.bob.say(world.channel, CRASH, thread=root)
        assert "Rank 3 of 4" in words(await world.answer(world.channel, root))


async def test_a_question_in_a_direct_message_is_no_evidence_of_the_newest_incident(world: World) -> None:
    async with real(world):
        ts = await world.ann.dm(CRASH)
        direct = world.slack.direct(world.team, world.ann.id)
        await world.answer(direct, ts)
        await world.quiet()
        asked = await world.ann.dm("does fp8 help?")
        await world.answer(direct, asked)
        await world.quiet()
        kept = await world.store.load(world.team.id, "D-0001")
        assert kept is not None
        assert len(kept.contributions) == 1


async def test_the_shortcut_on_talk_says_that_there_is_nothing_to_read(world: World) -> None:
    async with real(world):
        ts = await world.bob.say(world.channel, "hello")
        message = world.channel.message(ts)
        assert message is not None
        await world.ann.shortcut(world.channel, message)
        await world.until(lambda: any("nothing to read" in str(view.body) for view in world.slack.views.values()))
        await world.quiet()
        assert world.answers(world.channel) == []
        assert (await world.store.state())["incidents"] == 0


async def test_a_secret_in_talk_is_told_though_nothing_is_kept(world: World) -> None:
    async with real(world):
        ts = await world.ann.mention(world.channel, f"hello {SECRETS.split()[0]}")
        assert "Paste the log here" in words(await world.answer(world.channel, ts))
        await world.until(lambda: "1 secret hidden" in str(world.ann.sees(world.channel)))
        await world.quiet()
        assert (await world.store.state())["incidents"] == 0


async def test_talk_in_the_form_is_told_what_can_be_sent_and_the_log_may_follow(world: World) -> None:
    async with real(world):
        await world.ann.global_shortcut()
        view = await world.until(lambda: world.slack.views and world.ann.view())
        await world.ann.submit(view, {"text": "it crashed", "channel": world.channel.id})
        root = (await world.until(lambda: world.answers(world.channel)))[0]["ts"]
        await world.answer(world.channel, root, lambda said: "Paste the log here" in said)
        await world.quiet()
        await world.bob.say(world.channel, CRASH, thread=root)
        await world.answer(world.channel, root, lambda said: "CUDA graph capture" in said)


@pytest.mark.parametrize(
    ("said", "asks", "sizes"),
    [
        ("we get CUDA OOM with llama 70b since yesterday, any idea?", False, False),
        ("It dies at capture. Should I lower max-num-seqs?", False, False),
        ("OOM on 4 x L40S", False, False),
        ("why lower utilization", False, False),
        ("should I raise or lower gpu_memory_utilization when cuda graphs capture fails?", True, False),
        ("Hi, does fp8 KV halve memory? And is it slower on vllm 0.11.0?", True, False),
        ("what is a null block?", True, False),
        ("will llama 3.3 70b fit on 2xH100?", True, True),
        ("how many H100 do I need for deepseek-r1?", True, True),
        ("can I run qwen3-32b on one A100 with 32k?", True, True),
    ],
)
def test_a_question_is_told_from_a_report_that_asks_for_help(said: str, asks: bool, sizes: bool) -> None:
    assert (only_asks(said), asks_to_size(said)) == (asks, sizes)


@pytest.mark.parametrize(
    ("said", "result"),
    [
        ("it worked before", None),
        ("it worked with 0.85 and then it crashed", None),
        ("worked for an hour", None),
        ("it worked for me", "fixed"),
        ("it works only with eager mode", None),
        ("that did not work", None),
        ("does it work now?", None),
        ("rank 3", None),
        ("what about the same rank", None),
        ("it worked with 0.85", "fixed"),
        ("That fixed it, thanks!", "fixed"),
        ("solved", "fixed"),
        ("same error", "same"),
        ("still the same with 0.85, it is out of memory again", "same"),
        ("no, still crashing", "same"),
        ("0.85 didn't help", "same"),
        ("now it's another error, in warm-up", "moved"),
        ("error moved", "moved"),
        ("wrong diagnosis: it was the other container", "wrong"),
    ],
)
def test_how_a_change_ended_is_read_from_a_short_line(said: str, result: Result | None) -> None:
    assert told_outcome(said) == result


def test_a_long_report_says_no_outcome() -> None:
    assert told_outcome("still the same error " + "and then some more of it " * 8) is None
    assert told_outcome("same error\nTraceback (most recent call last):") is None
