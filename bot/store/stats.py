"""Reviews: which phases cost the team most, which changes work, how long it took, which rules were wrong."""

import json
from collections import Counter
from typing import Any

from sqlalchemy import ColumnElement, Connection, case, func, select

from bot.store import rollups
from bot.store.derived import NO_RULE, TRIED
from bot.store.sight import Sight, visible
from bot.store.tables import incidents, trials

_TOP = 20
_RESULTS = ("fixed", "moved", "same", "wrong", "other")


def stats(connection: Connection, who: Sight, since: int | None) -> dict[str, Any]:
    """The figures of `oombot stats` for what someone may see, opened since a moment (microseconds); of all time from the rollups."""
    return _of_all_time(connection, who) if since is None else _since(connection, who, since)


def _of_all_time(connection: Connection, who: Sight) -> dict[str, Any]:
    def of(field: str) -> dict[str, int]:
        return rollups.values(connection, who.team, field, who.channels)

    def rows(field: str) -> list[dict[str, Any]]:
        fixed = of(f"{field} fixed")
        return [{"name": value, "count": count, "fixed": fixed.get(value, 0)} for value, count in of(field).items()]

    settled, after = of("settled"), of("settled after")
    means = {phase: _seconds(after.get(phase, 0) / count) for phase, count in settled.items()}
    return {
        "incidents": sum(of("total").values()),
        "mean_seconds_to_outcome": _seconds(sum(after.values()) / sum(settled.values()) if settled else None),
        "outcomes": of("outcome"),
        "phases": [
            {"phase": row["name"], "count": row["count"], "fixed": row["fixed"], "mean_seconds_to_outcome": means.get(row["name"])}
            for row in rows("phase")
        ],
        "changes": _tried(of("tried")),
        "wrong_rules": [{"rule": rule, "count": count} for rule, count in list(of("rule wrong").items())[:_TOP]],
        "models": rows("model")[:_TOP],
        "gpus": rows("gpu")[:_TOP],
    }


def _tried(counts: dict[str, int]) -> list[dict[str, Any]]:
    changes: dict[tuple[Any, ...], Counter[str]] = {}
    for value, count in counts.items():
        *change, result = json.loads(value)
        changes.setdefault(tuple(change), Counter())[result] += count
    found = [
        {**dict(zip(TRIED, change, strict=False)), "tried": tally.total(), **{result: tally[result] for result in _RESULTS}}
        for change, tally in changes.items()
    ]
    return sorted(found, key=lambda row: (-row["tried"], row["remedy"], row["phase"] or ""))[:_TOP]


def _since(connection: Connection, who: Sight, since: int) -> dict[str, Any]:
    where = [visible(incidents, who), incidents.c.key >= since]
    return {
        "incidents": connection.execute(select(func.count()).select_from(incidents).where(*where)).scalar_one(),
        "mean_seconds_to_outcome": _seconds(connection.execute(select(_mean()).where(*where)).scalar()),
        "outcomes": _by(connection, incidents.c.outcome, where),
        "phases": _phases(connection, where),
        "changes": _changes(connection, [visible(trials, who), trials.c.incident >= since]),
        "wrong_rules": _wrong(connection, where),
        "models": _settled_by(connection, incidents.c.model, where),
        "gpus": _settled_by(connection, incidents.c.gpu, where),
    }


def _mean() -> ColumnElement[Any]:
    """Of those that have ended; an incident whose clock was ahead of ours took no time, not less."""
    took = incidents.c.settled - incidents.c.key
    return func.avg(case((took > 0, took), (incidents.c.settled.is_not(None), 0)))


def _seconds(micros: Any) -> float | None:
    return None if micros is None else round(float(micros) / 1_000_000, 1)


def _count_of(column: Any, value: str) -> Any:
    return func.sum(case((column == value, 1), else_=0)).label(value)


def _by(connection: Connection, column: Any, where: list[Any]) -> dict[str, int]:
    query = select(column, func.count()).where(*where).group_by(column).order_by(func.count().desc())
    return {value or "open": count for value, count in connection.execute(query)}


def _phases(connection: Connection, where: list[Any]) -> list[dict[str, Any]]:
    query = select(incidents.c.phase, func.count().label("n"), _count_of(incidents.c.outcome, "fixed"), _mean().label("mean")).where(*where)
    query = query.where(incidents.c.phase.is_not(None)).group_by(incidents.c.phase).order_by(func.count().desc(), incidents.c.phase)
    return [
        {"phase": row.phase, "count": row.n, "fixed": int(row.fixed), "mean_seconds_to_outcome": _seconds(row.mean)}
        for row in connection.execute(query)
    ]


def _changes(connection: Connection, where: list[Any]) -> list[dict[str, Any]]:
    keys = (trials.c.phase, trials.c.remedy, trials.c.flag, trials.c.direction)
    query = select(*keys, func.count().label("tried"), *(_count_of(trials.c.result, result) for result in _RESULTS))
    query = query.where(*where, trials.c.result.is_not(None), trials.c.withdrawn.is_(None), trials.c.remedy.is_not(None)).group_by(*keys)
    rows = connection.execute(query.order_by(func.count().desc(), trials.c.remedy, trials.c.phase).limit(_TOP)).mappings()
    return [{**row, **{result: int(row[result]) for result in _RESULTS}} for row in rows]


def _wrong(connection: Connection, where: list[Any]) -> list[dict[str, Any]]:
    query = select(incidents.c.rules, func.count()).where(*where, incidents.c.outcome == "wrong").group_by(incidents.c.rules)
    tally: Counter[str] = Counter()
    for rules, count in connection.execute(query):
        for rule in (rules or "").split() or [NO_RULE]:
            tally[rule] += count
    return [{"rule": rule, "count": count} for rule, count in sorted(tally.items(), key=lambda pair: (-pair[1], pair[0]))[:_TOP]]


def _settled_by(connection: Connection, column: Any, where: list[Any]) -> list[dict[str, Any]]:
    query = select(column.label("name"), func.count().label("n"), _count_of(incidents.c.outcome, "fixed"))
    query = query.where(*where, column.is_not(None)).group_by(column).order_by(func.count().desc(), column).limit(_TOP)
    return [{"name": row.name, "count": row.n, "fixed": int(row.fixed)} for row in connection.execute(query)]
