"""Two replicas on one PostgreSQL, one killed in the middle and started again: none lost, none doubled, order kept per thread."""

import asyncio
import time
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from tests.replicas.fleet import Fleet, fleet

THREADS = 20


async def killed_in_the_middle(bots: Fleet, deliveries: int, seconds: float) -> float:
    """The talk, the kill, the restart, the check; how many seconds from the first word to the last answer."""
    first, _ = bots.slack.ports
    begun = time.monotonic()
    talking = asyncio.create_task(bots.talk(THREADS, deliveries // THREADS))
    await bots.until(lambda: bots.worked() >= deliveries // 2, seconds)
    await bots.kill(first)
    assert bots.worked() < deliveries, "killed too late to prove anything"
    await bots.start(first)
    threads = await asyncio.wait_for(talking, seconds)
    await bots.quiet(seconds)
    took = time.monotonic() - begun
    assert sum(len(said) for said in threads.values()) == deliveries
    await bots.nothing_lost_doubled_or_out_of_order(threads)
    return took


@pytest.mark.postgres
async def test_a_hundred_deliveries_and_one_replica_killed_in_the_middle(postgres_url: str, tmp_path: Path) -> None:
    async with fleet("http", postgres_url, tmp_path, 2) as bots:
        await killed_in_the_middle(bots, 100, 180)


@pytest.mark.postgres
async def test_a_replica_that_slept_past_its_leases_doubles_nothing_when_it_wakes(postgres_url: str, tmp_path: Path) -> None:
    async with fleet("http", postgres_url, tmp_path, 2) as bots:
        first, _ = bots.slack.ports
        talking = asyncio.create_task(bots.talk(THREADS, 6))
        for half in range(2, 11):  # it must hold a delivery when it falls asleep: tried until it did
            await bots.until(lambda half=half: bots.worked() >= THREADS * half // 2, 180)
            if "left to another worker" in bots.log(first):
                break
            await bots.sleep(first, 1.5)
        threads = await asyncio.wait_for(talking, 180)
        await bots.quiet(60)
        await bots.nothing_lost_doubled_or_out_of_order(threads)
        assert "left to another worker" in bots.log(first), "no lease ran out: this has shown nothing"


def noted_in(folder: Path) -> list[Path]:
    return list(folder.glob("data-*/oombot/spool-*"))


@pytest.mark.postgres
async def test_what_a_replica_acknowledged_while_the_table_was_locked_it_takes_up_in_its_next_life(
    postgres_url: str, tmp_path: Path
) -> None:
    async with fleet("http", postgres_url, tmp_path, 2) as bots:
        world, locking = bots.world, create_async_engine(postgres_url)
        async with locking.begin() as lock:
            await lock.execute(text("LOCK TABLE deliveries IN ACCESS EXCLUSIVE MODE"))
            ack = await world.ann.slash(world.channel, "help")
            assert (ack.status, ack.body["text"], ack.seconds < 0.5) == (200, "Here is what I can do.", True)
            (noted,) = noted_in(tmp_path)
            port = int(noted.parents[1].name.removeprefix("data-"))
            await bots.kill(port)
        await locking.dispose()
        await asyncio.sleep(2)
        assert world.ann.sees(world.channel) == [], "the other replica has a folder of its own"
        await bots.start(port)
        await bots.until(lambda: world.ann.sees(world.channel), 60)
        await bots.quiet(60)
        assert len(world.ann.sees(world.channel)) == 1
        assert noted_in(tmp_path) == []


@pytest.mark.bench
@pytest.mark.postgres
@pytest.mark.parametrize("transport", ["http", "socket"])
async def test_a_thousand_deliveries_and_one_replica_killed_in_the_middle(
    transport: str, postgres_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with fleet(transport, postgres_url, tmp_path, 2) as bots:
        took = await killed_in_the_middle(bots, 1_000, 400)
    acks = sorted(ack.seconds for kind, ack in bots.slack.deliveries if ack.tries == 1)
    again = sum(ack.tries > 1 for _, ack in bots.slack.deliveries)
    with capsys.disabled():
        print(f"\n{transport}: 1,000 deliveries over {THREADS} threads, two replicas, one killed and started again: {took:.1f} s")
        print(f"  acknowledged at once: median {acks[len(acks) // 2] * 1000:.0f} ms, worst {acks[-1] * 1000:.0f} ms; sent again: {again}")
        print("  lost 0, doubled 0, every thread in order")
