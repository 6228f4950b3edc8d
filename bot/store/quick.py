"""Similar incidents and precedents by the short way: what `similar` gives, read with the standard library from an SQLite file.

The command line asks before it drops its turn, so that SQLAlchemy's import stays out of a diagnosis. Turns still lying dropped are not
looked at: they have no outcome yet.
"""

import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import Any

from bot.domain.incident import Origin
from bot.store.derived import columns
from bot.store.nearness import CANDIDATES, MOST_SIMILAR, MOST_TRIED, NEAREST, distance, shown, tried
from bot.store.schema import HEAD, sqlite_file

_BUSY_SECONDS = 0.2


def neighbours(url: str, origin: Origin, document: Mapping[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """(similar, precedents) that the channel of `origin` may see; both empty where there is no such file or it cannot be read."""
    path = sqlite_file(url)
    if path is None or not path.is_file():
        return [], []
    try:
        with closing(sqlite3.connect(path, timeout=_BUSY_SECONDS)) as connection:
            connection.row_factory = sqlite3.Row
            if [tuple(row) for row in connection.execute("SELECT version_num FROM alembic_version")] != [(HEAD,)]:
                return [], []
            return _neighbours(connection, origin, columns(document))
    except sqlite3.Error:
        return [], []


def _neighbours(
    connection: sqlite3.Connection, origin: Origin, asked: Mapping[str, Any]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    rows = sorted(_candidates(connection, origin, asked), key=lambda row: distance(asked, row))
    found = [(number, entry) for row in rows for number, entry in _tried(connection, row)]
    return [shown(row) for row in rows[:MOST_SIMILAR]], [entry for _, entry in found[:MOST_TRIED]]


def _candidates(connection: sqlite3.Connection, origin: Origin, asked: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    rows: dict[int, dict[str, Any]] = {}
    for fields in NEAREST:
        if any(asked[field] is None for field in fields):
            continue
        same = " AND ".join(f"{field} = ?" for field in fields)
        for more in ("AND outcome IS NOT NULL", ""):
            query = f"SELECT * FROM incidents WHERE team = ? AND (NOT private OR channel = ?) AND {same} {more} ORDER BY key DESC LIMIT ?"
            given = (origin.team, origin.channel, *(asked[field] for field in fields), CANDIDATES)
            for row in connection.execute(query, given):
                rows.setdefault(row["key"], dict(row))
        if len(rows) >= CANDIDATES:
            break
    return rows.values()


def _tried(connection: sqlite3.Connection, row: Mapping[str, Any]) -> Iterable[tuple[int, dict[str, Any]]]:
    query = "SELECT * FROM trials WHERE incident = ? AND withdrawn IS NULL AND result IS NOT NULL ORDER BY number"
    return [(trial["number"], tried(row, dict(trial))) for trial in connection.execute(query, (row["key"],))]
