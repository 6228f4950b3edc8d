import asyncio
import os
import sys
from asyncio.subprocess import Process
from collections import Counter
from pathlib import Path

import pytest

from bot.store.store import open_store
from tests.store.conftest import postgres_database, run_sql

DELIVERIES = int(os.environ.get("OOMBOT_TEST_DELIVERIES", "200"))  # 1000 on a machine that has nothing else to do
THREADS = 20


async def replica(url: str, name: str, log: Path) -> Process:
    return await asyncio.create_subprocess_exec(sys.executable, "-m", "tests.store.worker", url, name, str(log))


def lines_of(log: Path) -> list[list[str]]:
    return [line.split() for line in log.read_text(encoding="utf-8").splitlines()] if log.exists() else []


async def test_a_replica_that_is_killed_loses_nothing_and_the_order_holds(url: str, tmp_path: Path) -> None:
    store, log = await open_store(url), tmp_path / "worked"
    for number in range(DELIVERIES):
        await store.deliver("T1", "C1", f"t{number % THREADS}", f"Ev{number:04d}", "event", b"x")
    first, second = await replica(url, "first", log), await replica(url, "second", log)
    async with asyncio.timeout(300):
        while len(lines_of(log)) < DELIVERIES // 4:  # noqa: ASYNC110  # what happens is in other processes
            await asyncio.sleep(0.02)
    first.kill()
    assert await first.wait() == -9
    assert await store.release(lambda worker: worker == "first") <= 1
    again = await replica(url, "again", log)
    async with asyncio.timeout(300):
        assert (await second.wait(), await again.wait()) == (0, 0)
    worked = lines_of(log)
    times = Counter(key for _, key, _ in worked)
    assert set(times) == {f"Ev{number:04d}" for number in range(DELIVERIES)}
    # Only what the killed one held in its hands is seen twice, and then as a second attempt: its reply is known by then.
    assert sum(times.values()) - DELIVERIES <= 1
    for thread in {thread for thread, _, _ in worked}:
        keys = list(dict.fromkeys(key for of, key, _ in worked if of == thread))
        assert keys == sorted(keys)
    assert (await store.backlog())["waiting"] == 0
    await store.close()


@pytest.mark.postgres
async def test_connections_that_the_server_has_closed_are_replaced_unnoticed(migrated_postgres: str) -> None:
    async with postgres_database(migrated_postgres) as url:
        store = await open_store(url)
        try:
            await asyncio.gather(*(store.backlog() for _ in range(8)))
            others = "datname = current_database() AND pid <> pg_backend_pid()"
            await run_sql(url, f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}")
            await asyncio.sleep(0.1)  # the news travels
            assert (await asyncio.gather(*(store.backlog() for _ in range(8))))[7]["waiting"] == 0
            assert await store.deliver("T1", "C1", "171.1", "k1", "message", b"{}")
        finally:
            await store.close()
