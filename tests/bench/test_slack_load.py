"""Fifty uploads of 200 KB into twenty threads within ten seconds, judged for real: when each was acknowledged, and when it was answered."""

import asyncio
import statistics
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.rulebook.load import load_rulebook
from bot.usecases.desk import Desk
from bot.usecases.judging import Judges
from tests.fakeslack import FakeSlack
from tests.slack.material import CRASH
from tests.slack.world import World

PASTES, THREADS, SECONDS = 50, 20, 10.0
NOISE = (
    "(EngineCore_DP0 pid=4100) INFO 11-30 04:10:{:02d} [loggers.py:127] Engine 000: Avg prompt throughput: {}.0 tokens/s, Running: 3 reqs\n"
)


def log_of(number: int) -> bytes:
    noise = "".join(NOISE.format(n % 60, n * 7 + number) for n in range(1_600))
    return (noise[: 200_000 - len(CRASH)].rsplit("\n", 1)[0] + "\n" + CRASH).encode()


@pytest.mark.bench
@pytest.mark.parametrize("transport", ["http", "socket"])
async def test_fifty_uploads_in_ten_seconds(transport: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    slack = FakeSlack(transport, patience=10.0)
    judges = Judges()
    try:
        async with slack.running():
            world = World(slack, tmp_path)
            desk = Desk(world.settings(), load_rulebook, judges.judge, lambda: datetime.now(UTC))
            async with world.bot(desk=desk):
                took = await _drive(world)
    finally:
        judges.close()
    acks = [ack.seconds for kind, ack in slack.deliveries if kind in ("message", "app_mention") and ack.tries == 1]
    with capsys.disabled():
        print(f"\n{transport}: {PASTES} uploads of 200 KB into {THREADS} threads in {SECONDS:.0f} s")
        print(f"  acknowledged: median {statistics.median(acks) * 1000:.0f} ms, worst {max(acks) * 1000:.0f} ms")
        print(
            f"  answered: median {statistics.median(took):.1f} s, worst {max(took):.1f} s; lost {PASTES - len(took)}, messages {len(world.answers(world.channel))}"
        )
    assert len(took) == PASTES
    assert len(world.answers(world.channel)) == THREADS


async def _drive(world: World) -> list[float]:
    begun = time.monotonic()
    roots: list[str] = []
    sent: dict[str, tuple[float, str]] = {}

    async def one(number: int) -> None:
        await asyncio.sleep(max(0.0, begun + number * SECONDS / PASTES - time.monotonic()))
        file = world.ann.file(f"server-{number}.log", log_of(number))
        at = time.monotonic()
        root = roots[number % THREADS] if number >= THREADS else None
        ts = await world.ann.mention(world.channel, "please", files=[file], thread=root)
        if root is None:
            roots.append(ts)
        sent[ts] = (at, root or ts)

    for number in range(PASTES):
        await one(number)
    took: dict[str, float] = {}
    while len(took) < PASTES and time.monotonic() - begun < 120:
        for _, ts, _, on in list(world.slack.reactions):
            if not on and ts in sent and ts not in took:
                took[ts] = time.monotonic() - sent[ts][0]
        await asyncio.sleep(0.05)
    await world.quiet(60)
    return list(took.values())
