"""The whole bot under load: fifty pastes of 200 KB in ten seconds; slash commands while the database is locked and a large log is read."""

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from bot.store.store import Store, open_store
from tests.bench.served import Served, serve
from tests.fakeslack import FakeSlack
from tests.slack.material import CRASH
from tests.slack.world import World
from tests.store.conftest import postgres_database

pytestmark = pytest.mark.bench
PASTES, THREADS, SECONDS = 50, 20, 10.0
NOISE = (
    "(EngineCore_DP0 pid=4100) INFO 11-30 04:10:{:02d} [loggers.py:127] Engine 000: Avg prompt throughput: {}.0 tokens/s, Running: 3 reqs\n"
)
SQLITE, POSTGRES = "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)


@pytest.fixture(params=[SQLITE, POSTGRES])
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[str]:
    if request.param == "sqlite":
        yield f"sqlite+aiosqlite:///{tmp_path / 'slack.db'}"
        return
    async with postgres_database() as url:
        yield url


@pytest.fixture
async def store(database: str) -> AsyncIterator[Store]:
    opened = await open_store(database)
    yield opened
    await opened.close()


def log_of(number: int, size: int = 200_000) -> str:
    lines = size // 135 + 10
    noise = "".join(NOISE.format(n % 60, n * 7 + number) for n in range(lines))
    return noise[: size - len(CRASH)].rsplit("\n", 1)[0] + "\n" + CRASH


@pytest.mark.parametrize("way", ["http, files", "socket, files", "http, text", "socket, text"])
async def test_fifty_pastes_in_ten_seconds(
    way: str, database: str, store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    transport, form = way.split(", ")
    slack = FakeSlack(transport, patience=10.0)
    async with slack.running():
        world = World(slack, tmp_path)
        async with serve(world, database) as bot:
            begun = time.monotonic()
            took, threads = await paste(world, form)
            held = bot.held(begun)
    acks = sorted(ack.seconds for kind, ack in slack.deliveries if kind in ("message", "app_mention"))
    with capsys.disabled():
        print(f"\n{way}, {database.split('+')[0]}: {PASTES} pastes of 200 KB into {THREADS} threads in {SECONDS:.0f} s")
        print(f"  acknowledged: median {acks[len(acks) // 2] * 1000:.0f} ms, worst {acks[-1] * 1000:.0f} ms")
        print(f"  answered: median {sorted(took)[len(took) // 2]:.1f} s, worst {max(took):.1f} s; {held}")
    assert len(took) == PASTES, "one was lost"
    assert len(world.answers(world.channel)) == THREADS, "one message a thread"
    for root, said in threads.items():
        incident = await store.load(world.team.id, await store.by_thread(world.team.id, world.channel.id, root) or "")
        assert incident is not None
        assert [c.message for c in incident.contributions] == said
    assert acks[-1] < 1.0
    assert max(took) < 10.0


async def paste(world: World, form: str) -> tuple[list[float], dict[str, list[str]]]:
    """Seconds from each paste to the end of its eyes; what was said in each thread."""
    begun = time.monotonic()
    threads: dict[str, list[str]] = {}
    sent: dict[str, float] = {}
    logs = [log_of(number) for number in range(PASTES)]
    for number, log in enumerate(logs):
        await asyncio.sleep(max(0.0, begun + number * SECONDS / PASTES - time.monotonic()))
        root = list(threads)[number % THREADS] if number >= THREADS else None
        at = time.monotonic()
        if form == "files":
            ts = await world.ann.mention(world.channel, "please", files=[world.ann.file(f"server-{number}.log", log.encode())], thread=root)
        else:
            ts = await world.ann.mention(world.channel, log, thread=root)
        sent[ts] = at
        threads.setdefault(root or ts, []).append(ts)
    done: dict[str, float] = {}
    while len(done) < PASTES and time.monotonic() - begun < 120:
        await asyncio.sleep(0.1)
        done = {call.args["timestamp"]: call.at for call in world.slack.called("reactions.remove")}
    return [at - sent[ts] for ts, at in done.items()], threads


@asynccontextmanager
async def locked(database: str, folder: Path) -> AsyncIterator[None]:
    """Nobody else can write, as while another process holds the lock."""
    if database.startswith("sqlite"):
        other = sqlite3.connect(folder / "slack.db", isolation_level=None, check_same_thread=False, timeout=10)
        await asyncio.to_thread(other.execute, "BEGIN IMMEDIATE")
        try:
            yield
        finally:
            other.execute("ROLLBACK")
            other.close()
        return
    engine = create_async_engine(database)
    async with engine.begin() as connection:
        await connection.execute(text("LOCK TABLE deliveries, incidents, settings IN ACCESS EXCLUSIVE MODE"))
        yield
    await engine.dispose()


@pytest.mark.parametrize("transport", ["http", "socket"])
async def test_slash_commands_while_the_database_is_locked_and_a_large_log_is_read(
    transport: str, database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slack = FakeSlack(transport, patience=10.0)
    async with slack.running():
        world = World(slack, tmp_path)
        async with serve(world, database) as bot:
            large = world.ann.file("server.log", log_of(1, 19_500_000).encode())
            begun = time.monotonic()
            sent = asyncio.create_task(world.ann.mention(world.channel, "please", files=[large]))
            acks = await commands(world, bot, database, 6.0)
            ts = await sent
            await world.until(lambda: world.answers(world.channel, ts), 60, "the large log's answer")
            answered = slack.called("chat.postMessage")[-1].at - begun
            await world.until(lambda: len(world.bob.sees(world.channel)) >= len(acks), 60, "every command's answer")
            held = bot.held(begun)
    with capsys.disabled():
        print(f"\n{transport}, {database.split('+')[0]}: {len(acks)} commands while 19.5 MB are read, two seconds of it under a lock")
        print(
            f"  acknowledged: median {acks[len(acks) // 2] * 1000:.0f} ms, worst {acks[-1] * 1000:.0f} ms; log answered in {answered:.1f} s; {held}"
        )
    assert acks[-1] < 0.5


async def commands(world: World, bot: Served, database: str, seconds: float) -> list[float]:
    """A command every 100 ms; between the first and third second nobody can write to the database."""
    begun = time.monotonic()
    acks: list[float] = []

    async def lock() -> None:
        await asyncio.sleep(1.0)
        async with locked(database, world.folder):
            await asyncio.sleep(2.0)

    locking = asyncio.create_task(lock())
    while time.monotonic() - begun < seconds:
        ack = await world.bob.slash(world.channel, "help")
        assert ack.status == 200
        acks.append(ack.seconds)
        await asyncio.sleep(0.1)
    await locking
    return sorted(acks)
