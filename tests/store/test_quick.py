import subprocess
import sys
from pathlib import Path

from bot.domain.incident import Origin
from bot.store.quick import neighbours
from bot.store.schema import sqlite_file
from bot.store.store import open_store
from tests.store.material import LOWER_SEQS, document, on, paste

T1 = Origin("T1", channel="C1")


def test_without_a_database_there_is_nothing(tmp_path: Path) -> None:
    assert neighbours(f"sqlite+aiosqlite:///{tmp_path}/none.db", T1, document()) == ([], [])
    assert neighbours("postgresql+asyncpg://bot@127.0.0.1/oombot", T1, document()) == ([], [])
    (tmp_path / "text.db").write_text("no database" * 100)
    assert neighbours(f"sqlite+aiosqlite:///{tmp_path}/text.db", T1, document()) == ([], [])


async def test_an_open_diagnosis_has_no_neighbours(sqlite_url: str) -> None:
    store = await open_store(sqlite_url)
    await store.append(T1, [paste()], document())
    await store.close()
    assert neighbours(sqlite_url, T1, {"phase": "unknown", "deployment": {}}) == ([], [])


async def test_the_short_way_gives_what_the_store_gives(sqlite_url: str) -> None:
    store = await open_store(sqlite_url)
    await store.append(T1, [paste()], on("Qwen/Qwen3-8B", "H100-80GB"))
    await store.append(T1, [paste()], on("mistralai/Mixtral-8x7B", "H100-80GB"))
    await store.append(T1, [paste()], on("Qwen/Qwen3-32B", "A100-80GB", engine_version="0.9.0"))
    await store.append(Origin("T1", channel="G1", private=True), [paste()], document())
    await store.append(Origin("T2", channel="C1"), [paste()], document())
    await store.append(T1, [paste()], document(phase="serving"))
    await store.record_outcome("T1", "3", "same", "U1", document=on("Qwen/Qwen3-32B", "A100-80GB", recommendation=LOWER_SEQS))
    await store.record_outcome("T1", "3", "fixed", "U1")
    await store.record_outcome("T1", "2", "moved", "U1")
    for origin in (T1, Origin("T1", channel="G1", private=True), Origin("T1"), Origin("T9")):
        similar, precedents = neighbours(sqlite_url, origin, document())
        assert similar == await store.similar(origin, document())
        assert precedents == await store.precedents(origin, document())
    assert [one["id"] for one in neighbours(sqlite_url, T1, document())[0]] == ["D-0001", "D-0003", "D-0002"]
    await store.close()


def test_it_loads_nothing_heavy_and_writes_nothing(sqlite_url: str) -> None:
    path = sqlite_file(sqlite_url)
    assert path
    before = path.read_bytes()
    asked = (
        "import sys; from bot.store.quick import neighbours; from bot.domain.incident import Origin;"
        f"neighbours({sqlite_url!r}, Origin(), {document()!r});"
        "print(sorted({'sqlalchemy', 'asyncio', 'alembic', 'aiosqlite'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
    assert path.read_bytes() == before
