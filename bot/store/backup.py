"""A copy of a running SQLite database, whole and consistent, and the way back. Standard library only."""

import sqlite3
from contextlib import closing
from pathlib import Path

from bot.store.errors import StoreError, explain


def backup(source: Path, target: Path) -> int:
    """Copy a database that may be in use into a new file; gives its size in bytes. StoreError when the file is there already."""
    if target.exists():
        raise StoreError(f"{target} exists already. Name a file that does not, so that no backup overwrites another.")
    try:
        with closing(sqlite3.connect(f"file:{_uri(source)}?mode=ro", uri=True)) as running, closing(sqlite3.connect(target)) as copy:
            running.backup(copy)
            copy.execute("PRAGMA journal_mode=DELETE")  # one file, nothing beside it
    except sqlite3.Error as error:
        target.unlink(missing_ok=True)
        raise StoreError(explain(error, str(target))) from error
    return target.stat().st_size


def restore(source: Path, target: Path) -> None:
    """Put a backup in the place of a database, page by page, also when that is open elsewhere. StoreError when it is no backup of ours."""
    if not source.is_file():
        raise StoreError(f"There is no backup {source}.")
    try:
        with closing(sqlite3.connect(f"file:{_uri(source)}?mode=ro", uri=True)) as copy:
            tables = {name for (name,) in copy.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if not {"alembic_version", "incidents", "contributions"} <= tables:
                raise StoreError(f"{source} is a database, but none of oombot's.")
            if copy.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
                raise StoreError(f"{source} is damaged. Nothing was changed; take another backup.")
            target.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(target)) as running:
                copy.backup(running)
    except (sqlite3.Error, OSError) as error:
        raise StoreError(explain(error, str(source))) from error


def _uri(path: Path) -> str:
    return str(path.absolute()).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
