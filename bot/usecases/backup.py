"""A copy of the database, the way back, and the move to PostgreSQL."""

from pathlib import Path

from bot.settings import Settings
from bot.store import backup as files
from bot.store.schema import sqlite_file
from bot.store.store import open_store
from bot.usecases.desk import Desk
from bot.usecases.recall import kept
from bot.usecases.reply import Reply, Unusable

_OTHER = "This database is PostgreSQL: use its own pg_dump and pg_restore."


async def backup(settings: Settings, target: Path) -> Reply:
    """A consistent copy of the SQLite database into a new file; the bot may go on working."""
    source = _file(settings)
    if not source.is_file():
        raise Unusable(f"There is no database {source} yet, so there is nothing to back up.")
    size = files.backup(source, target)
    return _notice(f"{target} holds the whole database ({size:,} bytes). It holds evidence: keep it as safe as the database.")


async def restore(settings: Settings, source: Path) -> Reply:
    """Put a backup in the database's place, and bring it to today's schema."""
    target = _file(settings)
    files.restore(source, target)
    store = await open_store(settings.database)
    count = (await store.state())["incidents"]
    await store.close()
    return _notice(f"{target} is as it was in {source}: {count:,} incidents.")


async def copy(desk: Desk, url: str) -> Reply:
    """Every row into an empty database of the other kind."""
    target = await open_store(url)
    try:
        count = await kept(desk).copy_to(target)
    finally:
        await target.close()
    return _notice(f"{count:,} incidents copied to {target.place}. Set OOMBOT_DATABASE_URL to it.")


def _file(settings: Settings) -> Path:
    found = sqlite_file(settings.database)
    if found is None:
        raise Unusable(_OTHER)
    return found


def _notice(says: str) -> Reply:
    return Reply("notice", {"schema": "oombot.notice/1", "says": says})
