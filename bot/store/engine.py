"""Opening a database: SQLite in WAL mode or PostgreSQL, brought to today's schema, every failure one sentence."""

import asyncio
import hashlib
import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, cast

from sqlalchemy import Connection, event, inspect, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, DisconnectionError, NoSuchModuleError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from bot.settings import data_folder, shown_url
from bot.store.errors import StoreError, explain, unwritable
from bot.store.private import private_file, private_folder
from bot.store.schema import HEAD, migrations_folder

BUSY_SECONDS = 5
_PRAGMAS = (
    "PRAGMA foreign_keys=ON",
    "PRAGMA synchronous=FULL",  # what was acknowledged outlives a power cut
    "PRAGMA secure_delete=ON",  # erased text is overwritten, not only unlinked
    "PRAGMA cache_size=-16000",
    "PRAGMA temp_store=MEMORY",
)
# A plan must know the words it is made for, and none of these queries runs long enough to be worth compiling.
_POSTGRES = {
    "plan_cache_mode": "force_custom_plan",
    "jit": "off",
    "max_parallel_workers_per_gather": "0",
    "random_page_cost": "1.1",  # what is searched lies in memory or on flash
    "idle_in_transaction_session_timeout": "60000",  # ms; a replica whose machine is gone must not keep its locks until TCP notices
}
_DRIVERS = ("sqlite+aiosqlite", "postgresql+asyncpg")


def read_url(url: str) -> URL:
    """The URL, checked. StoreError when it is none of the two kinds."""
    try:
        read = make_url(url)
    except (ArgumentError, ValueError) as error:
        raise StoreError(f"OOMBOT_DATABASE_URL cannot be read as a database URL: {_WANTED}") from error
    if read.drivername not in _DRIVERS:
        raise StoreError(f"OOMBOT_DATABASE_URL starts with {read.drivername!r}: {_WANTED}")
    if read.drivername.startswith("sqlite") and not read.database:
        raise StoreError(f"OOMBOT_DATABASE_URL names no file: {_WANTED}")
    return read


_WANTED = "it takes sqlite+aiosqlite:///path/to/file.db or postgresql+asyncpg://user:password@host/database."


class Database:
    """An engine with two ways in: `read` and `write`, each one transaction around a plain function of a Connection."""

    def __init__(self, url: str) -> None:
        self.url = read_url(url)
        self.sqlite = self.url.drivername.startswith("sqlite")
        self.place = str(self.url.database) if self.sqlite else shown_url(url)
        self.file = Path(self.place).expanduser().absolute() if self.sqlite and self.place != ":memory:" else None
        self.engine = _sqlite(self.url) if self.sqlite else _postgres(self.url)
        self.spool = _beside(self.file, self.place)
        self._one_writer = asyncio.Lock()  # inside one process a queue is kinder than SQLite's busy waiting

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncConnection]:
        """For reading only. PostgreSQL reads each statement by itself, as READ COMMITTED does anyway, without two more round trips."""
        async with self.singly() as connection:
            yield connection

    @asynccontextmanager
    async def singly(self) -> AsyncIterator[AsyncConnection]:
        """PostgreSQL: each statement is a transaction of its own, committed before it is answered."""
        async with self._spoken(), self.engine.connect() as connection:
            if not self.sqlite:
                await connection.execution_options(isolation_level="AUTOCOMMIT")
            yield connection

    @asynccontextmanager
    async def write(self) -> AsyncIterator[AsyncConnection]:
        """A transaction that is committed when the block ends without an error."""
        async with self._spoken():
            if not self.sqlite:
                async with self.engine.begin() as connection:
                    yield connection
                return
            async with self._one_writer, self.engine.connect() as connection:
                await connection.execution_options(writes=True)
                async with connection.begin():
                    yield connection

    @asynccontextmanager
    async def _spoken(self) -> AsyncIterator[None]:
        try:
            yield
        except (DBAPIError, PoolTimeout, OSError, sqlite3.Error) as error:
            raise StoreError(explain(error, self.place)) from error

    async def prepare(self) -> None:
        """See that the schema is today's, or bring an empty or older one there. StoreError says what else it is."""
        if self.file is not None:
            self._make_place(self.file)
        async with self.read() as connection:
            found = await connection.run_sync(revision)
        if found == HEAD:
            return
        async with self.write() as connection:
            await connection.run_sync(_upgrade, self.place)

    def _make_place(self, file: Path) -> None:
        try:
            private_folder(file.parent)
        except OSError as error:
            why = f"The folder {file.parent} for the database cannot be made ({error.strerror})."
            raise StoreError(f"{why} Make it, or set OOMBOT_DATABASE_URL to another place.") from error
        if file.exists():
            self._leave_alone(file)
        private_file(file)

    def _leave_alone(self, file: Path) -> None:
        """StoreError when the file holds another program's tables; it is looked at before anything could change it."""
        try:
            with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as there:
                tables = {name for (name,) in there.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        except sqlite3.Error:
            return  # opening it says what is wrong with it
        if tables and not {"alembic_version", "incidents"} <= tables:
            raise StoreError(_foreign(self.place))

    async def writable(self) -> None:
        """StoreError when nothing could be written now: no room, no permission, a standby. Asks without writing."""
        if self.file is not None:
            unwritable(self.file, self.place)
        if self.sqlite:
            return
        async with self.read() as connection:
            if (await connection.execute(text("SHOW transaction_read_only"))).scalar() == "on":
                raise StoreError(explain(sqlite3.OperationalError("read-only"), self.place))

    async def checkpoint(self) -> None:
        """SQLite: move the write-ahead log into the file and empty it, so that erased text is in neither. Waits for no reader."""
        async with self._spoken(), self._one_writer, self.engine.connect() as connection:
            raw = await connection.get_raw_connection()
            await cast(Any, raw.driver_connection).execute("PRAGMA wal_checkpoint(TRUNCATE)")  # outside any transaction

    async def close(self) -> None:
        """Close every connection."""
        await self.engine.dispose()


def _beside(file: Path | None, place: str) -> Path:
    """How the files are named that hold what waits for this database, and no other: beside its file, or in the user's data folder."""
    if file is not None:
        return file.with_name(f"{file.name}-spool")
    return data_folder() / f"spool-{hashlib.sha256(place.encode()).hexdigest()[:12]}"


def revision(connection: Connection) -> str | None:
    """The schema that the database says it has; None when it is empty."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def _postgres(url: URL) -> AsyncEngine:
    try:
        how = {"timeout": 10, "command_timeout": 120, "server_settings": _POSTGRES}
        # Last in, first out: the few connections in use know the statements, and under load every preparation is a round trip.
        engine = create_async_engine(url, pool_size=5, max_overflow=5, pool_use_lifo=True, pool_recycle=900, connect_args=how)
    except NoSuchModuleError as error:  # asyncpg was left out of the installation
        raise StoreError("The PostgreSQL driver asyncpg is not installed. Install oombot again with all its dependencies.") from error
    event.listen(engine.sync_engine, "checkout", _still_open)
    return engine


def _sqlite(url: URL) -> AsyncEngine:
    # isolation_level None: transactions begin where we say so, not where Python's sqlite3 guesses.
    engine = create_async_engine(url, pool_size=5, max_overflow=5, connect_args={"isolation_level": None, "timeout": BUSY_SECONDS})

    @event.listens_for(engine.sync_engine, "connect")
    def settle_in(connection: Any, _: object) -> None:
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout={BUSY_SECONDS * 1000}")
        _write_ahead(cursor)
        for pragma in _PRAGMAS:
            cursor.execute(pragma)
        cursor.close()

    @event.listens_for(engine.sync_engine, "begin")
    def begin(connection: Connection) -> None:
        # A writer takes its lock at once: a reader that becomes a writer half-way cannot wait, it fails.
        connection.exec_driver_sql("BEGIN IMMEDIATE" if connection.get_execution_options().get("writes") else "BEGIN")

    return engine


def _write_ahead(cursor: Any) -> None:
    """Into WAL mode. When two open a new file at once SQLite refuses one of them at once, whatever the busy timeout: asked again."""
    end = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as refused:
            if "locked" not in str(refused) or time.monotonic() > end:
                raise
            time.sleep(0.01)
        else:
            return


def _still_open(connection: Any, _: object, __: object) -> None:
    """A connection that the server has closed is replaced before it is used. The driver knows; a ping would be three round trips."""
    if connection.driver_connection.is_closed():
        raise DisconnectionError("closed by the server")


def _foreign(place: str) -> str:
    return f"{place} holds tables of another program. Set OOMBOT_DATABASE_URL to a database of its own."


def _upgrade(connection: Connection, place: str) -> None:
    """Bring the schema to HEAD inside the caller's transaction; a second process that waited for the lock finds nothing to do."""
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(7061787)"))
    config = Config()
    config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
    config.attributes["connection"] = connection
    found = revision(connection)
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if found is not None and found not in known:
        raise StoreError(f"{place} was made by a newer oombot (schema {found}). Install that version, or use another database.")
    if found is None and set(inspect(connection).get_table_names()) & {"incidents", "contributions"}:
        raise StoreError(_foreign(place))
    try:
        command.upgrade(config, "head")
    except OperationalError as error:
        raise StoreError(explain(error, place)) from error
