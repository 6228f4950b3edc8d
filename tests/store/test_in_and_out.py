import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bot.domain.incident import Contribution, Origin
from bot.store.backup import backup, restore
from bot.store.drop import drop
from bot.store.errors import StoreError
from bot.store.query import parse
from bot.store.schema import sqlite_file
from bot.store.store import Store, open_store
from tests.store.conftest import postgres_database
from tests.store.material import LOWER_SEQS, NOW, document, paste


@dataclass(frozen=True)
class Asker:
    team: str = "T1"
    channels: frozenset[str] | None = None
    enterprise: str | None = None


async def everything(store: Store) -> list[dict[str, Any]]:
    return [record async for record in store.export_rows()]


async def fill(store: Store) -> None:
    await store.append(Origin("T1", "E1", "C1", "1.1", True), [paste(message="1.2", redactions=1)], document())
    await store.record_outcome(
        "T1",
        "1",
        "same",
        "U1",
        "ünï \x00 code",
        contributions=[Contribution("outcome", "same")],
        document=document(recommendation=LOWER_SEQS),
    )
    await store.append(Origin("T1", channel="C2"), [paste("stray \udcff surrogate")], document(phase="serving"))
    await store.forget("T1", "2")
    await store.append(Origin(), [paste("another team")], None)
    await store.watch("T1", "C1", True, "U1")
    await store.set_setting("T1", "digest", {"day": 1})
    await store.remember_reply("D-0001", "T1", "C1", "1.1", "9.9", "diagnosis", "abc")


async def test_what_came_out_goes_in_and_comes_out_the_same(store: Store, tmp_path: Path) -> None:
    await fill(store)
    records = await everything(store)
    other = await open_store(f"sqlite+aiosqlite:///{tmp_path}/other.db")
    assert await other.import_rows(records) == (3, 0)
    assert await everything(other) == records
    found = await other.search(Asker(), parse("capture_model flag:gpu-memory-utilization outcome:same", NOW))
    assert found.count == 1
    assert await other.append(Origin("T1"), [paste()], document()) == "D-0003"
    await other.close()


async def test_importing_twice_changes_nothing(store: Store) -> None:
    await fill(store)
    records = await everything(store)
    assert await store.import_rows(records) == (0, 3)
    assert await everything(store) == records


async def test_another_incident_of_the_same_id_is_refused_whole(store: Store, tmp_path: Path) -> None:
    await fill(store)
    other = await open_store(f"sqlite+aiosqlite:///{tmp_path}/other.db")
    await other.append(Origin("local"), [Contribution("paste", "quite another", at=NOW.replace(year=2020))], document())
    before = await everything(other)
    with pytest.raises(StoreError, match="D-0001 of team local is another incident here"):
        await other.import_rows(await everything(store))
    assert await everything(other) == before
    await other.close()


@pytest.mark.postgres
async def test_sqlite_moves_to_postgres_with_all_that_belongs_to_it(sqlite_url: str) -> None:
    async with postgres_database() as url:
        source = await open_store(sqlite_url)
        await fill(source)
        await source.save_install("T1", b"sealed", by="U1")
        await source.deliver("T1", "C1", "1.1", "Ev1", "event", b"first")
        await source.deliver("T1", "C1", "1.1", "Ev2", "event", b"second")
        drop(sqlite_url, Origin("T1"), [paste("by the short way")], document())
        target = await open_store(url)
        assert await source.copy_to(target) == 4
        assert await everything(target) == await everything(source)
        assert await target.find_install("T1") == b"sealed"
        first = await target.claim("w", 30)
        assert first
        assert first.payload == b"first"
        assert not await target.deliver("T1", "C1", "1.1", "Ev2", "event", b"again")
        assert await target.deliver("T1", "C1", "1.1", "Ev3", "event", b"third")
        assert (await target.search(Asker(), parse('"short way"', NOW))).count == 1
        assert await target.append(Origin("T1"), [paste()], document()) == "D-0004"
        with pytest.raises(StoreError, match="already has incidents"):
            await source.copy_to(target)
        await target.close()
        await source.close()


async def test_a_backup_of_a_running_database_can_be_put_back(sqlite_url: str, tmp_path: Path) -> None:
    store = await open_store(sqlite_url)
    await fill(store)
    before = await everything(store)
    path, kept = sqlite_file(sqlite_url), tmp_path / "kept.db"
    assert path
    assert backup(path, kept) == kept.stat().st_size
    with pytest.raises(StoreError, match="exists already"):
        backup(path, kept)
    await store.append(Origin("T1"), [paste("later")], document())
    restore(kept, path)
    assert await everything(store) == before
    await store.close()


async def test_what_is_no_backup_is_not_put_in_the_place_of_anything(sqlite_url: str, tmp_path: Path) -> None:
    path = sqlite_file(sqlite_url)
    assert path
    before = path.read_bytes()
    with pytest.raises(StoreError, match="There is no backup"):
        restore(tmp_path / "none.db", path)
    (tmp_path / "text.db").write_text("no database " * 100)
    with pytest.raises(StoreError, match="no backup that can be read"):
        restore(tmp_path / "text.db", path)
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.execute("CREATE TABLE t (x)")
    with pytest.raises(StoreError, match="none of oombot's"):
        restore(tmp_path / "other.db", path)
    assert path.read_bytes() == before


def test_a_damaged_source_is_blamed_and_not_the_target(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("no database " * 100)
    with pytest.raises(StoreError, match=r"text\.db is not a database") as error:
        backup(tmp_path / "text.db", tmp_path / "kept.db")
    assert "kept.db" not in str(error.value)
    assert not (tmp_path / "kept.db").exists()


async def test_a_database_with_damaged_pages_is_not_said_to_be_kept_well(sqlite_url: str, tmp_path: Path) -> None:
    store = await open_store(sqlite_url)
    await fill(store)
    await store.close()
    path = sqlite_file(sqlite_url)
    assert path
    with closing(sqlite3.connect(path)) as there:
        root = there.execute("SELECT rootpage FROM sqlite_master WHERE name = 'incidents'").fetchone()[0]
        size = there.execute("PRAGMA page_size").fetchone()[0]
    whole = bytearray(path.read_bytes())
    whole[(root - 1) * size : root * size] = b"\xff" * size
    path.write_bytes(whole)
    with pytest.raises(StoreError, match=f"{path} is damaged"):
        backup(path, tmp_path / "kept.db")
