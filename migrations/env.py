"""Alembic's way in: on the connection that the store hands over, or, from Alembic's own command line, on OOMBOT_DATABASE_URL."""

import asyncio
from typing import Any

from alembic import context
from sqlalchemy import Connection

from bot.settings import load_settings
from bot.store.engine import Database
from bot.store.tables import metadata


def ours(_: Any, name: str | None, kind: str, __: bool, ___: Any) -> bool:
    """On SQLite the search table is FTS5's, with tables of its own beside it: nothing for Alembic to compare."""
    on_sqlite = context.get_context().dialect.name == "sqlite"
    return not (on_sqlite and kind in ("table", "index") and str(name).removeprefix("ix_").startswith("search"))


def run(connection: Connection) -> None:
    context.configure(connection=connection, target_metadata=metadata, include_object=ours, render_as_batch=True)
    with context.begin_transaction():
        context.run_migrations()


async def run_on_settings() -> None:
    database = Database(load_settings().database)
    async with database.write() as connection:
        await connection.run_sync(run)
    await database.close()


given = context.config.attributes.get("connection")
if given is not None:
    run(given)
else:
    asyncio.run(run_on_settings())
