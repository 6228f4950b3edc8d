"""What the team has met before: similar incidents, what was tried in them, and what their engines measured."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, select

from bot.domain.incident import RESULTS, Origin
from bot.store.derived import FIGURES, columns, model_key
from bot.store.hits import Hits
from bot.store.nearness import CANDIDATES, MOST_SIMILAR, MOST_TRIED, NEAREST, distance, shown, tried
from bot.store.numbers import label, number_of
from bot.store.sight import Sight, visible
from bot.store.tables import figures, incidents, trials

MOST_MEASURED = 200  # ranks


def similar(connection: Connection, who: Sight | Origin, document: Mapping[str, Any], leave_out: str | None) -> list[dict[str, Any]]:
    """Incidents of the same phase and the same family or GPU: the nearest first, those with an outcome before those without."""
    asked = columns(document)
    rows = _candidates(connection, who, asked, number_of(leave_out) if leave_out else None)
    return [shown(row) for row in sorted(rows, key=lambda row: distance(asked, row))[:MOST_SIMILAR]]


def precedents(connection: Connection, who: Sight | Origin, document: Mapping[str, Any], leave_out: str | None) -> list[dict[str, Any]]:
    """What was tried in similar incidents and how it ended: one entry for each trial with a result, the nearest first."""
    asked = columns(document)
    rows = {row["key"]: row for row in _candidates(connection, who, asked, number_of(leave_out) if leave_out else None)}
    query = select(trials).where(trials.c.incident.in_(list(rows)), trials.c.withdrawn.is_(None), trials.c.result.is_not(None))
    found = []
    for row in connection.execute(query).mappings():
        incident = rows[row["incident"]]
        found.append((distance(asked, incident), row["number"], tried(incident, dict(row))))
    return [entry for *_, entry in sorted(found, key=lambda one: one[:2])[:MOST_TRIED]]


def measured(connection: Connection, who: Sight | Origin, model: str) -> list[dict[str, Any]]:
    """Terms that engines reported for a model, in bytes per rank, the newest first. None: not reported."""
    newest = select(figures).where(visible(figures, who), figures.c.model == model_key(model))
    ours = newest.order_by(figures.c.incident.desc(), figures.c.number).limit(MOST_MEASURED).subquery()
    query = select(ours, incidents.c.number.label("incident_number"), incidents.c.version).join(
        incidents, incidents.c.key == ours.c.incident
    )
    query = query.order_by(ours.c.incident.desc(), ours.c.number)
    return [_figure(dict(row)) for row in connection.execute(query).mappings()]


def _candidates(connection: Connection, who: Any, asked: Mapping[str, Any], leave_out: int | None) -> list[dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {}
    for fields in NEAREST:
        if any(asked[field] is None for field in fields):
            continue
        values = {field: [asked[field]] for field in fields}
        for more in ({"outcome": RESULTS}, {}):
            for row in Hits(connection, who, {**values, **more}).newest(CANDIDATES):
                found.setdefault(row["key"], row)
        if len(found) >= CANDIDATES:
            break
    return [row for row in found.values() if row["number"] != leave_out]


def _figure(row: Mapping[str, Any]) -> dict[str, Any]:
    names = ("rank", "label", "gpu", "tp", "batched_tokens", *FIGURES)
    return {"id": label(row["incident_number"]), "engine_version": row["version"], **{name: row[name] for name in names}}
