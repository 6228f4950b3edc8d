"""The short way in for the command line: one finished turn into an existing SQLite file, without the half second of SQLAlchemy's import.

The turn lies durably in `deliveries` under its final id; whoever opens the store next moves it into the tables (`take_in`).
"""

import json
import sqlite3
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from bot.domain.incident import Contribution, Origin
from bot.store.numbers import label
from bot.store.packed import cut
from bot.store.schema import HEAD, sqlite_file

_BUSY_SECONDS = 0.2

_ALLOCATE = """
INSERT INTO counters (team, name, value, enterprise) VALUES (?, 'incident', 1, ?)
ON CONFLICT (team, name) DO UPDATE SET value = value + 1 RETURNING value
"""
_KEEP = """
INSERT INTO deliveries (enterprise, team, channel, private, thread, dedup, kind, payload, at, ready_at, state)
VALUES (?, ?, ?, ?, ?, ?, 'drop', ?, ?, ?, 'drop')
"""


def drop(url: str, origin: Origin, contributions: Sequence[Contribution], document: Mapping[str, Any]) -> str | None:
    """Keep a turn as a new incident and give its id; None when the caller must take the full way: no SQLite file, another schema, trouble.

    Trouble (locked, read-only, full) is not explained here: the full way meets it again and says it in a sentence.
    """
    path = sqlite_file(url)
    if path is None or not path.is_file():
        return None
    try:
        connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
    except sqlite3.Error:
        return None
    try:
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("BEGIN IMMEDIATE")
        if connection.execute("SELECT version_num FROM alembic_version").fetchall() != [(HEAD,)]:
            return None
        return _keep(connection, origin, contributions, document)
    except sqlite3.Error:
        return None
    finally:
        connection.close()  # what was not committed is rolled back


def _keep(connection: sqlite3.Connection, origin: Origin, contributions: Sequence[Contribution], document: Mapping[str, Any]) -> str:
    number = int(connection.execute(_ALLOCATE, (origin.team, origin.enterprise or "")).fetchone()[0])
    now = time.time_ns() // 1000
    payload = write_turn(number, origin, contributions, document, now)
    whose = (origin.enterprise or "", origin.team, origin.channel or "", origin.private, origin.thread or "")
    connection.execute(_KEEP, (*whose, f"drop:{number}", payload, now, now))
    connection.execute("COMMIT")
    return label(number)


def write_turn(number: int, origin: Origin, contributions: Sequence[Contribution], document: Mapping[str, Any], now: int) -> bytes:
    """A turn as bytes. zlib level 1: the person waits for this."""
    given = []
    for one in contributions:
        text, shortened = (None, False) if one.text is None else cut(one.text)
        given.append(
            asdict(one) | {"text": text, "truncated": one.truncated or shortened, "at": one.at.isoformat() if one.at else None},
        )
    turn = {"number": number, "at": now, "origin": asdict(origin), "contributions": given, "document": document}
    return zlib.compress(json.dumps(turn).encode("ascii"), 1)


def read_turn(payload: bytes) -> tuple[int, int, Origin, tuple[Contribution, ...], dict[str, Any]]:
    """The same backwards: number, moment in microseconds, origin, contributions, document."""
    turn = json.loads(zlib.decompress(payload))
    given = tuple(Contribution(**{**one, "at": datetime.fromisoformat(one["at"]) if one["at"] else None}) for one in turn["contributions"])
    return turn["number"], turn["at"], Origin(**turn["origin"]), given, turn["document"]
