"""New incidents as rows for every table: what `append` writes for one, `import` for thousands."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, insert

from bot.domain.incident import Contribution, Origin
from bot.store import index, rollups, tables
from bot.store.derived import columns, figures
from bot.store.numbers import label, micros
from bot.store.packed import cut, digest, pack, pack_document, plain

Row = dict[str, Any]


def scope(origin: Origin) -> Row:
    """The columns that say whose a row is and who may see it."""
    return {
        "enterprise": origin.enterprise or "",
        "team": origin.team,
        "channel": origin.channel or "",
        "private": origin.private,
    }


def scope_of(incident: Mapping[str, Any]) -> Row:
    """The same, taken over from the incident's row."""
    return {name: incident[name] for name in ("enterprise", "team", "channel", "private")}


def contribution_row(whose: Mapping[str, Any], key: int, number: int, given: Contribution, now: int) -> Row:
    """One contribution; the hash is of the text as kept."""
    text, shortened = (None, False) if given.text is None else cut(given.text)
    return {
        **whose,
        "incident": key,
        "number": number,
        "kind": given.kind,
        "name": plain(given.name),
        "author": plain(given.author),
        "message": plain(given.message),
        "at": micros(given.at) if given.at else now,
        "redactions": given.redactions,
        "truncated": given.truncated or shortened,
        "text": None if text is None else pack(text),
        "sha256": None if text is None else digest(text),
    }


def diagnosis_row(whose: Mapping[str, Any], key: int, number: int, document: Mapping[str, Any], heard: int, now: int) -> Row:
    """One diagnosis, judged from the first `heard` contributions."""
    return {
        **whose,
        "incident": key,
        "number": number,
        "at": now,
        "heard": heard,
        "rulebook": plain(document.get("rulebook")),
        "document": pack_document(document),
    }


def trial_row(whose: Mapping[str, Any], key: int, number: int, document: Mapping[str, Any], now: int) -> Row:
    """A trial of the document's recommendation; an empty change where it has none."""
    change = document.get("recommendation") or {}
    return {
        **whose,
        "incident": key,
        "number": number,
        "opened": now,
        "phase": plain(document.get("phase")),
        "remedy": plain(change.get("id")),
        **{name: plain(change.get(name)) for name in ("flag", "direction", "value")},
        "change": pack_document(change),
    }


@dataclass(slots=True)
class Batch:
    """Rows of many new incidents, written with one statement a table."""

    incidents: list[Row] = field(default_factory=list)
    contributions: list[Row] = field(default_factory=list)
    diagnoses: list[Row] = field(default_factory=list)
    trials: list[Row] = field(default_factory=list)
    outcomes: list[Row] = field(default_factory=list)
    figures: list[Row] = field(default_factory=list)
    said: list[tuple[Row, str]] = field(default_factory=list)

    def add(
        self, key: int, number: int, origin: Origin, given: Sequence[Contribution], document: Mapping[str, Any] | None, now: int
    ) -> Row:
        """One new incident under a key that is free; gives its row."""
        whose = scope(origin)
        named = None if document is None else {**document, "id": label(number)}
        judged = columns(named or {})
        row = {**whose, "key": key, "number": number, "thread": origin.thread or "", "updated": now, "erased": None, **judged}
        row |= {"outcome": None, "settled": None}
        self.incidents.append(row)
        self.contributions += [contribution_row(whose, key, place, one, now) for place, one in enumerate(given, start=1)]
        if named is not None:
            self.diagnoses.append(diagnosis_row(whose, key, 1, named, len(given), now))
            self.figures += [{**whose, "incident": key, **figure} for figure in figures(named, judged)]
            if named.get("recommendation"):
                self.trials.append(trial_row(whose, key, 1, named, now))
        self.said.append((row, "\n".join(cut(one.text)[0] for one in given if one.text)))
        return row

    def write(self, connection: Connection) -> None:
        """All rows, their words and their counts."""
        for name in ("incidents", "contributions", "diagnoses", "trials", "outcomes", "figures"):
            rows = getattr(self, name)
            if rows:
                connection.execute(insert(tables.metadata.tables[name]), rows)
        index.put(connection, self.said)
        rollups.adjust_tried(connection, (), [{"result": None, "withdrawn": None, **trial} for trial in self.trials])
        rollups.adjust(connection, (), self.incidents)
