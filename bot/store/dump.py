"""Everything out and in: one record an incident with all that belongs to it, lossless; and from one database into another, row by row."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Table, func, insert, select, text, tuple_

from bot.store import index, rollups
from bot.store.derived import spoken
from bot.store.errors import StoreError
from bot.store.flaw import flaw
from bot.store.numbers import label
from bot.store.packed import pack, pack_document, unpack, unpack_document
from bot.store.tables import (
    audit,
    contributions,
    counters,
    diagnoses,
    figures,
    incidents,
    metadata,
    outcomes,
    replies,
    settings,
    trials,
    watches,
)
from bot.store.tables import rollups as rollups_table
from bot.store.upsert import upsert

PAGE = 500
SCHEMA = "oombot.export/1"
_PARTS = (contributions, diagnoses, trials, outcomes, figures)
PARTS = tuple(table.name for table in _PARTS)
"""What a record holds beside its incident, each a list of rows."""
_BESIDE = (counters, settings, watches, replies, audit)  # not: deliveries, which are work, and installs, which are secrets


def incident_types() -> dict[str, type]:
    """The columns of an incident and their Python types."""
    return {column.name: column.type.python_type for column in incidents.columns}


def export_page(connection: Connection, after: int) -> tuple[list[dict[str, Any]], int | None]:
    """The next incidents after a key, each as one record, and the key to go on from; None at the end."""
    query = select(incidents).where(incidents.c.key > after).order_by(incidents.c.key).limit(PAGE)
    rows = [dict(row) for row in connection.execute(query).mappings()]
    parts: dict[int, dict[str, list[dict[str, Any]]]] = {row["key"]: {table.name: [] for table in _PARTS} for row in rows}
    for table in _PARTS:
        found = select(table).where(table.c.incident.in_(list(parts))).order_by(table.c.incident, table.c.number)
        for row in connection.execute(found).mappings():
            parts[row["incident"]][table.name].append(_out(dict(row)))
    records = [{"schema": SCHEMA, "id": label(row["number"]), "incident": row, **parts[row["key"]]} for row in rows]
    return records, rows[-1]["key"] if len(rows) == PAGE else None


def export_beside(connection: Connection) -> list[dict[str, Any]]:
    """Records of what belongs to no incident: counters, settings, watches, replies, the audit trail."""
    return [
        {"schema": SCHEMA, "table": table.name, "row": dict(row)}
        for table in _BESIDE
        for row in connection.execute(select(table).order_by(*table.primary_key.columns)).mappings()
    ]


def flaw_of(record: Mapping[str, Any]) -> str | None:
    """Why a record cannot be imported, None where it can."""
    return flaw(record, incidents, _PARTS, _BESIDE)


def import_records(connection: Connection, records: Iterable[Mapping[str, Any]]) -> tuple[int, int]:
    """Write records; gives how many incidents came in and how many were there already. StoreError when an id is another incident here."""
    come = there = 0
    for page in _pages(records):
        found = [record for record in page if "incident" in record]
        new = [record for record in found if not _is_there(connection, record["incident"])]
        come, there = come + len(new), there + len(found) - len(new)
        _write_incidents(connection, new)
        for record in page:
            if "table" in record:
                _write_beside(connection, record)
    return come, there


def copy_page(source: Connection, table: Table, after: Sequence[Any] | None) -> list[dict[str, Any]]:
    """The next rows of a table in key order, as they are."""
    keys = list(table.primary_key.columns)
    query = select(table).order_by(*keys).limit(PAGE)
    if after is not None:
        query = query.where(_after(keys, after))
    return [dict(row) for row in source.execute(query).mappings()]


def copied_tables() -> list[Table]:
    """Every table that holds rows of its own, those first that others point to."""
    return [table for table in metadata.sorted_tables if table.name != "search"]


def write_page(target: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Rows as they are."""
    if rows:
        target.execute(insert(table), list(rows))


def finish_copy(connection: Connection) -> None:
    """Index what was copied, and let ids count on behind it."""
    after: int | None = -(2**62)
    while after is not None:
        after = _index_page(connection, after)
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT setval(pg_get_serial_sequence('deliveries', 'key'), coalesce(max(key), 1)) FROM deliveries"))


def count_incidents(connection: Connection) -> int:
    """All incidents of all teams."""
    query = select(func.coalesce(func.sum(rollups_table.c.count), 0)).where(rollups_table.c.field == "total")
    return int(connection.execute(query).scalar_one())


def _index_page(connection: Connection, after: int) -> int | None:
    query = select(incidents).where(incidents.c.key > after).order_by(incidents.c.key).limit(PAGE)
    rows = [dict(row) for row in connection.execute(query).mappings()]
    _index(connection, rows)
    return rows[-1]["key"] if len(rows) == PAGE else None


def must_be_empty(connection: Connection) -> None:
    """StoreError when a database to copy into has incidents of its own."""
    if connection.execute(select(func.count()).select_from(incidents)).scalar_one():
        raise StoreError("The database to copy into already has incidents. Name an empty one.")


def _write_incidents(connection: Connection, records: Sequence[Mapping[str, Any]]) -> None:
    rows = [_whole(incidents, record["incident"]) for record in records]
    write_page(connection, incidents, rows)
    for table in _PARTS:
        parts = [_in(_whole(table, one)) for record in records for one in record.get(table.name, ())]
        write_page(connection, table, parts)
        if table is trials:
            rollups.adjust_tried(connection, (), parts)
    _index(connection, rows)
    rollups.adjust(connection, (), rows)
    for row in rows:
        _raise_counter(connection, {"enterprise": row["enterprise"], "team": row["team"], "name": "incident", "value": row["number"]})


def _index(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    said: dict[int, list[dict[str, Any]]] = {row["key"]: [] for row in rows}
    query = select(contributions.c.incident, contributions.c.text).where(contributions.c.incident.in_(list(said)))
    for key, packed in connection.execute(query.order_by(contributions.c.incident, contributions.c.number)):
        said[key].append({"text": unpack(packed)})
    index.put(connection, [(row, spoken(said[row["key"]])) for row in rows])


def _is_there(connection: Connection, row: Mapping[str, Any]) -> bool:
    number = select(incidents.c.key).where(incidents.c.team == row["team"], incidents.c.number == row["number"])
    key = connection.execute(number).scalar()
    if key is not None and key != row["key"]:
        raise StoreError(
            f"{label(row['number'])} of team {row['team']} is another incident here. Nothing was imported; use an empty database."
        )
    return key is not None


def _write_beside(connection: Connection, record: Mapping[str, Any]) -> None:
    table, row = metadata.tables[record["table"]], _whole(metadata.tables[record["table"]], record["row"])
    if table is counters:
        _raise_counter(connection, row)
        return
    connection.execute(upsert(connection, table).values(**row).on_conflict_do_nothing())


def _raise_counter(connection: Connection, row: Mapping[str, Any]) -> None:
    statement = upsert(connection, counters).values(**row)
    higher = statement.on_conflict_do_update(
        index_elements=("team", "name"), set_={"value": statement.excluded.value}, where=counters.c.value < statement.excluded.value
    )
    connection.execute(higher)


def _after(keys: Sequence[Any], last: Sequence[Any]) -> Any:
    return tuple_(*keys) > tuple_(*last) if len(keys) > 1 else keys[0] > last[0]


def _pages(records: Iterable[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    page: list[Mapping[str, Any]] = []
    for record in records:
        page.append(record)
        if len(page) == PAGE:
            yield page
            page = []
    yield page


def _out(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as JSON takes it: texts and documents unpacked."""
    shown = dict(row)
    for name, value in row.items():
        if isinstance(value, bytes):
            shown[name] = unpack(value) if name == "text" else unpack_document(value)
    return shown


def _whole(table: Table, row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with every column: an export of an earlier version may lack some."""
    return {column.name: row.get(column.name) for column in table.columns}


def _in(row: Mapping[str, Any]) -> dict[str, Any]:
    """The same backwards."""
    packed = dict(row)
    for name in ("document", "change"):
        if name in packed:
            packed[name] = pack_document(packed[name])
    if packed.get("text") is not None:
        packed["text"] = pack(packed["text"])
    return packed
