"""A real database for every test: an SQLite file, and a PostgreSQL database of its own where OOMBOT_TEST_POSTGRES names a server."""

import asyncio
import os
import secrets
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import create_async_engine

from bot.store import deliveries
from bot.store.store import Store, open_store
from tests.conftest import migrate


@asynccontextmanager
async def postgres_database(template: str = "template1") -> AsyncIterator[str]:
    """The URL of a database of its own, empty or a copy of `template`, that is dropped afterwards."""
    server = os.environ.get("OOMBOT_TEST_POSTGRES")
    if not server:
        pytest.skip("OOMBOT_TEST_POSTGRES is not set")
    name = f"test_{secrets.token_hex(6)}"
    await run_sql(server, f"CREATE DATABASE {name} TEMPLATE {template}")
    try:
        yield make_url(server).set(database=name).render_as_string(hide_password=False)
    finally:
        await run_sql(server, f"DROP DATABASE {name} WITH (FORCE)")


async def run_sql(server: str, statement: str) -> None:
    engine = create_async_engine(server, isolation_level="AUTOCOMMIT")
    async with engine.connect() as connection:
        await connection.execute(text(statement))
    await engine.dispose()


@pytest.fixture(scope="session")
def migrated_postgres() -> Iterator[str | None]:
    """The name of a PostgreSQL database with today's schema, made once; None without a server."""
    server = os.environ.get("OOMBOT_TEST_POSTGRES")
    if not server:
        yield None
        return
    name = f"template_{secrets.token_hex(6)}"
    asyncio.run(run_sql(server, f"CREATE DATABASE {name}"))
    asyncio.run(migrate(make_url(server).set(database=name).render_as_string(hide_password=False)))
    yield name
    asyncio.run(run_sql(server, f"DROP DATABASE {name} WITH (FORCE)"))


@pytest.fixture
def sqlite_url(migrated_file: Path, tmp_path: Path) -> str:
    path = tmp_path / "oombot.db"
    shutil.copy(migrated_file, path)
    return f"sqlite+aiosqlite:///{path}"


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
async def url(request: pytest.FixtureRequest, sqlite_url: str, migrated_postgres: str | None) -> AsyncIterator[str]:
    if request.param == "sqlite":
        yield sqlite_url
        return
    async with postgres_database(migrated_postgres or "template1") as found:
        yield found


@pytest.fixture
async def store(url: str) -> AsyncIterator[Store]:
    opened = await open_store(url)
    yield opened
    await opened.close()


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Lets so many seconds pass for deliveries and their leases, at once: no test of them waits, and none depends on a quick machine."""
    passed, clock = [0.0], deliveries.clock
    monkeypatch.setattr(deliveries, "clock", lambda: clock() + int(sum(passed) * 1_000_000))
    return passed.append
