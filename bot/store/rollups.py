"""Counts by channel and value, kept beside incidents and trials so that nobody has to count a million rows."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, delete, func, select

from bot.store.derived import tried, weighed
from bot.store.tables import rollups
from bot.store.upsert import upsert

Row = Mapping[str, Any]
Weights = Callable[[Row], Iterable[tuple[str, str, int]]]


def adjust(connection: Connection, gone: Iterable[Mapping[str, Any]], come: Iterable[Mapping[str, Any]]) -> None:
    """Count incidents that changed: as they were, and as they are."""
    _adjust(connection, gone, come, weighed)


def adjust_tried(connection: Connection, gone: Iterable[Mapping[str, Any]], come: Iterable[Mapping[str, Any]]) -> None:
    """Count trials that changed. In a transaction before `adjust`: two replicas that count never wait for each other in a circle."""
    _adjust(connection, gone, come, tried)


def _adjust(connection: Connection, gone: Iterable[Row], come: Iterable[Row], weights: Weights) -> None:
    change: Counter[tuple[str, str, str, str]] = Counter()
    for rows, sign in ((gone, -1), (come, 1)):
        for row in rows:
            for field, value, weight in weights(row):
                change[row["team"], field, value, row["channel"]] += sign * weight
    names = ("team", "field", "value", "channel")
    # In one order everywhere, for the same reason.
    steps = [{**dict(zip(names, key, strict=True)), "count": step} for key, step in sorted(change.items()) if step]
    if not steps:
        return
    insert = upsert(connection, rollups)
    connection.execute(insert.on_conflict_do_update(index_elements=names, set_={"count": rollups.c.count + insert.excluded.count}), steps)
    for (team, field, value, channel), step in change.items():
        if step < 0:
            where = (rollups.c.team == team, rollups.c.field == field, rollups.c.value == value, rollups.c.channel == channel)
            connection.execute(delete(rollups).where(*where, rollups.c.count <= 0))


def values(connection: Connection, team: str, field: str, channels: frozenset[str] | None) -> dict[str, int]:
    """Every value of a field in the team, as far as these channels show it, and how many incidents have it."""
    query = select(rollups.c.value, func.sum(rollups.c.count)).group_by(rollups.c.value)
    query = query.where(rollups.c.team == team, rollups.c.field == field)
    if channels is not None:
        query = query.where(rollups.c.channel.in_(sorted(channels)))
    found = {value: int(count) for value, count in connection.execute(query)}
    return dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))
