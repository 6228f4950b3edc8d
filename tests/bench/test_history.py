"""The searches of the README over many incidents: 95th percentile of each, in milliseconds. OOMBOT_BENCH_ROWS says how many (1000000)."""

import os
import resource
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import text

from bot.store.numbers import moment
from bot.store.query import parse
from bot.store.store import Store, open_store
from bot.usecases.desk import Viewer
from tests.bench.filling import ROWS, START, STEP, full_database

ROUNDS = 20

SEARCHES = (
    "",
    "gpu:h100",
    "phase:graph_capture",
    "outcome:fixed",
    "model:qwen2.5-72b",
    "model:qwen gpu:a100",
    "version:>=0.20",
    "rank:3 tp:8",
    "flag:max-num-seqs outcome:fixed",
    "rule:graph-capture.rule-2",
    "since:7d",
    "since:30d phase:serving",
    "channel:C007 phase:profiling",
    'gpu:h100 phase:graph_capture outcome:fixed version:>=0.20 "sampler"',
    "gpu:mi300x phase:host_memory outcome:wrong rank:7 tp:1 version:0.33.2",
    "sampler",
    '"CUDA out of memory"',
    "out of memory",
    'gpu:h100 phase:graph_capture engine:vllm version:>=0.20 since:30d "out of memory"',
    "rarebird",
    "rarebird gpu:h100",
    '"unhandled cuda error" phase:serving',
    "flashinfer sampler phase:unknown",
    "max_num_seqs nowhere",
)

pytestmark = [pytest.mark.bench, pytest.mark.skipif(not ROWS, reason="set OOMBOT_BENCH_ROWS, for example to 1000000")]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
async def full(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    store = await open_store(await full_database(request.param, tmp_path))
    yield store
    await store.close()


async def test_every_search_of_the_readme_is_below_a_tenth_of_a_second(full: Store) -> None:
    now = moment(START + ROWS * STEP).astimezone(UTC)
    slow = {}
    for words in SEARCHES:
        for viewer in (Viewer("local"), Viewer("local", "U1", channels=frozenset(f"C{n:03d}" for n in range(6)))):
            p95, busy, count = await _timed(full, viewer, words, now)
            scope = "all" if viewer.channels is None else "six channels"
            print(f"{p95:8.1f} ms  {busy:7.1f} ms of processor  {count:>8}  {scope:12}  {words or '(nothing)'}")
            if p95 > 100:
                slow[f"{words} ({scope})"] = round(p95)
    print(f"memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB")
    assert not slow


async def _timed(store: Store, viewer: Viewer, words: str, now: datetime) -> tuple[float, float, str]:
    """95th percentile by the clock and mean processor time of this process and the server's (true on a busy machine), in ms; the count."""
    query = parse(words, now)
    found = await store.search(viewer, query, 50)
    clock, busy = [], await _processor(store)
    for _ in range(ROUNDS):
        began = time.perf_counter()
        await store.search(viewer, query, 50)
        clock.append((time.perf_counter() - began) * 1000)
    spent = (await _processor(store) - busy) * 1000 / ROUNDS
    return sorted(clock)[int(ROUNDS * 0.95) - 1], spent, f"{found.count}{'+' if found.more else ''}"


async def _processor(store: Store) -> float:
    """Seconds of this process, and of PostgreSQL's for our connections where it runs on this machine."""
    seconds = time.process_time()
    if store._database.sqlite:
        return seconds
    async with store._database.read() as connection:
        pids = (await connection.execute(text("SELECT pid FROM pg_stat_activity WHERE datname = current_database()"))).scalars().all()
    return seconds + sum(map(_of_process, pids))


def _of_process(pid: int) -> float:
    ticks = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


async def test_similar_incidents_and_measured_terms_are_found_as_quickly(full: Store) -> None:
    newest = await full.search(Viewer("local"), parse("gpu:h100 phase:profiling model:qwen2.5-72b", datetime.now(UTC)), 1)
    document = (await full.load("local", str(newest.rows[0]["number"]))).document  # type: ignore[union-attr]
    asked: dict[str, Callable[[], Awaitable[object]]] = {
        "similar": lambda: full.similar(Viewer("local"), document),
        "precedents": lambda: full.precedents(Viewer("local"), document),
        "measured": lambda: full.measured(Viewer("local"), "Qwen/Qwen2.5-72B-Instruct"),
    }
    took = {}
    for name, ask in asked.items():
        assert await ask()  # warms the cache
        began = time.perf_counter()
        assert await ask()
        took[name] = (time.perf_counter() - began) * 1000
    print("\n", {name: round(value, 1) for name, value in took.items()})
    assert max(took.values()) < 100
