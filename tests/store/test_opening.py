import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory

from bot.domain.incident import Origin
from bot.settings import shown_url
from bot.store import errors
from bot.store.backup import backup, restore, set_aside
from bot.store.engine import Database, revision
from bot.store.errors import StoreError
from bot.store.private import private_text
from bot.store.schema import HEAD, migrations_folder, sqlite_file
from bot.store.store import Store, open_store
from tests.store.material import document, paste


def file_of(url: str) -> Path:
    path = sqlite_file(url)
    assert path
    return path


async def refusal(url: str) -> str:
    with pytest.raises(StoreError) as refused:
        await open_store(url)
    return str(refused.value)


async def test_a_url_of_another_database_is_refused_with_the_two_that_work() -> None:
    said = await refusal("mysql://root:hunter2@db/oombot")
    assert "'mysql'" in said
    assert "postgresql+asyncpg://" in said
    assert "hunter2" not in said


async def test_a_url_that_is_none_is_refused() -> None:
    assert "cannot be read" in await refusal("oombot.db")


async def test_a_url_without_a_file_is_refused() -> None:
    assert "names no file" in await refusal("sqlite+aiosqlite://")


async def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    said = await refusal(f"sqlite+aiosqlite:///{tmp_path}/file/data/oombot.db")
    assert f"{tmp_path}/file/data" in said
    assert "OOMBOT_DATABASE_URL" in said


async def test_a_missing_folder_is_made(tmp_path: Path) -> None:
    store = await open_store(f"sqlite+aiosqlite:///{tmp_path}/a/b/oombot.db")
    await store.close()
    assert (tmp_path / "a/b/oombot.db").is_file()


async def test_a_file_that_is_no_database_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but long enough to be read as a header " * 20)
    assert "not a database" in await refusal(f"sqlite+aiosqlite:///{path}")
    assert path.read_text().startswith("not a database, but")


@pytest.mark.parametrize("made", ["CREATE TABLE users (id INTEGER)", "CREATE TABLE alembic_version (version_num TEXT)"])
async def test_a_file_of_another_program_is_refused_and_stays_as_it_was(tmp_path: Path, made: str) -> None:
    path = tmp_path / "theirs.db"
    with closing(sqlite3.connect(path)) as theirs:
        theirs.execute(made)
    before = path.read_bytes()
    assert "tables of another program" in await refusal(f"sqlite+aiosqlite:///{path}")
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["theirs.db"]


@pytest.mark.skipif(os.name != "posix", reason="Windows keeps a user's folder from others")
async def test_what_is_kept_is_its_owner_s_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    ours, given = tmp_path / "home/oombot", tmp_path / "given"
    ours.mkdir(parents=True, mode=0o755)
    given.mkdir(mode=0o750)
    for path in (ours / "oombot.db", given / "oombot.db", tmp_path / "new/folder/oombot.db"):
        store = await open_store(f"sqlite+aiosqlite:///{path}")
        await store.append(Origin(), [paste()], document())
        assert {one.name: oct(one.stat().st_mode & 0o777) for one in path.parent.iterdir()} == dict.fromkeys(
            ("oombot.db", "oombot.db-wal", "oombot.db-shm"), "0o600"
        )
        await store.close()
    modes = [oct(folder.stat().st_mode & 0o777) for folder in (ours, given, tmp_path / "new/folder")]
    assert modes == ["0o700", "0o750", "0o700"], "a folder that somebody else made keeps its mode"
    backup(ours / "oombot.db", tmp_path / "kept.db")
    restore(tmp_path / "kept.db", tmp_path / "again.db")
    (tmp_path / "damaged.db").write_text("no database " * 100)
    with private_text(tmp_path / "export.jsonl") as export:
        export.write("{}")
    for path in (tmp_path / "kept.db", tmp_path / "again.db", set_aside(tmp_path / "damaged.db"), tmp_path / "export.jsonl"):
        assert oct(path.stat().st_mode & 0o777) == "0o600", path


async def test_a_disk_without_room_is_said_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await open_store(f"sqlite+aiosqlite:///{tmp_path}/oombot.db")
    await store.writable()
    monkeypatch.setattr(errors, "LEAST_ROOM", 2**80)
    with pytest.raises(StoreError, match=r"The disk that holds .*oombot\.db is full"):
        await store.writable()
    await store.close()


@pytest.mark.parametrize(
    "url",
    [
        "postgresql+asyncpg://bot:pg/pw7788@127.0.0.1:1/oombot",
        "postgresql+asyncpg://bot@127.0.0.1:1/oombot?password=pw7788",
        "postgresql+asyncpg://bot:p@pw7788@127.0.0.1:1/oombot",
        "postgresql+asyncpg://bot:p?pw7788@127.0.0.1:1/oombot",
        "postgresql+asyncpg://127.0.0.1:1/oombot?user=bot&password=pw7788",
    ],
)
async def test_no_form_of_a_url_shows_its_password(url: str) -> None:
    said = await refusal(url)
    assert "pw7788" not in said
    assert "pw7788" not in shown_url(url)
    assert shown_url(url).startswith("postgresql+asyncpg://")
    assert shown_url(url).endswith("127.0.0.1:1/oombot")


async def test_tables_of_another_program_are_left_alone(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.execute("CREATE TABLE incidents (id INTEGER)")
    assert "another program" in await refusal(f"sqlite+aiosqlite:///{tmp_path}/other.db")


async def test_a_database_of_a_newer_program_is_not_opened(sqlite_url: str) -> None:
    with closing(sqlite3.connect(file_of(sqlite_url))) as newer:
        newer.execute("UPDATE alembic_version SET version_num = '2031_01_01'")
        newer.commit()
    said = await refusal(sqlite_url)
    assert "newer oombot" in said
    assert "2031_01_01" in said


async def test_a_read_only_file_says_so(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Root may write everywhere, so SQLite itself is told to refuse: it says the same.
    monkeypatch.setattr("bot.store.engine._PRAGMAS", ("PRAGMA foreign_keys=ON", "PRAGMA query_only=ON"))
    store = await open_store(sqlite_url)
    with pytest.raises(StoreError, match="read-only for this user"):
        await store.append(Origin(), [paste()], document())
    assert await store.load("local", "1") is None
    await store.close()


async def test_a_locked_database_is_an_answer_not_a_traceback(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.store.engine._PRAGMAS", ("PRAGMA busy_timeout=50", "PRAGMA foreign_keys=ON"))
    store = await open_store(sqlite_url)
    with closing(sqlite3.connect(file_of(sqlite_url), isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="locked by another process"):
            await store.append(Origin(), [paste()], document())
        other.execute("ROLLBACK")
    assert await store.append(Origin(), [paste()], document()) == "D-0001"
    await store.close()


async def test_a_full_disk_says_so(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # SQLite's own way to be full: no page more than there are.
    with closing(sqlite3.connect(file_of(sqlite_url))) as now:
        pages = now.execute("PRAGMA page_count").fetchone()[0]
    monkeypatch.setattr("bot.store.engine._PRAGMAS", ("PRAGMA foreign_keys=ON", f"PRAGMA max_page_count={pages}"))
    store = await open_store(sqlite_url)
    with pytest.raises(StoreError, match="is full"):
        await store.append(Origin(), [paste(os.urandom(300_000).hex())], document())
    await store.close()


async def test_no_server_is_a_sentence_without_the_password() -> None:
    said = await refusal("postgresql+asyncpg://bot:hunter2@127.0.0.1:1/oombot")
    assert "No PostgreSQL server answers" in said
    assert "hunter2" not in said


async def test_wal_foreign_keys_and_patience_are_on(sqlite_url: str) -> None:
    database = Database(sqlite_url)
    async with database.read() as connection:
        asked = [
            (await connection.exec_driver_sql(f"PRAGMA {name}")).scalar()
            for name in ("journal_mode", "foreign_keys", "busy_timeout", "secure_delete")
        ]
    await database.close()
    assert asked == ["wal", 1, 5000, 1]


async def test_the_schema_is_what_the_tables_say(url: str) -> None:
    store = await open_store(url)
    config = Config()
    config.set_main_option("script_location", str(migrations_folder()))
    async with store._database.write() as connection:

        def check(synchronous: object) -> None:
            config.attributes["connection"] = synchronous
            command.check(config)  # raises when a table, column, index or named constraint differs

        await connection.run_sync(check)
        assert await connection.run_sync(revision) == HEAD
    await store.close()


def test_head_is_the_newest_migration() -> None:
    config = Config()
    config.set_main_option("script_location", str(migrations_folder()))
    assert ScriptDirectory.from_config(config).get_current_head() == HEAD


async def test_two_processes_may_open_an_empty_database_at_once(tmp_path: Path) -> None:
    import asyncio

    url = f"sqlite+aiosqlite:///{tmp_path}/new.db"
    first, second = await asyncio.gather(open_store(url), open_store(url))
    assert (await first.state())["schema"] == (await second.state())["schema"] == HEAD
    await first.close()
    await second.close()


async def test_a_new_file_that_another_process_is_writing_to_is_waited_for(tmp_path: Path) -> None:
    import asyncio

    with closing(sqlite3.connect(tmp_path / "new.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")  # SQLite refuses a change of the journal's mode at once, without waiting
        asyncio.get_running_loop().call_later(0.3, other.rollback)
        store = await open_store(f"sqlite+aiosqlite:///{tmp_path}/new.db")
        assert (await store.state())["schema"] == HEAD
        await store.close()


async def test_state_names_the_place_and_counts(store: Store) -> None:
    await store.append(Origin(), [paste()], document())
    state = await store.state()
    assert (state["schema"], state["incidents"]) == (HEAD, 1)
