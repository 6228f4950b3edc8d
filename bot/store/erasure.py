"""Erasure: texts, the words they were found by, and what was read in them go; id, phase, model, GPU, the changes and outcome stay.

With age only the evidence goes: what was counted and decided stays longer.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, delete, select, update

from bot.store import audit
from bot.store import incidents as kept
from bot.store.audit import Deed
from bot.store.deliveries import show_anew
from bot.store.derived import columns, spoken
from bot.store.numbers import clock, label
from bot.store.packed import pack_document, unpack, unpack_document
from bot.store.rows import scope_of
from bot.store.tables import contributions, deliveries, diagnoses, figures, incidents, metadata, outcomes, replies, trials

_DAY = 86_400 * 1_000_000
_APART = 3.0  # seconds between messages that are drawn anew because their evidence grew old: Slack takes fifty edits a minute
_DONE_DAYS = 7  # Slack asks again for minutes, not for days
_STAYS = ("schema", "id", "verdict", "phase", "rulebook")
_OF_A_CHANGE = ("id", "flag", "direction", "value")
_WORDS = ("text", "command", "because", "costs", "summary", "says", "how", "node", "disproved_by", "notes", "container")


def forget(connection: Connection, team: str, incident: str, by: str | None) -> None:
    """Erase one incident's evidence, and have its message drawn anew; who did it is noted, once."""
    row = kept.find(connection, team, incident, lock=True)
    left = select(contributions.c.number).where(contributions.c.incident == row["key"], contributions.c.text.is_not(None))
    if row["erased"] is None or connection.execute(left).first() is not None:
        audit.note(connection, Deed("erased", by, about=label(row["number"]), **scope_of(row)))
        show_anew(connection, row, erased=True)
    erase(connection, row, None)


def erase_message(connection: Connection, team: str, channel: str, message: str, anew: bool) -> list[str]:
    """Erase what one chat message contributed; gives the ids of the incidents that quoted it, which with `anew` are drawn anew."""
    c = contributions.c
    query = select(c.incident).where(c.team == team, c.channel == channel, c.message == message, c.text.is_not(None)).distinct()
    touched = []
    for key in connection.execute(query).scalars().all():
        row = dict(connection.execute(select(incidents).where(incidents.c.key == key).with_for_update()).mappings().one())
        erase(connection, row, message)
        if anew:
            show_anew(connection, row, erased=True)
        touched.append(label(row["number"]))
    return touched


def purge_page(connection: Connection, before: int, page: int, done: int) -> int:
    """Erase the evidence of up to `page` incidents untouched since `before` (microseconds), after `done` others; gives how many."""
    query = select(incidents).where(incidents.c.updated < before, incidents.c.erased.is_(None)).order_by(incidents.c.key).limit(page)
    rows = [dict(row) for row in connection.execute(query).mappings()]
    for place, row in enumerate(rows, start=done):
        erase(connection, row, None, aged=True)
        show_anew(connection, row, erased=True, after=place * _APART)
    return len(rows)


def partly_erased(connection: Connection, before: int) -> list[int]:
    """Keys of incidents untouched since `before` (microseconds) of which a part was erased then, and the rest is past its days now."""
    c = contributions.c
    left = select(c.incident).where(c.incident == incidents.c.key, c.text.is_not(None)).exists()
    query = select(incidents.c.key).where(incidents.c.updated < before, incidents.c.erased.is_not(None), left)
    return list(connection.execute(query.order_by(incidents.c.key)).scalars())


def purge_rest(connection: Connection, keys: Sequence[int], before: int) -> int:
    """Erase what is left of these incidents, but for those that were touched meanwhile; gives how many. Their messages quote nothing."""
    query = select(incidents).where(incidents.c.key.in_(keys), incidents.c.updated < before).with_for_update()
    rows = [dict(row) for row in connection.execute(query).mappings()]
    for row in rows:
        erase(connection, row, None, aged=True)
    return len(rows)


def drop_done(connection: Connection, before: int) -> None:
    """Remove deliveries that were done so long ago that nobody sends them again, the notes on what was said once about one of them, and
    what the audit trail says of the time `before` (microseconds)."""
    audit.drop_old(connection, before)
    old = clock() - _DONE_DAYS * _DAY
    connection.execute(delete(deliveries).where(deliveries.c.state.in_(("done", "failed")), deliveries.c.done_at < old))
    connection.execute(delete(replies).where(replies.c.kind.like("%:%"), replies.c.at < old))


def channel_became(connection: Connection, team: str, channel: str, private: bool) -> None:
    """Every row of a channel says that only its members may see it, or that all may."""
    for table in metadata.sorted_tables:
        if "channel" in table.c and "private" in table.c and not (table.name == "search" and connection.dialect.name == "sqlite"):
            connection.execute(update(table).where(table.c.team == team, table.c.channel == channel).values(private=private))


def erase(connection: Connection, row: dict[str, Any], message: str | None, *, aged: bool = False) -> None:
    """Erase an incident's texts, or only those of one message, and what was read in them; `aged`: of that only the quoted lines."""
    of_it = contributions.c.incident == row["key"]
    said = select(contributions.c.number, contributions.c.message, contributions.c.text).where(of_it).order_by(contributions.c.number)
    texts = [{"number": number, "message": sent, "text": unpack(text)} for number, sent, text in connection.execute(said)]
    gone = [one["number"] for one in texts if message is None or one["message"] == message]
    blank = {"text": None, "sha256": None, "name": None, "author": None}
    connection.execute(update(contributions).where(of_it, contributions.c.number.in_(gone)).values(**blank))
    _blank_documents(connection, row["key"], aged)
    left = [one for one in texts if one["number"] not in gone]
    kept.change(connection, row, spoken(texts), spoken(left), {"erased": clock(), "error_text": None} | ({} if aged else _left_of(row)))


def _left_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """An incident's columns without what was read in its evidence."""
    judged = columns(bare({"phase": row["phase"], "verdict": row["verdict"], "deployment": {"model": row["model"], "gpu": row["gpu"]}}))
    return {name: value for name, value in judged.items() if name not in ("remedy", *_OF_A_CHANGE)}


def _blank_documents(connection: Connection, key: int, aged: bool) -> None:
    of_diagnoses, of_trials = (blanked, blanked) if aged else (bare, bare_change)
    for table, name, less in ((diagnoses, "document", of_diagnoses), (trials, "change", of_trials)):
        query = select(table.c.number, table.c[name]).where(table.c.incident == key)
        for number, packed in connection.execute(query).all():
            left = pack_document(less(unpack_document(packed)))
            connection.execute(update(table).where(table.c.incident == key, table.c.number == number).values({name: left}))
    for table in (trials, outcomes):
        connection.execute(update(table).where(table.c.incident == key).values(note=None))
    if not aged:
        connection.execute(delete(figures).where(figures.c.incident == key))


def bare(document: Mapping[str, Any]) -> dict[str, Any]:
    """A document that says what an incident was, and nothing else that was read: its entries are there, and empty."""
    if not document:
        return {}
    emptied: dict[str, Any] = {name: [] if isinstance(value, list) else None for name, value in document.items()}
    deployment = document.get("deployment") or {}
    known = {name: document[name] for name in _STAYS if name in document}
    known |= {"engine": "unknown", "summary": "", "redactions": 0, "deployment": {name: deployment.get(name) for name in ("model", "gpu")}}
    if change := document.get("recommendation"):
        known |= {"recommendation": bare_change(change), "alternatives": [bare_change(one) for one in document.get("alternatives") or ()]}
    return emptied | known


def bare_change(change: Mapping[str, Any]) -> dict[str, Any]:
    """Which change it is, without its reasons and its command."""
    emptied: dict[str, Any] = {name: "" if isinstance(value, str) else None for name, value in change.items()}
    emptied |= {"keep_fixed": []} if "keep_fixed" in change else {}
    return emptied | {name: change[name] for name in _OF_A_CHANGE if name in change}


def blanked(document: Mapping[str, Any]) -> dict[str, Any]:
    """A document without sentences and quoted lines: what was counted and decided stays."""
    return {name: _blank(name, value) for name, value in document.items()}


def _blank(name: str, value: Any) -> Any:
    if name == "deployment":
        return {key: one for key, one in value.items() if key in ("model", "gpu") or isinstance(one, int | float)}
    if name in _WORDS:
        return [] if isinstance(value, list) else None if value is None else ""
    if isinstance(value, Mapping):
        return blanked(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [blanked(one) if isinstance(one, Mapping) else one for one in value]
    return value
