"""A copy of a running SQLite database, whole and consistent, and the way back. Standard library only."""

import sqlite3
from contextlib import closing
from itertools import count
from pathlib import Path

from bot.store.errors import StoreError, explain
from bot.store.private import ALONE, private_file, private_folder


def backup(source: Path, target: Path) -> int:
    """Copy a database that may be in use into a new file; gives its size in bytes. StoreError when the file is there already."""
    if target.exists():
        raise StoreError(f"{target} exists already. Name a file that does not, so that no backup overwrites another.")
    try:
        with closing(sqlite3.connect(f"file:{_uri(source)}?mode=ro", uri=True)) as running:
            running.execute("SELECT count(*) FROM sqlite_master")  # else a damaged source is blamed on the target
    except sqlite3.Error as error:
        raise StoreError(explain(error, str(source))) from error
    private_file(target)
    try:
        with closing(sqlite3.connect(f"file:{_uri(source)}?mode=ro", uri=True)) as running, closing(sqlite3.connect(target)) as copy:
            running.backup(copy)
            copy.execute("PRAGMA journal_mode=DELETE")  # one file, nothing beside it
            whole = str(copy.execute("PRAGMA quick_check(1)").fetchone()[0]) == "ok"
    except sqlite3.Error as error:
        target.unlink(missing_ok=True)
        raise StoreError(explain(error, str(target))) from error
    if not whole:
        raise StoreError(f"{source} is damaged, and so is its copy {target}: keep both, and restore an earlier backup.")
    return target.stat().st_size


def restore(source: Path, target: Path) -> None:
    """Put a backup in the place of a database, page by page, also when that is open elsewhere. StoreError when it is no backup of ours."""
    check(source)
    try:
        private_folder(target.absolute().parent)
        private_file(target)
        with closing(sqlite3.connect(f"file:{_uri(source)}?mode=ro", uri=True)) as copy, closing(sqlite3.connect(target)) as running:
            copy.backup(running)
    except (sqlite3.Error, OSError) as error:
        raise StoreError(explain(error, str(target))) from error


def check(source: Path) -> None:
    """StoreError when a file is no whole backup of ours."""
    if not source.is_file():
        raise StoreError(f"There is no backup {source}.")
    try:
        with closing(sqlite3.connect(f"file:{_uri(source)}?mode=ro", uri=True)) as copy:
            tables = {name for (name,) in copy.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if not {"alembic_version", "incidents", "contributions"} <= tables:
                raise StoreError(f"{source} is a database, but none of oombot's.")
            if copy.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
                raise StoreError(f"{source} is damaged. Nothing was changed; take another backup.")
    except sqlite3.Error as error:
        raise StoreError(f"{source} is no backup that can be read ({error}). Nothing was changed; take another backup.") from error


def held(path: Path) -> int | None:
    """How many incidents a database holds; 0 where there is none yet, None where nobody can tell since it cannot be read."""
    if not path.exists() or not path.stat().st_size:
        return 0
    try:
        with closing(sqlite3.connect(f"file:{_uri(path)}?mode=ro", uri=True)) as there:
            tables = {name for (name,) in there.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if "incidents" not in tables:
                return None if tables else 0  # somebody else's tables: not ours to count
            return int(there.execute("SELECT count(*) FROM incidents").fetchone()[0])
    except sqlite3.Error:
        return None


def set_aside(path: Path) -> Path:
    """A copy of a database beside it, under a name that is free; what cannot be read is moved there as it is. StoreError when it fails."""
    aside = next(one for n in count(1) if not (one := path.with_name(f"{path.name}.replaced-{n}")).exists())
    if held(path) is not None:
        backup(path, aside)
        return aside
    try:
        for ending in ("", "-wal", "-shm"):
            if (part := path.with_name(path.name + ending)).exists():
                part.rename(aside.with_name(aside.name + ending)).chmod(ALONE)
    except OSError as error:
        raise StoreError(f"{path} cannot be moved to {aside} ({error.strerror}). Nothing was changed.") from error
    return aside


def _uri(path: Path) -> str:
    return str(path.absolute()).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
