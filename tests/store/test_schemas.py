"""A database of every schema that was ever released lies in schemas/; each must come up to today's with every row."""

import gzip
import json
from datetime import timedelta
from pathlib import Path

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory

from bot.store.query import parse
from bot.store.schema import migrations_folder
from bot.store.store import open_store
from bot.usecases.desk import Viewer
from tests.store.material import NOW

FOLDER = Path(__file__).parent / "schemas"


def test_no_schema_is_missing() -> None:
    config = Config()
    config.set_main_option("script_location", str(migrations_folder()))
    released = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    assert {path.name.removesuffix(".db.gz") for path in FOLDER.glob("*.db.gz")} == released


def _unpacked(kept: Path, folder: Path) -> Path:
    path = folder / "old.db"
    path.write_bytes(gzip.decompress(kept.read_bytes()))
    return path


@pytest.mark.parametrize("kept", sorted(FOLDER.glob("*.db.gz")), ids=lambda path: path.name)
async def test_a_database_of_that_schema_keeps_every_row(kept: Path, tmp_path: Path) -> None:
    store = await open_store(f"sqlite+aiosqlite:///{_unpacked(kept, tmp_path)}")
    records = [record async for record in store.export_rows()]
    expected = json.loads((FOLDER / "rows.json").read_text(encoding="utf-8"))[kept.name.removesuffix(".db.gz")]
    counted: dict[str, int] = {}
    for record in records:
        for name, rows in record.items():
            counted[name] = counted.get(name, 0) + (len(rows) if isinstance(rows, list) else 1)
    assert {name: counted[name] for name in expected} == expected
    assert (await store.search(Viewer("T1"), parse("capture_model outcome:same flag:gpu-memory-utilization", NOW))).count == 1
    assert await store.stats(Viewer("T1")) == await store.stats(Viewer("T1"), NOW - timedelta(days=9_999))
    found = await store.claim("w1", 30)
    assert found
    assert found.payload == b"waiting"
    await store.close()
