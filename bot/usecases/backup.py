"""A copy of the database, the way back, and the move to PostgreSQL."""

from pathlib import Path

from bot.settings import Settings
from bot.store import backup as files
from bot.store.audit import Deed
from bot.store.schema import sqlite_file
from bot.store.store import open_store
from bot.usecases.audit import account
from bot.usecases.desk import Desk, kept
from bot.usecases.reply import Reply, Unusable, notice
from bot.usecases.wording import incidents

_OTHER = "This database is PostgreSQL: use its own pg_dump and pg_restore."


async def backup(settings: Settings, target: Path) -> Reply:
    """A consistent copy of the SQLite database into a new file; the bot may go on working."""
    source = _file(settings)
    if not source.is_file():
        raise Unusable(f"There is no database {source} yet, so there is nothing to back up.")
    size = files.backup(source, target)
    return notice(f"{target} holds the whole database ({size:,} bytes). It holds evidence: keep it as safe as the database.")


async def restore(settings: Settings, source: Path, *, replace: bool = False) -> Reply:
    """Put a backup in the database's place, and bring it to today's schema. Incidents that are there already need `replace`."""
    target = _file(settings)
    files.check(source)
    if source.resolve() == target.resolve():  # noqa: ASYNC240 - the command line waits for nobody else
        raise Unusable(f"{source} is the database itself. Name a backup of it.")
    held = files.held(target)
    if held != 0 and not replace:
        what = "cannot be read, so nobody can tell what it holds" if held is None else f"holds {incidents(held)} already"
        way = "With --replace the backup takes its place, and a copy of it is kept beside it."
        raise Unusable(f"{target} {what}. Nothing was changed. {way}")
    aside = files.set_aside(target) if held != 0 else None
    files.restore(source, target)
    store = await open_store(settings.database)
    try:
        await store.note(Deed("restored", account()))
        count = (await store.state())["incidents"]
    finally:
        await store.close()
    was = f" What was there before is in {aside}." if aside else ""
    return notice(f"{target} is as it was in {source}: {incidents(count)}.{was}")


async def copy(desk: Desk, url: str) -> Reply:
    """Every row into an empty database of the other kind."""
    target = await open_store(url)
    try:
        count = await kept(desk).copy_to(target)
        await kept(desk).note(Deed("copied", account()))
    finally:
        await target.close()
    return notice(f"{incidents(count)} copied to {target.place}. Set OOMBOT_DATABASE_URL to it.")


def _file(settings: Settings) -> Path:
    found = sqlite_file(settings.database)
    if found is None:
        raise Unusable(_OTHER)
    return found
