"""Counts by channel and value, kept beside the incidents so that nobody has to count a million rows."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, delete, func, select

from bot.store.derived import counted
from bot.store.tables import rollups
from bot.store.upsert import upsert


def adjust(connection: Connection, gone: Iterable[Mapping[str, Any]], come: Iterable[Mapping[str, Any]]) -> None:
    """Count rows that changed: as they were, and as they are."""
    change: Counter[tuple[str, str, str, str]] = Counter()
    for rows, step in ((gone, -1), (come, 1)):
        for row in rows:
            for field, value in counted(row):
                change[row["team"], field, value, row["channel"]] += step
    names = ("team", "field", "value", "channel")
    # In one order everywhere: two replicas that count the same words never wait for each other in a circle.
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
