"""The door with the real rulebook, the real judge and every real use case behind it."""

from datetime import UTC, datetime

from bot.rulebook.load import load_rulebook
from bot.slack.app import build_slack
from bot.store.store import open_store
from bot.usecases.asks import Asks
from bot.usecases.desk import Desk
from bot.usecases.judging import Judges
from tests.slack.world import World, words

CAPTURE = """(EngineCore_DP0 pid=900) INFO 11-30 09:00:01 [core.py:77] Initializing a V1 LLM engine (v0.11.0) with config: model='Qwen/Qwen3-32B', tensor_parallel_size=2, pipeline_parallel_size=1, data_parallel_size=1
(Worker_TP0 pid=911) INFO 11-30 09:01:10 [gpu_worker.py:298] Available KV cache memory: 30.11 GiB
(Worker_TP1 pid=912) INFO 11-30 09:01:10 [gpu_worker.py:298] Available KV cache memory: 30.11 GiB
(Worker_TP1 pid=912) ERROR 11-30 09:01:29 [multiproc_executor.py:671] WorkerProc hit an exception.
(Worker_TP1 pid=912) ERROR 11-30 09:01:29 [multiproc_executor.py:671] Traceback (most recent call last):
(Worker_TP1 pid=912) ERROR 11-30 09:01:29 [multiproc_executor.py:671]   File "/usr/local/lib/python3.12/dist-packages/vllm/v1/worker/gpu_worker.py", line 319, in compile_or_warm_up_model
(Worker_TP1 pid=912) ERROR 11-30 09:01:29 [multiproc_executor.py:671]     self.model_runner.capture_model()
(Worker_TP1 pid=912) ERROR 11-30 09:01:29 [multiproc_executor.py:671]   File "/usr/local/lib/python3.12/dist-packages/vllm/v1/worker/gpu_model_runner.py", line 3391, in capture_model
(Worker_TP1 pid=912) ERROR 11-30 09:01:29 [multiproc_executor.py:671]     self._capture_cudagraphs(
(Worker_TP1 pid=912) ERROR 11-30 09:01:29 [multiproc_executor.py:671] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 64.00 MiB. GPU 1 has a total capacity of 79.25 GiB of which 12.50 MiB is free.
"""


async def test_from_the_paste_to_the_outcome_with_everything_real(world: World) -> None:
    judges = Judges()
    try:
        settings = world.settings(hf_hub_offline="1")
        desk = Desk(settings, load_rulebook, judges.judge, lambda: datetime.now(UTC))
        async with world.bot(settings, asks=Asks(), desk=desk):
            ts = await world.ann.mention(world.channel, CAPTURE)
            answer = await world.answer(world.channel, ts)
            assert "graph capture (certain)" in words(answer)
            assert "rank 1 (Worker_TP1)" in words(answer)
            assert "30.11" in words(answer)
            await world.bob.click(world.channel, answer, "same")
            await world.answer(world.channel, ts, lambda said: "Marked: same error" in said and "It worked" in said)
            for asked, expected in (
                ("size llama-3.3-70b on 2xH100 fp8 32k", "H100-80GB"),
                ("explain does fp8 kv halve memory?", "KV"),
                ("history phase:graph_capture", "1 incident"),
                ("stats", "graph capture"),
            ):
                seen = len(world.ann.sees(world.channel))
                await world.ann.slash(world.channel, asked)
                await world.until(lambda: world.ann.sees(world.channel)[seen:], 20, asked)  # noqa: B023
                assert expected in words(world.ann.sees(world.channel)[-1])
            await world.ann.open_home()
            await world.until(lambda: "D-0001" in str(world.team.homes.get(world.ann.id)))
    finally:
        judges.close()


TAIL = """torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 64.00 MiB.
RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}
"""
"""The end of that log, as people paste it first."""


async def test_a_tail_its_answers_and_then_the_log(world: World) -> None:
    judges = Judges()
    try:
        desk = Desk(world.settings(), load_rulebook, judges.judge, lambda: datetime.now(UTC))
        async with world.bot(asks=Asks(), desk=desk):
            ts = await world.ann.mention(world.channel, TAIL)
            await world.answer(world.channel, ts, lambda said: "I don't know" in said)
            await world.bob.say(world.channel, "I don't know", thread=ts)
            await world.answer(world.channel, ts, lambda said: "What would decide it: Which lines about memory" in said)
            early = world.slack.clock.ts()
            await world.bob.say(world.channel, "rank 4", thread=ts)
            await world.answer(world.channel, ts, lambda said: "4, known by your answer" in said)
            await world.bob.say(world.channel, "rank 3", thread=ts, ts=early)
            await world.quiet()
            assert "4, known by your answer" in words(world.answers(world.channel)[0])
            await world.ann.say(world.channel, "rank 5", thread=ts)
            await world.answer(world.channel, ts, lambda said: "rank 4 and rank 5 differ" in said and "not decided by the evidence" in said)
            await world.ann.say(world.channel, CAPTURE, thread=ts)
            await world.answer(world.channel, ts, lambda said: "rank 1 (Worker_TP1)" in said and "certain" in said)
            assert len(world.answers(world.channel)) == 1
    finally:
        judges.close()


async def test_doctor_asks_slack_without_the_bot_running(world: World) -> None:
    store = await open_store(world.url)
    settings = world.settings()
    try:
        door = build_slack(Desk(settings, load_rulebook, None, lambda: datetime.now(UTC), store), settings, store)  # type: ignore[arg-type]
        checks = await door.checks()
    finally:
        await store.close()
    assert [check.name for check in checks if check.ok is False] == []
    assert "Slack bot token" in [check.name for check in checks if check.ok]
