"""One process on an SQLite file, killed at random moments: nothing is lost and nothing is doubled."""

import asyncio
import random
from pathlib import Path

import pytest

from tests.replicas.fleet import fleet

DELIVERIES, THREADS, KILLS = 100, 10, 4


async def once(transport: str, tmp_path: Path, seed: int) -> None:
    moments = random.Random(seed)
    async with fleet(transport, f"sqlite+aiosqlite:///{tmp_path}/slack.db", tmp_path, 1) as bots:
        (port,) = bots.slack.ports
        talking = asyncio.create_task(bots.talk(THREADS, DELIVERIES // THREADS))
        for number in range(1, KILLS + 1):
            await bots.until(lambda number=number: bots.worked() >= DELIVERIES * number // (KILLS + 2), 180)
            await asyncio.sleep(moments.random() * 0.3)
            await bots.kill(port)
            await bots.start(port)
        threads = await asyncio.wait_for(talking, 180)
        await bots.quiet(60)
        assert sum(len(said) for said in threads.values()) == DELIVERIES
        await bots.nothing_lost_doubled_or_out_of_order(threads)


async def test_a_process_that_is_killed_at_random_moments_loses_and_doubles_nothing(tmp_path: Path) -> None:
    await once("socket", tmp_path, seed=1)


@pytest.mark.bench
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("transport", ["http", "socket"])
async def test_the_same_at_other_moments(transport: str, seed: int, tmp_path: Path) -> None:
    await once(transport, tmp_path, seed)
