"""What the team has met before: similar incidents, what was tried in them, and what their engines measured."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, case, func, select

from bot.domain.incident import Origin
from bot.store.derived import FIGURES, columns, model_key
from bot.store.hits import Hits
from bot.store.nearness import CANDIDATES, NEAREST, distance, shown, tried
from bot.store.numbers import label, number_of, version_sort
from bot.store.sight import Sight, visible
from bot.store.tables import figures, incidents, trials

_OUTCOMES = ("fixed", "same", "moved", "wrong", "other")


def similar(
    connection: Connection, who: Sight | Origin, document: Mapping[str, Any], limit: int, leave_out: str | None
) -> list[dict[str, Any]]:
    """Incidents of the same phase and the same family or GPU: the nearest first, those with an outcome before those without."""
    asked = columns(document)
    rows = _candidates(connection, who, asked, number_of(leave_out) if leave_out else None)
    return [shown(row) for row in sorted(rows, key=lambda row: distance(asked, row))[:limit]]


def precedents(
    connection: Connection, who: Sight | Origin, document: Mapping[str, Any], limit: int, leave_out: str | None
) -> list[dict[str, Any]]:
    """What was tried in similar incidents and how it ended: one entry for each trial with a result, the nearest first."""
    asked = columns(document)
    rows = {row["key"]: row for row in _candidates(connection, who, asked, number_of(leave_out) if leave_out else None)}
    query = select(trials).where(trials.c.incident.in_(list(rows)), trials.c.withdrawn.is_(None), trials.c.result.is_not(None))
    found = []
    for row in connection.execute(query).mappings():
        incident = rows[row["incident"]]
        found.append((distance(asked, incident), row["number"], tried(incident, dict(row))))
    return [entry for *_, entry in sorted(found, key=lambda one: one[:2])[:limit]]


def measured(
    connection: Connection,
    who: Sight | Origin,
    model: str,
    gpu: str | None,
    tp: int | None,
    version: str | None,
    batched_tokens: int | None,
    limit: int,
) -> list[dict[str, Any]]:
    """Terms that engines reported for a model, in bytes per rank, the closest conditions first, else the newest. None: not reported."""
    query = select(figures, incidents.c.number.label("incident_number"), incidents.c.version)
    query = query.join(incidents, incidents.c.key == figures.c.incident)
    query = query.where(visible(incidents, who), figures.c.team == who.team, figures.c.model == model_key(model))
    for name, wanted in (("gpu", gpu), ("tp", tp)):
        query = query if wanted is None else query.where(figures.c[name] == wanted)
    order: list[Any] = [] if batched_tokens is None else [case((figures.c.batched_tokens == batched_tokens, 0), else_=1)]
    if version is not None:  # unknown versions last on both databases: NULLs sort first in one and last in the other
        order += [figures.c.version_sort.is_(None), func.abs(figures.c.version_sort - (version_sort(version) or 0))]
    query = query.order_by(*order, figures.c.incident.desc(), figures.c.number).limit(limit)
    return [_figure(dict(row)) for row in connection.execute(query).mappings()]


def _candidates(connection: Connection, who: Any, asked: Mapping[str, Any], leave_out: int | None) -> list[dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {}
    for fields in NEAREST:
        if any(asked[field] is None for field in fields):
            continue
        values = {field: [asked[field]] for field in fields}
        for more in ({"outcome": _OUTCOMES}, {}):
            for row in Hits(connection, who, {**values, **more}).newest(CANDIDATES):
                found.setdefault(row["key"], row)
        if len(found) >= CANDIDATES:
            break
    return [row for row in found.values() if row["number"] != leave_out]


def _figure(row: Mapping[str, Any]) -> dict[str, Any]:
    names = ("rank", "label", "gpu", "tp", "batched_tokens", *FIGURES)
    return {"id": label(row["incident_number"]), "engine_version": row["version"], **{name: row[name] for name in names}}
