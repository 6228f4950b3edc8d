"""What is wrong with a record that somebody gives to import, before anything of it is written."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Column, LargeBinary, Table

_FOLDED = {"text": (str, "text"), "document": (dict, "an object"), "change": (dict, "an object")}
"""Columns that lie packed in the database, and what stands for them in an export."""
_SAID = {str: "text", int: "a whole number", bool: "true or false"}
_MOST = 2**63 - 1


def flaw(record: Mapping[str, Any], incidents: Table, parts: Sequence[Table], beside: Sequence[Table]) -> str | None:
    """The first thing that keeps a record from being written, as a clause: `contributions 2 has no kind`. None where there is none."""
    return next(_flaws(record, incidents, parts, beside), None)


def _flaws(record: Mapping[str, Any], incidents: Table, parts: Sequence[Table], beside: Sequence[Table]) -> Iterator[str]:
    if "table" in record:
        table = next((table for table in beside if table.name == record["table"]), None)
        if table is None:
            yield f"there is no table {str(record['table'])[:40]!r} that can be imported"
        else:
            yield from _row(table, record.get("row"), f"its {table.name} row")
        return
    yield from _row(incidents, record.get("incident"), "its incident")
    for table in parts:
        rows = record.get(table.name, [])
        if not isinstance(rows, list):
            yield f"its {table.name} are no list"
            return
        for number, row in enumerate(rows, 1):
            yield from _row(table, row, f"its {table.name} {number}")
            if row["incident"] != record["incident"]["key"]:
                yield f"its {table.name} {number} belongs to another incident"


def _row(table: Table, row: Any, what: str) -> Iterator[str]:
    if not isinstance(row, dict):
        yield f"{what} is no object"
        return
    columns = {column.name: column for column in table.columns}
    yield from (f"{what} has a field {name[:40]!r} that this version does not know" for name in row if name not in columns)
    for name, column in columns.items():
        if row.get(name) is None:
            if not column.nullable:
                yield f"{what} has no {name}"
        elif (wants := _wants(column, row[name])) is not None:
            yield f"{name} of {what} is not {wants}"


def _wants(column: Column[Any], value: Any) -> str | None:
    """What a column takes, None where the value is that."""
    kind, said = _FOLDED.get(column.name, (bytes, "")) if isinstance(column.type, LargeBinary) else (column.type.python_type, "")
    fits = type(value) is kind and not (kind is int and abs(value) > _MOST)
    if kind is str and fits and not said:  # packed text may be anything, a text column may not
        fits = "\0" not in value and value == value.encode("utf-8", "replace").decode()
    return None if fits else said or _SAID.get(kind, kind.__name__)
