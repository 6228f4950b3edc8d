"""Writing turns and reading incidents back."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, RowMapping, delete, func, insert, select, update

from bot.domain.incident import Contribution, Incident, Origin, Result, Trial
from bot.store import deliveries, index, rollups, trials
from bot.store.derived import columns, figures, spoken
from bot.store.errors import ErasedMeanwhileError, UnknownIncidentError
from bot.store.numbers import clock, label, micros, moment, number_of
from bot.store.packed import unpack, unpack_document
from bot.store.rows import Batch, Row, contribution_row, diagnosis_row, scope_of
from bot.store.sight import Sight, visible
from bot.store.tables import contributions, counters, diagnoses, incidents
from bot.store.tables import figures as figures_table
from bot.store.upsert import upsert


def append(
    connection: Connection,
    origin: Origin,
    given: Sequence[Contribution],
    document: Mapping[str, Any] | None,
    into: str | None = None,
    number: int | None = None,
    heard: Sequence[Contribution] = (),
) -> str:
    """A turn into an incident that is there, or into a new one, under `number` where one was allocated for it. Gives the incident's id.

    ErasedMeanwhileError when what was `heard` is no longer there.
    """
    if into is not None:
        return _append_to(connection, origin.team, into, given, document, heard)
    return insert_new(connection, allocate(connection, origin) if number is None else number, origin, given, document)


def insert_new(
    connection: Connection,
    number: int,
    origin: Origin,
    given: Sequence[Contribution],
    document: Mapping[str, Any] | None,
    now: int | None = None,
) -> str:
    """A new incident under a number that was allocated for it."""
    now = now or clock()
    opened = next((micros(one.at) for one in given if one.at), now)
    batch = Batch()
    batch.add(free_key(connection, opened), number, origin, given, document, now)
    batch.write(connection)
    return label(number)


def allocate(connection: Connection, origin: Origin) -> int:
    """The team's next incident number. Holds the team's counter until the transaction ends: in PostgreSQL it is one of its own."""
    statement = upsert(connection, counters).values(team=origin.team, name="incident", value=1, enterprise=origin.enterprise or "")
    again = statement.on_conflict_do_update(index_elements=("team", "name"), set_={"value": counters.c.value + 1})
    return int(connection.execute(again.returning(counters.c.value)).scalar_one())


def free_key(connection: Connection, wanted: int) -> int:
    """The first free key at or after a moment; nobody else gets it until the transaction ends."""
    while not _reserved(connection, wanted) or connection.execute(select(incidents.c.key).where(incidents.c.key == wanted)).first():
        wanted += 1
    return wanted


def _reserved(connection: Connection, key: int) -> bool:
    """Whether no other transaction is writing an incident under this key. SQLite has one writer anyway."""
    if connection.dialect.name == "sqlite":
        return True
    return bool(connection.execute(select(func.pg_try_advisory_xact_lock(key))).scalar_one())


def channels(connection: Connection, team: str, ids: Sequence[str]) -> dict[str, str]:
    """The channel of each of these incidents that has one, by id."""
    i, numbers = incidents.c, [number_of(one) for one in ids]
    query = select(i.number, i.channel).where(i.team == team, i.number.in_([number for number in numbers if number]), i.channel != "")
    return {label(number): channel for number, channel in connection.execute(query)}


def judge(connection: Connection, team: str, given_id: str, document: Mapping[str, Any]) -> None:
    """A new diagnosis of an incident that is there."""
    row = find(connection, team, given_id, lock=True)
    said = spoken(_texts(connection, row["key"]))
    _judge(connection, row, said, said, document)


def show_anew(connection: Connection, team: str, given_id: str) -> None:
    """Its message is due to be drawn anew."""
    deliveries.show_anew(connection, find(connection, team, given_id))


def _append_to(
    connection: Connection,
    team: str,
    given_id: str,
    given: Sequence[Contribution],
    document: Mapping[str, Any] | None,
    heard: Sequence[Contribution],
) -> str:
    row = find(connection, team, given_id, lock=True)
    texts = _texts(connection, row["key"])
    if any(one.text is not None and now["text"] is None for one, now in zip(heard, texts, strict=False)):
        raise ErasedMeanwhileError(f"evidence of {given_id} was erased while it was read")
    before = spoken(texts)
    now = clock()
    start = max((text["number"] for text in texts), default=0) + 1
    new = [contribution_row(scope_of(row), row["key"], start + place, one, now) for place, one in enumerate(given)]
    if new:
        connection.execute(insert(contributions), new)
    after = spoken([*texts, *({"text": unpack(one["text"])} for one in new)])
    if document is not None:
        _judge(connection, row, before, after, document)
    else:
        change(connection, row, before, after, {"updated": now})
    return label(row["number"])


def _judge(connection: Connection, row: Row, before: str, after: str, document: Mapping[str, Any]) -> None:
    now, key = clock(), row["key"]
    named = {**document, "id": label(row["number"])}
    judged = columns(named)
    count = connection.execute(select(func.count()).where(diagnoses.c.incident == key)).scalar_one()
    heard = connection.execute(select(func.count()).where(contributions.c.incident == key)).scalar_one()
    connection.execute(insert(diagnoses), [diagnosis_row(scope_of(row), key, count + 1, named, heard, now)])
    connection.execute(delete(figures_table).where(figures_table.c.incident == key))
    reported = [{**scope_of(row), "incident": key, **figure} for figure in figures(named, judged)]
    if reported:
        connection.execute(insert(figures_table), reported)
    trials.open_next(connection, row, named, now)
    change(connection, row, before, after, {**judged, **trials.standing(connection, key, judged), "updated": now})


def change(connection: Connection, row: Row, before: str, after: str, new: Mapping[str, Any]) -> None:
    """Change an incident's row and all that is derived from it."""
    changed: Row = {**row, **new}
    connection.execute(update(incidents).where(incidents.c.key == row["key"]).values(**new))
    if before != after or index.is_other(connection, row, changed):
        index.take_out(connection, [(row, before)])
        index.put(connection, [(changed, after)])
    rollups.adjust(connection, [row], [changed])


def settle(
    connection: Connection,
    team: str,
    given_id: str,
    result: Result | None,
    by: str | None,
    note: str | None,
    given: Sequence[Contribution] = (),
    document: Mapping[str, Any] | None = None,
    heard: Sequence[Contribution] = (),
) -> Trial | None:
    """A result for the newest trial, or, with None, the newest result taken back; then what was said about it and what follows from it.

    None when there was nothing to take back. `heard` as in `append`.
    """
    row, now = find(connection, team, given_id, lock=True), clock()
    trial = trials.undo(connection, row, by, now) if result is None else trials.record(connection, row, result, by, note, now)
    if trial is None:
        return None
    said = spoken(_texts(connection, row["key"]))
    judged = columns(_newest(connection, row["key"]))
    change(connection, row, said, said, {**trials.standing(connection, row["key"], judged), "updated": now})
    if given or document is not None:
        _append_to(connection, team, given_id, given, document, heard)
    return trial


def find(connection: Connection, team: str, given_id: str, *, lock: bool = False) -> Row:
    """The incident's row. UnknownIncidentError when the team has none of that id."""
    number = number_of(given_id)
    query = select(incidents).where(incidents.c.team == team, incidents.c.number == number)
    row = connection.execute(query.with_for_update() if lock else query).mappings().first() if number else None
    if row is None:
        raise UnknownIncidentError(f"There is no incident {given_id} here. `oombot history` lists those there are.")
    return dict(row)


def load(connection: Connection, team: str, given_id: str) -> Incident | None:
    """The whole incident: what was said, the newest diagnosis, the trials. None when the team has none of that id."""
    try:
        row = find(connection, team, given_id)
    except UnknownIncidentError:
        return None
    return Incident(
        id=label(row["number"]),
        origin=Origin(row["team"], row["enterprise"] or None, row["channel"] or None, row["thread"] or None, row["private"]),
        opened=moment(row["key"]),
        contributions=tuple(_contribution(one) for one in _said(connection, row["key"])),
        document=_newest(connection, row["key"]),
        trials=tuple(trials.of(connection, row["key"])),
        erased=row["erased"] is not None,
    )


def page(connection: Connection, who: Sight, after: int, size: int) -> tuple[list[Incident], int | None]:
    """The next incidents that someone may see, oldest first, and the key to go on from; None at the end."""
    query = select(incidents.c.key, incidents.c.number).where(visible(incidents, who), incidents.c.key > after)
    rows = connection.execute(query.order_by(incidents.c.key).limit(size)).all()
    found = [load(connection, who.team, label(number)) for _, number in rows]
    return [incident for incident in found if incident], rows[-1][0] if len(rows) == size else None


def by_thread(connection: Connection, team: str, channel: str, thread: str) -> str | None:
    """The newest incident of a thread."""
    query = select(incidents.c.number).where(incidents.c.team == team, incidents.c.channel == channel, incidents.c.thread == thread)
    number = connection.execute(query.order_by(incidents.c.key.desc()).limit(1)).scalar()
    return None if number is None else label(number)


def in_thread(connection: Connection, team: str, channel: str, thread: str) -> Incident | None:
    """The same, whole."""
    found = by_thread(connection, team, channel, thread)
    return None if found is None else load(connection, team, found)


def of_message(connection: Connection, team: str, channel: str, message: str) -> Incident | None:
    """The newest incident that a chat message contributed to, whole; also where that has been erased since."""
    c = contributions.c
    given = select(c.incident).where(c.team == team, c.channel == channel, c.message == message)
    query = select(incidents.c.number).where(incidents.c.key.in_(given)).order_by(incidents.c.key.desc()).limit(1)
    number = connection.execute(query).scalar()
    return None if number is None else load(connection, team, label(number))


def _newest(connection: Connection, key: int) -> dict[str, Any]:
    query = select(diagnoses.c.document).where(diagnoses.c.incident == key).order_by(diagnoses.c.number.desc()).limit(1)
    document = connection.execute(query).scalar()
    told = unpack_document(document) if document else {}
    return {**told, "recommendation": told["recommendation"] or None} if "recommendation" in told else told  # older rows have {} for none


def _said(connection: Connection, key: int) -> Sequence[RowMapping]:
    query = select(contributions).where(contributions.c.incident == key).order_by(contributions.c.number)
    return connection.execute(query).mappings().all()


def _texts(connection: Connection, key: int) -> list[dict[str, Any]]:
    query = select(contributions.c.number, contributions.c.text).where(contributions.c.incident == key).order_by(contributions.c.number)
    return [{"number": number, "text": unpack(text)} for number, text in connection.execute(query)]


def _contribution(row: RowMapping) -> Contribution:
    return Contribution(
        kind=row["kind"],
        text=unpack(row["text"]),
        name=row["name"],
        author=row["author"],
        message=row["message"],
        at=moment(row["at"]),
        redactions=row["redactions"],
        truncated=row["truncated"],
    )
