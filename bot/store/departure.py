"""A workspace that removed the bot: every row of it goes, some incidents at a time so that others get their turn."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Table, delete, select, union

from bot.store import audit, index, rollups
from bot.store.audit import Deed
from bot.store.deliveries import HELD
from bot.store.derived import spoken
from bot.store.packed import unpack
from bot.store.tables import contributions, deliveries, incidents, installs, metadata, trials

_OF_INCIDENTS = [table for table in reversed(metadata.sorted_tables) if "incident" in table.c and table.name != "search"]
"""What points to an incident, those first that nothing points to."""

_APART = ("incidents", "search", "rollups", "counters", *(table.name for table in _OF_INCIDENTS))
"""Goes with the incidents; but not the counter of their numbers: a button of an old message must never mean a new incident."""

_BESIDE = [table for table in metadata.sorted_tables if "team" in table.c and table.name not in _APART]


def teams_of(connection: Connection, enterprise: str, team: str | None) -> list[str]:
    """`team` and every workspace of an organisation, but not those that have an installation of their own."""
    own = select(installs.c.team).where(installs.c.team != "")
    tables = [table for table in (incidents, *_BESIDE) if "enterprise" in table.c]
    found = [select(table.c.team).where(table.c.enterprise == enterprise, table.c.team.not_in(own)) for table in tables]
    return sorted({*connection.execute(union(*found)).scalars(), *([team] if team else [])} - {""})


def drop_work(connection: Connection, team: str, before: int | None) -> None:
    """What waits or is worked on: a worker whose delivery is gone writes nothing more. Not what the caller holds itself."""
    connection.execute(_of_team(deliveries, team, before))


def drop_incidents(connection: Connection, team: str, before: int | None, page: int) -> int:
    """Up to `page` incidents with all that belongs to them, in the search and in the counts too; gives how many."""
    query = select(incidents).where(incidents.c.team == team, *([] if before is None else [incidents.c.key < before]))
    rows = [dict(row) for row in connection.execute(query.order_by(incidents.c.key).limit(page).with_for_update()).mappings()]
    keys = [row["key"] for row in rows]
    index.take_out(connection, [(row, said) for row, said in zip(rows, _said(connection, keys), strict=True)])
    tried = connection.execute(select(trials).where(trials.c.incident.in_(keys))).mappings().all()
    rollups.adjust_tried(connection, [dict(row) for row in tried], ())
    for table in _OF_INCIDENTS:
        connection.execute(delete(table).where(table.c.incident.in_(keys)))
    connection.execute(delete(incidents).where(incidents.c.key.in_(keys)))
    rollups.adjust(connection, rows, ())
    return len(rows)


def drop_beside(connection: Connection, team: str, before: int | None) -> None:
    """All else: installation, watches, settings, notes on messages, the audit trail but for one line that says so."""
    for table in _BESIDE:
        connection.execute(_of_team(table, team, before))
    audit.note(connection, Deed("uninstalled", None, team))


def _of_team(table: Table, team: str, before: int | None) -> Any:
    """`before`: only what is older, where rows say how old they are."""
    moment = table.c.get("at", table.c.get("key"))
    gone = delete(table).where(table.c.team == team, *([] if before is None or moment is None else [moment < before]))
    held = HELD.get()
    return gone.where(table.c.key != held[0]) if table is deliveries and held is not None else gone


def _said(connection: Connection, keys: Sequence[int]) -> list[str]:
    c = contributions.c
    texts: dict[int, list[dict[str, Any]]] = {key: [] for key in keys}
    query = select(c.incident, c.text).where(c.incident.in_(keys)).order_by(c.incident, c.number)
    for key, text in connection.execute(query):
        texts[key].append({"text": unpack(text)})
    return [spoken(texts[key]) for key in keys]
