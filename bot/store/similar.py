"""What the team has met before: similar incidents, what was tried in them, and what their engines measured."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, func, select

from bot.domain.incident import Origin
from bot.store.derived import FIGURES, columns, model_key
from bot.store.hits import Hits
from bot.store.numbers import label, number_of, stamp, version_sort
from bot.store.sight import Sight, visible
from bot.store.tables import figures, incidents, trials

_NEAREST = (("phase", "family", "gpu"), ("phase", "family"), ("phase", "gpu"))
_CANDIDATES = 60  # newest of each kind of nearness
_OUTCOMES = ("fixed", "same", "moved", "wrong", "other")
_MINOR = 10_000 * 100 * 10 * 1000  # one minor version in `version_sort`


def similar(
    connection: Connection, who: Sight | Origin, document: Mapping[str, Any], limit: int, leave_out: str | None
) -> list[dict[str, Any]]:
    """Incidents of the same phase and the same family or GPU: the nearest first, those with an outcome before those without."""
    asked = columns(document)
    rows = _candidates(connection, who, asked, number_of(leave_out) if leave_out else None)
    return [_shown(row) for row in sorted(rows, key=lambda row: _distance(asked, row))[:limit]]


def precedents(
    connection: Connection, who: Sight | Origin, document: Mapping[str, Any], limit: int, leave_out: str | None
) -> list[dict[str, Any]]:
    """What was tried in similar incidents and how it ended: one entry for each trial with a result, the nearest first."""
    asked = columns(document)
    rows = {row["key"]: row for row in _candidates(connection, who, asked, number_of(leave_out) if leave_out else None)}
    query = select(trials).where(trials.c.incident.in_(list(rows)), trials.c.withdrawn.is_(None), trials.c.result.is_not(None))
    tried = []
    for row in connection.execute(query).mappings():
        incident = rows[row["incident"]]
        change = {name: row[name] for name in ("phase", "remedy", "flag", "direction", "value")}
        tried.append((_distance(asked, incident), row["number"], {**_shown(incident), **change, "outcome": row["result"]}))
    return [entry for *_, entry in sorted(tried, key=lambda one: one[:2])[:limit]]


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
    """Terms that engines reported for a model, in bytes per rank, the closest conditions first. None where a term was not reported."""
    query = select(figures, incidents.c.number.label("incident_number"), incidents.c.version)
    query = query.join(incidents, incidents.c.key == figures.c.incident)
    query = query.where(visible(incidents, who), figures.c.team == who.team, figures.c.model == model_key(model))
    for name, wanted in (("gpu", gpu), ("tp", tp)):
        query = query if wanted is None else query.where(figures.c[name] == wanted)
    near = func.abs(figures.c.version_sort - (version_sort(version) or 0))
    same_batch = (figures.c.batched_tokens == batched_tokens).desc() if batched_tokens is not None else figures.c.incident.desc()
    # Unknown versions last on both databases: NULLs sort first here and last there.
    query = query.order_by(same_batch, figures.c.version_sort.is_(None), near, figures.c.incident.desc(), figures.c.number).limit(limit)
    return [_figure(dict(row)) for row in connection.execute(query).mappings()]


def _candidates(connection: Connection, who: Any, asked: Mapping[str, Any], leave_out: int | None) -> list[dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {}
    for fields in _NEAREST:
        if any(asked[field] is None for field in fields):
            continue
        values = {field: [asked[field]] for field in fields}
        for more in ({"outcome": _OUTCOMES}, {}):
            for row in Hits(connection, who, {**values, **more}).newest(_CANDIDATES):
                found.setdefault(row["key"], row)
        if len(found) >= _CANDIDATES:
            break
    return [row for row in found.values() if row["number"] != leave_out]


def _distance(asked: Mapping[str, Any], row: Mapping[str, Any]) -> tuple[Any, ...]:
    differs = sum(weight for field, weight in (("family", 4), ("gpu", 2), ("tp", 1)) if asked[field] != row[field])
    both = asked["version_sort"], row["version_sort"]
    apart = 3 if None in both else min(3, abs(both[0] - both[1]) // _MINOR)
    return differs + apart, row["outcome"] is None, -row["key"]


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    names = ("outcome", "remedy", "flag", "direction", "value", "phase", "model", "family", "gpu", "tp")
    return {"id": label(row["number"]), **{name: row[name] for name in names}, "engine_version": row["version"], "at": stamp(row["key"])}


def _figure(row: Mapping[str, Any]) -> dict[str, Any]:
    names = ("rank", "label", "gpu", "tp", "batched_tokens", *FIGURES)
    return {"id": label(row["incident_number"]), "engine_version": row["version"], **{name: row[name] for name in names}}
