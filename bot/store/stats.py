"""Reviews: which phases cost the team most, which changes work, how long it took, which rules were wrong."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, case, func, select

from bot.domain.incident import RESULTS
from bot.store import rollups
from bot.store.derived import NO_RULE, OPEN, TRIED
from bot.store.sight import Sight, visible
from bot.store.tables import incidents, trials

_TOP = 20
_BY = ("phase", "model", "gpu")

Sums = Callable[[str], Mapping[str, int]]
"""A field of the rollups -> its values with their sums, the most first."""


def stats(connection: Connection, who: Sight, since: int | None) -> dict[str, Any]:
    """The figures of `oombot stats` for what someone may see, opened since a moment (microseconds); of all time without counting a row."""
    if since is None:
        return _review(lambda field: rollups.values(connection, who.team, field, who.channels))
    counted = _counted(connection, who, since)
    return _review(lambda field: dict(sorted(counted.get(field, {}).items(), key=lambda pair: (-pair[1], pair[0]))))


def _review(of: Sums) -> dict[str, Any]:
    settled, after = of("settled"), of("settled after")
    means = {phase: _seconds(after.get(phase, 0), count) for phase, count in settled.items()}
    phases = [
        {"phase": row["name"], "count": row["count"], "fixed": row["fixed"], "mean_seconds_to_outcome": means.get(row["name"])}
        for row in _fixed(of, "phase")
    ]
    return {
        "incidents": sum(of("total").values()),
        "mean_seconds_to_outcome": _seconds(sum(after.values()), sum(settled.values())),
        "outcomes": dict(of("outcome")),
        "phases": phases,
        "changes": _changes(of("tried")),
        "wrong_rules": [{"rule": rule, "count": count} for rule, count in list(of("rule wrong").items())[:_TOP]],
        "models": _fixed(of, "model")[:_TOP],
        "gpus": _fixed(of, "gpu")[:_TOP],
    }


def _fixed(of: Sums, field: str) -> list[dict[str, Any]]:
    fixed = of(f"{field} fixed")
    return [{"name": value, "count": count, "fixed": fixed.get(value, 0)} for value, count in of(field).items()]


def _seconds(micros: int, count: int) -> float | None:
    return round(micros / count / 1_000_000, 1) if count else None


def _changes(tried: Mapping[str, int]) -> list[dict[str, Any]]:
    changes: dict[tuple[Any, ...], Counter[str]] = defaultdict(Counter)
    for value, count in tried.items():
        *change, result = json.loads(value)
        changes[tuple(change)][result] += count
    found = [
        {**dict(zip(TRIED[:-1], change, strict=True)), "tried": tally.total(), **{result: tally[result] for result in RESULTS}}
        for change, tally in changes.items()
    ]
    return sorted(found, key=lambda row: (-row["tried"], row["remedy"], row["phase"] or ""))[:_TOP]


def _counted(connection: Connection, who: Sight, since: int) -> Mapping[str, Counter[str]]:
    """The sums that the rollups would hold of what was opened since: rows are counted once, whatever is asked of them."""
    by_index = connection.dialect.name != "sqlite"  # which would rather walk all of the team in the order of the groups
    mine = [visible(incidents, who, by_index), incidents.c.key >= since]
    tried = _tried(connection, [visible(trials, who, by_index), trials.c.incident >= since])
    return {**_incidents(connection, mine), "rule wrong": _wrong(connection, mine), "tried": tried}


def _incidents(connection: Connection, mine: Sequence[ColumnElement[bool]]) -> Mapping[str, Counter[str]]:
    sums: defaultdict[str, Counter[str]] = defaultdict(Counter)
    took = case((incidents.c.settled > incidents.c.key, incidents.c.settled - incidents.c.key), else_=0)
    keys = [*(incidents.c[name] for name in _BY), incidents.c.outcome]
    query = select(*keys, func.count(), func.count(incidents.c.settled), func.sum(took))
    for *values, outcome, count, settled, micros in connection.execute(query.where(*mine).group_by(*keys)):
        sums["total"][""] += count
        sums["outcome"][outcome or OPEN] += count
        for name, value in zip(_BY, values, strict=True):
            if value is not None:
                sums[name][value] += count
                sums[f"{name} fixed"][value] += count if outcome == "fixed" else 0
        if settled:
            sums["settled"][values[0] or ""] += settled
            sums["settled after"][values[0] or ""] += int(micros)
    return sums


def _wrong(connection: Connection, mine: Sequence[ColumnElement[bool]]) -> Counter[str]:
    sums: Counter[str] = Counter()
    query = select(incidents.c.rules, func.count()).where(*mine, incidents.c.outcome == "wrong").group_by(incidents.c.rules)
    for rules, count in connection.execute(query):
        for rule in (rules or "").split() or [NO_RULE]:
            sums[rule] += count
    return sums


def _tried(connection: Connection, mine: Sequence[ColumnElement[bool]]) -> Counter[str]:
    names = [trials.c[name] for name in TRIED]
    ended = [trials.c.result.is_not(None), trials.c.withdrawn.is_(None), trials.c.remedy.is_not(None)]
    query = select(*names, func.count()).where(*mine, *ended).group_by(*names)
    return Counter({json.dumps(change, separators=(",", ":")): count for *change, count in connection.execute(query)})
