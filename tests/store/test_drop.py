import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

from bot.domain.incident import Contribution, Origin
from bot.store.drop import drop
from bot.store.schema import sqlite_file
from bot.store.store import open_store
from tests.store.material import LOG, NOW, document, paste


def test_without_a_database_the_caller_takes_the_full_way(tmp_path: Path) -> None:
    assert drop(f"sqlite+aiosqlite:///{tmp_path}/none.db", Origin(), [paste()], document()) is None
    assert not (tmp_path / "none.db").exists()
    assert drop("postgresql+asyncpg://bot@127.0.0.1/oombot", Origin(), [paste()], document()) is None


def test_with_another_schema_too(sqlite_url: str) -> None:
    path = sqlite_file(sqlite_url)
    assert path
    with closing(sqlite3.connect(path)) as other:
        other.execute("UPDATE alembic_version SET version_num = 'older'")
        other.commit()
    assert drop(sqlite_url, Origin(), [paste()], document()) is None
    path.write_bytes(b"no database at all" * 100)
    assert drop(sqlite_url, Origin(), [paste()], document()) is None


def test_while_the_database_is_locked_too(sqlite_url: str) -> None:
    path = sqlite_file(sqlite_url)
    assert path
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert drop(sqlite_url, Origin(), [paste()], document()) is None
        other.execute("ROLLBACK")


async def test_a_dropped_turn_is_read_as_if_it_had_been_appended(sqlite_url: str) -> None:
    given = Contribution("file", LOG, name="worker.log", author="me", at=NOW, redactions=1)
    assert drop(sqlite_url, Origin(), [given], document()) == "D-0001"
    store = await open_store(sqlite_url)
    found = await store.load("local", "D-0001")
    assert found
    assert (found.contributions, found.document, found.opened) == ((given,), document(id="D-0001"), NOW)
    assert len(found.trials) == 1
    await store.close()


async def test_ids_of_both_ways_never_collide(sqlite_url: str) -> None:
    store = await open_store(sqlite_url)
    names = [await store.append(Origin(), [paste()], document()), drop(sqlite_url, Origin(), [paste()], document())]
    names += [await store.append(Origin(), [paste()], document()), drop(sqlite_url, Origin(), [paste()], document())]
    assert names == ["D-0001", "D-0002", "D-0003", "D-0004"]
    assert drop(sqlite_url, Origin("T1"), [paste()], document()) == "D-0001"
    assert [bool(await store.load("local", str(number))) for number in range(1, 6)] == [True] * 4 + [False]
    await store.close()


async def test_a_store_that_is_open_sees_it_at_the_next_question(sqlite_url: str) -> None:
    store = await open_store(sqlite_url)
    assert await store.load("local", "1") is None
    drop(sqlite_url, Origin(), [paste()], document())
    assert await store.load("local", "1") is not None
    assert await store.claim("w1", 30) is None  # it is no delivery for a worker
    await store.close()


async def test_a_turn_can_follow_a_dropped_one(sqlite_url: str) -> None:
    store = await open_store(sqlite_url)
    drop(sqlite_url, Origin(), [paste()], document())
    assert await store.append(Origin(), [paste("more")], document(), into="D-0001") == "D-0001"
    drop(sqlite_url, Origin(), [paste()], document())
    assert (await store.record_outcome("local", "D-0002", "fixed", None)).result == "fixed"
    await store.close()


def test_it_loads_nothing_heavy() -> None:
    asked = "import sys, bot.store.drop; print(sorted({'sqlalchemy', 'asyncio', 'alembic', 'aiosqlite'} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_it_takes_few_milliseconds_of_the_processor(sqlite_url: str) -> None:
    drop(sqlite_url, Origin(), [paste()], document())
    took = []
    for _ in range(5):
        began = time.process_time()
        assert drop(sqlite_url, Origin(), [paste(LOG * 4)], document())
        took.append(time.process_time() - began)
    assert min(took) < 0.04
