"""Trials: the one change that was suggested, and how it ended. What was said about it is kept word for word in `outcomes`."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, func, insert, select, update

from bot.domain.as_done import as_done
from bot.domain.incident import Result, Trial
from bot.store import rollups
from bot.store.derived import change_key
from bot.store.numbers import moment
from bot.store.packed import plain, unpack_document
from bot.store.rows import scope_of, trial_row
from bot.store.tables import outcomes, trials


def of(connection: Connection, key: int) -> list[Trial]:
    """The trials of an incident, oldest first, without those that were taken back, and without what has neither a change nor a result."""
    return [trial for row in _standing(connection, key) if (trial := _trial(row)).change or trial.result]


def open_next(connection: Connection, incident: Mapping[str, Any], document: Mapping[str, Any], now: int) -> None:
    """A new trial when the document recommends another change than the newest trial."""
    wanted = change_key(document.get("recommendation"))
    rows = _standing(connection, incident["key"])
    if wanted is None or (rows and change_key(unpack_document(rows[-1]["change"])) == wanted):
        return
    _open(connection, incident, document, now)


def record(connection: Connection, incident: Mapping[str, Any], result: Result, by: str | None, note: str | None, now: int) -> Trial:
    """The newest trial's result. Where nothing was recommended the result is of a trial without a change."""
    key = incident["key"]
    rows = _standing(connection, key)
    if not rows:
        _open(connection, incident, {"phase": incident["phase"]}, now)
        rows = _standing(connection, key)
    newest = rows[-1]
    number = newest["number"]
    said: dict[str, Any] = {"result": result, "note": plain(note), "by": plain(by), "at": now}
    _note(connection, incident, number, said)
    said |= _made(newest, said["note"])
    connection.execute(update(trials).where(trials.c.incident == key, trials.c.number == number).values(**said))
    rollups.adjust_tried(connection, [newest], [{**newest, **said}])
    return _trial(_standing(connection, key)[-1])


def undo(connection: Connection, incident: Mapping[str, Any], by: str | None, now: int) -> Trial | None:
    """The newest result taken back, and with it the trials that it opened, and its own where that has no change; what was said of the same
    trial before stands again. None without a result.
    """
    key = incident["key"]
    rows = _standing(connection, key)
    last = next((row for row in reversed(rows) if row["result"] is not None), None)
    if last is None:
        return None
    number = last["number"]
    _note(connection, incident, number, {"result": "undo", "note": None, "by": plain(by), "at": now})
    before = _said_before(connection, key, number)
    before |= _made(last, before["note"])
    connection.execute(update(trials).where(trials.c.incident == key, trials.c.number == number).values(**before))
    left = {**last, **before}
    trial = _trial(left)
    opened = trials.c.number > number if trial.change or trial.result else trials.c.number >= number
    connection.execute(update(trials).where(trials.c.incident == key, opened).values(withdrawn=now))
    # those that are withdrawn have no result: else theirs would be the newest
    rollups.adjust_tried(connection, [last], [left] if trial.result else [])
    return trial


def _said_before(connection: Connection, key: int, trial: int) -> dict[str, Any]:
    """What stands of a trial now that the newest word of it is `undo`: the word before the one that it takes back, or nothing."""
    said = select(outcomes).where(outcomes.c.incident == key, outcomes.c.trial == trial).order_by(outcomes.c.number)
    standing: list[dict[str, Any]] = []
    for word in connection.execute(said).mappings():
        if word["result"] == "undo":
            del standing[-1:]
        else:
            standing.append({name: word[name] for name in ("result", "note", "by", "at")})
    return standing[-1] if standing else {"result": None, "note": None, "by": None, "at": None}


def _made(trial: Mapping[str, Any], note: str | None) -> dict[str, Any]:
    """What a trial's row says of its change: as it was suggested, or as `note` says that it was made."""
    change = as_done(unpack_document(trial["change"]), note)
    return {name: plain(change.get(name)) for name in ("direction", "value")}


def standing(connection: Connection, key: int, judged: Mapping[str, Any]) -> dict[str, Any]:
    """The incident's outcome and the change it belongs to; without an outcome, what is recommended now."""
    last = next((row for row in reversed(_standing(connection, key)) if row["result"] is not None), None)
    names = ("remedy", "flag", "direction", "value")
    if last is None:
        return {**{name: judged[name] for name in names}, "outcome": None, "settled": None}
    return {**{name: last[name] for name in names}, "outcome": last["result"], "settled": last["at"]}


def _note(connection: Connection, incident: Mapping[str, Any], trial: int, said: Mapping[str, Any]) -> None:
    count = connection.execute(select(func.count()).where(outcomes.c.incident == incident["key"])).scalar_one()
    connection.execute(insert(outcomes), [{**scope_of(incident), "incident": incident["key"], "number": count + 1, "trial": trial, **said}])


def _standing(connection: Connection, key: int) -> list[dict[str, Any]]:
    query = select(trials).where(trials.c.incident == key, trials.c.withdrawn.is_(None)).order_by(trials.c.number)
    return [dict(row) for row in connection.execute(query).mappings()]


def _open(connection: Connection, incident: Mapping[str, Any], document: Mapping[str, Any], now: int) -> None:
    key = incident["key"]
    last = connection.execute(select(func.coalesce(func.max(trials.c.number), 0)).where(trials.c.incident == key)).scalar_one()
    connection.execute(insert(trials), [trial_row(scope_of(incident), key, last + 1, document, now)])


def _trial(row: Mapping[str, Any]) -> Trial:
    return Trial(
        number=row["number"],
        change=unpack_document(row["change"]),
        result=row["result"],
        note=row["note"],
        by=row["by"],
        at=None if row["at"] is None else moment(row["at"]),
    )
