"""A real database for every test: an SQLite file, and a PostgreSQL database of its own where OOMBOT_TEST_POSTGRES names a server."""

import asyncio
import os
import secrets
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import create_async_engine

from bot.store.store import Store, open_store


@asynccontextmanager
async def postgres_database() -> AsyncIterator[str]:
    """The URL of an empty database that is dropped afterwards."""
    server = os.environ.get("OOMBOT_TEST_POSTGRES")
    if not server:
        pytest.skip("OOMBOT_TEST_POSTGRES is not set")
    name = f"test_{secrets.token_hex(6)}"
    engine = create_async_engine(server, isolation_level="AUTOCOMMIT")
    async with engine.connect() as connection:
        await connection.execute(text(f"CREATE DATABASE {name}"))
    try:
        yield make_url(server).set(database=name).render_as_string(hide_password=False)
    finally:
        async with engine.connect() as connection:
            await connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
        await engine.dispose()


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An SQLite file with today's schema, made once."""
    path = tmp_path_factory.mktemp("store") / "migrated.db"

    async def make() -> None:
        store = await open_store(f"sqlite+aiosqlite:///{path}")
        await store.close()

    asyncio.run(make())
    yield path


@pytest.fixture
def sqlite_url(migrated_file: Path, tmp_path: Path) -> str:
    path = tmp_path / "oombot.db"
    shutil.copy(migrated_file, path)
    return f"sqlite+aiosqlite:///{path}"


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
async def url(request: pytest.FixtureRequest, sqlite_url: str) -> AsyncIterator[str]:
    if request.param == "sqlite":
        yield sqlite_url
        return
    async with postgres_database() as found:
        yield found


@pytest.fixture
async def store(url: str) -> AsyncIterator[Store]:
    opened = await open_store(url)
    yield opened
    await opened.close()
