"""kill -9 at any moment: after the event is stored, while Slack is being called, after the answer is posted."""

import asyncio
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.slack.material import CRASH
from tests.slack.world import World, words

ROOT = Path(__file__).parents[2]


@asynccontextmanager
async def process(world: World) -> AsyncIterator[asyncio.subprocess.Process]:
    slack = world.slack
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    slack.events_url = f"http://127.0.0.1:{port}/slack/events"
    more = [slack.app_token] if slack.transport == "socket" else []
    given = [slack.api_url, world.url, world.team.token, slack.signing_secret, str(port), *more]
    started = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.slack.bot_process", *given, cwd=ROOT, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    assert started.stdout is not None
    try:
        assert (await asyncio.wait_for(started.stdout.readline(), 20)) == b"ready\n"
        if slack.transport == "socket":
            await slack.connected()
        yield started
    finally:
        if started.returncode is None:
            started.send_signal(signal.SIGKILL)
        await started.wait()
        started._transport.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize("moment", ["while the eyes are put on", "while the answer is posted", "after the answer is posted"])
async def test_the_answer_comes_once_after_the_restart(world: World, moment: str) -> None:
    slack = world.slack
    world.expected_refusals = {"already_reacted", "no_reaction"}  # the first life may have come that far
    if moment == "while the eyes are put on":
        slack.fault("reactions.add", "slow", value=30)
    elif moment == "while the answer is posted":
        slack.fault("chat.postMessage", "slow", value=1.5)  # carried out after the bot has died
    async with process(world) as bot:
        ts = await world.ann.mention(world.channel, CRASH)
        called = {"while the eyes are put on": "reactions.add", "while the answer is posted": "chat.postMessage"}.get(moment)
        if called:
            await world.until(lambda: slack.called(called))
        else:
            await world.until(lambda: world.answers(world.channel))
        bot.send_signal(signal.SIGKILL)
        await bot.wait()
    if moment == "while the answer is posted":
        await world.until(lambda: world.answers(world.channel))
    async with process(world):
        await world.until(lambda: len([r for r in slack.reactions if not r[3]]) == 1, 20)
        answer = await world.answer(world.channel, ts)
        await asyncio.sleep(1.5)
        assert len(world.answers(world.channel)) == 1
        assert "Rank 3 of 4" in words(answer)
