"""The whole history out and in again, as JSON Lines or CSV, nothing lost."""

import csv
import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Literal, TextIO

from bot.domain.foreign import foreign_json
from bot.store.audit import Deed
from bot.store.dump import PARTS, SCHEMA, flaw_of, incident_types
from bot.usecases.audit import account
from bot.usecases.desk import Desk, kept
from bot.usecases.reply import Reply, Unusable, notice
from bot.usecases.wording import incidents

Form = Literal["jsonl", "csv"]

_UNSAFE = tuple("=+-@\t\r'")  # a spreadsheet would compute such a cell


async def export(desk: Desk, out: TextIO, form: Form = "jsonl") -> Reply:
    """Write every record; a CSV has one row an incident, with what belongs to it as JSON in further cells."""
    count = 0
    names = ["table", "id", *incident_types(), *PARTS, "row"]
    table = csv.DictWriter(out, names, lineterminator="\n") if form == "csv" else None
    if table:
        table.writeheader()
    await kept(desk).note(Deed("exported", account()))
    async for record in kept(desk).export_rows():
        count += "incident" in record
        if table:
            table.writerow(_cells(record))
        else:
            out.write(json.dumps(record, ensure_ascii=True) + "\n")
    return notice(f"{incidents(count)} written.")


async def take_in(desk: Desk, source: TextIO, form: Form = "jsonl") -> Reply:
    """Read what `export` wrote; all or nothing. Incidents that are there already are left as they are."""
    records = _from_csv(source) if form == "csv" else _from_lines(source)
    come, there = await kept(desk).import_rows(records)
    await kept(desk).note(Deed("imported", account(), about=incidents(come)))
    says = f"{incidents(come)} came in" + (f", {there:,} {'was' if there == 1 else 'were'} there already." if there else ".")
    return notice(says)


def _from_lines(source: TextIO) -> Iterator[Mapping[str, Any]]:
    for number, line in enumerate(source, start=1):
        if line.strip():
            try:
                record = foreign_json(line)
            except ValueError as error:
                raise Unusable(f"Line {number} is not JSON ({error}). Nothing was imported.") from error
            yield _checked(record, number)


def _from_csv(source: TextIO) -> Iterator[Mapping[str, Any]]:
    csv.field_size_limit(sys.maxsize)
    number = 1
    try:
        for number, cells in enumerate(csv.DictReader(source), start=2):
            yield _checked(_record(cells), number)
    except (KeyError, ValueError, TypeError, AttributeError, csv.Error) as error:
        raise Unusable(f"Row {number} is not as `oombot db export` writes it ({error}). Nothing was imported.") from error


def _checked(record: Any, number: int) -> Mapping[str, Any]:
    if not isinstance(record, dict) or record.get("schema") != SCHEMA:
        raise Unusable(f"Line {number} is no record of {SCHEMA}. Nothing was imported; give a file that `oombot db export` wrote.")
    if (flaw := flaw_of(record)) is not None:
        raise Unusable(f"Line {number} cannot be imported: {flaw}. Nothing was imported; give a file as `oombot db export` wrote it.")
    return record


def _cells(record: Mapping[str, Any]) -> dict[str, str]:
    if "table" in record:
        return {"table": record["table"], "row": json.dumps(record["row"])}
    parts = {name: json.dumps(record[name]) for name in PARTS}
    return {"table": "incidents", "id": record["id"], **{name: _cell(value) for name, value in record["incident"].items()}, **parts}


def _record(cells: Mapping[str, str]) -> dict[str, Any]:
    if cells["table"] != "incidents":
        return {"schema": SCHEMA, "table": cells["table"], "row": foreign_json(cells["row"])}
    incident = {name: _value(cells[name], kind) for name, kind in incident_types().items()}
    return {"schema": SCHEMA, "id": cells["id"], "incident": incident, **{name: foreign_json(cells[name]) for name in PARTS}}


def _cell(value: Any) -> str:
    """An empty cell is None; an apostrophe stands before text that is empty or that a spreadsheet would take for a formula."""
    if value is None:
        return ""
    if isinstance(value, str):
        return "'" + value if not value or value.startswith(_UNSAFE) else value
    return str(int(value))


def _value(cell: str, kind: type) -> Any:
    if cell == "":
        return None
    if kind is str:
        return cell.removeprefix("'")
    return bool(int(cell)) if kind is bool else int(cell)
