"""The incidents that fulfil a set of conditions, newest first or best first.

Each index of a judged column holds the others beside it, so that walking one of them answers most searches without a row. PostgreSQL's
planner chooses among them itself; for SQLite, which knows no shares, `_lead` does. Where walking one would take long, and where words are
asked for, SQLite's full-text index is asked: every condition is a word of it too (`index.mark`), and FTS5 walks their lists side by side.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, column, func, literal, literal_column, or_, select, table, text, union_all

from bot.store import rollups, tables
from bot.store.derived import OPEN
from bot.store.index import mark
from bot.store.query import spellings
from bot.store.sight import unindexed, visible
from bot.store.tables import incidents

COUNT_UP_TO = 10_000
INTEGERS = ("rank", "tp")
_CHANNELS_AS_MARKS = 20
_FEW = 20_000  # incidents of a team
_MANY, _MOST, _LEADERS = 8, 0.4, 2
_MOST_LED = 200_000  # entries of an index that are walked within a tenth of a second

fts = table("search", column("rowid"), column("words"), column("marks"))

Values = Mapping[str, Sequence[str]]
"""Exact values by field; several of a field are alternatives."""


class Hits:
    """The incidents that fulfil a set of conditions, as statements in the connection's dialect."""

    def __init__(
        self,
        connection: Connection,
        who: Any,
        values: Values,
        words: Sequence[str] = (),
        since: int | None = None,
        until: int | None = None,
        numbers: Sequence[int] = (),
    ) -> None:
        self.connection, self.words, self.who = connection, tuple(words), who
        self.sqlite = connection.dialect.name == "sqlite"
        self.values = dict(values)
        self.bare = not self.values and not self.words
        self.lead = self._lead() if self.sqlite and not self.words else None
        by_key = not self.sqlite or self.bare or self.lead is not None
        self.key = incidents.c.key if by_key else fts.c.rowid
        self.where: list[ColumnElement[bool]] = [visible(incidents, who, by_index=by_key)]
        self.where += [] if since is None else [self.key >= since]
        self.where += [] if until is None else [self.key < until]
        self.where += [incidents.c.number.in_(numbers)] if numbers else []
        self.where += self._by_columns() if self.lead or not self.sqlite else self._by_marks()

    def _select(self, *columns: Any) -> Select[Any]:
        query = select(*columns).where(*self.where)
        if self.sqlite and not self.bare:
            # The full-text index leads, the incidents follow by key: `visible` below offers SQLite no index of theirs.
            return query.select_from(fts.join(incidents, incidents.c.key == fts.c.rowid))
        if not self.sqlite and self.words:
            return query.select_from(incidents.join(tables.search, tables.search.c.incident == incidents.c.key))
        return query.select_from(incidents)

    def newest_of(self, *columns: ColumnElement[Any], limit: int, before: int | None = None) -> Select[Any]:
        """Columns of the newest that match. `before`: those behind the incident of that number."""
        where = [] if before is None else [self.key < self._key_of(before).scalar_subquery()]
        if self.lead is None:
            return self._select(*columns).where(*where).order_by(self.key.desc()).limit(limit)
        # One walk for each value, and SQLite merges them: with IN it would sort all that it finds.
        walk = select(incidents.c.key, *(one for one in columns if one is not incidents.c.key)).where(*self.where, *where)
        walk = walk.with_hint(incidents, f"INDEXED BY ix_incidents_team_{self.lead}_key", "sqlite")
        walks = [walk.where(_one_of(self.lead, [value])) for value in self._columns()[self.lead]]
        merged = union_all(*walks).order_by(text("key DESC")).limit(limit).subquery()
        return select(*(merged.c[one.name] for one in columns))

    def newest(self, limit: int, before: int | None = None) -> list[dict[str, Any]]:
        """Newest first."""
        keys = self.connection.execute(self.newest_of(incidents.c.key, limit=limit, before=before)).scalars()
        return self._rows(sorted(keys, reverse=True))

    def ranked(self, limit: int, before: int | None = None) -> list[dict[str, Any]] | None:
        """The best first, from behind the incident numbered `before` on; None where a word is so common that weighing it reads too much."""
        best = self._best()
        if best is None:
            return None
        if before is None:
            return self._rows(self.connection.execute(best.limit(limit)).scalars().all())
        keys = self.connection.execute(best).scalars().all()
        last = self.connection.execute(self._key_of(before)).scalar()
        return self._rows(keys[keys.index(last) + 1 :][:limit] if last in keys else ())

    def _key_of(self, number: int) -> Select[Any]:
        return select(incidents.c.key).where(incidents.c.team == self.who.team, incidents.c.number == number)

    def _rows(self, keys: Sequence[int]) -> list[dict[str, Any]]:
        """The rows of keys that were found, in their order: what is searched is an index, and only what is shown is looked up."""
        rows = self.connection.execute(select(incidents).where(incidents.c.key.in_(keys))).mappings()
        return sorted((dict(row) for row in rows), key=lambda row: keys.index(row["key"]))

    def _best(self) -> Select[Any] | None:
        if self.sqlite:
            return self._best_sqlite()
        rank = func.ts_rank(tables.search.c.words, self._tsquery())
        return self._select(incidents.c.key).order_by(rank.desc(), incidents.c.key.desc())

    def _best_sqlite(self) -> Select[Any] | None:
        # bm25 reads the whole list of each word, so the words are asked alone, without the marks.
        for word in self.words:
            one = select(fts.c.rowid).where(_match(_said((word,)))).limit(COUNT_UP_TO + 1).subquery()
            if self.connection.execute(select(func.count()).select_from(one)).scalar_one() > COUNT_UP_TO:
                return None
        inside = self._select(incidents.c.key).limit(COUNT_UP_TO + 1)
        query = select(incidents.c.key).select_from(fts.join(incidents, incidents.c.key == fts.c.rowid)).where(_match(_said(self.words)))
        # unindexed: else SQLite asks the full-text index once for every key of `inside`.
        return query.where(unindexed(fts.c.rowid).in_(inside)).order_by(text("bm25(search, 1.0, 0.0)"), fts.c.rowid.desc())

    def _columns(self) -> Values:
        """The values by column; a rule is asked for by all that stands in `rules` where it does."""
        if "rule" not in self.values:
            return self.values
        known = rollups.values(self.connection, self.who.team, "rules", None)
        some = [rules for rules in known if not set(self.values["rule"]).isdisjoint(rules.split())]
        return {**{field: value for field, value in self.values.items() if field != "rule"}, "rules": some}

    def _by_columns(self) -> list[ColumnElement[bool]]:
        where = [_one_of(name, some) for name, some in self._columns().items() if name != self.lead]
        if self.words:  # who may see is asked of both tables: each is narrowed down before they are joined
            where += [visible(tables.search, self.who), tables.search.c.words.op("@@")(self._tsquery())]
        return where

    def _lead(self) -> str | None:
        """The column whose index SQLite walks: the one with the fewest incidents. None where the full-text index is quicker."""
        columns = self._columns()
        counts = {
            name: self._count_of(name, some)
            for name, some in columns.items()
            if name in tables.JUDGED and 0 < len(some) <= _MANY and OPEN not in some and columns.keys() - {name} <= {*tables.BESIDE}
        }
        lead = min(counts, key=lambda name: counts[name], default=None)
        soon_enough = len(columns) == 1 and getattr(self.who, "channels", None) is None  # every entry that is met counts
        return lead if lead is not None and (soon_enough or counts[lead] <= _MOST_LED) else None

    def _count_of(self, field: str, some: Sequence[str]) -> int:
        known = rollups.values(self.connection, self.who.team, field, None)
        return sum(known.get(value, 0) for value in some)

    def _by_marks(self) -> list[ColumnElement[bool]]:
        if self.bare:
            return []
        by_column = self._by_column()
        marks = [_any_mark(field, some) for field, some in self.values.items() if some and field not in by_column] + self._whose()
        parts = ([f"marks : ({' AND '.join(marks)})"] if marks else []) + ([_said(self.words)] if self.words else [])
        return [_match(" AND ".join(parts)), *(_one_of(field, self.values[field]) for field in by_column)]

    def _by_column(self) -> list[str]:
        """Fields that allow so many values that most rows have one: where others lead, looking at the row is quicker than a long OR."""
        wide = [field for field, some in self.values.items() if len(some) > _MANY and field in incidents.c]
        return [field for field in wide if len(self.values) - len(wide) + len(self.words) >= _LEADERS and self._share(field) > _MOST]

    def _share(self, field: str) -> float:
        known = rollups.values(self.connection, self.who.team, field, None)
        return self._count_of(field, self.values[field]) / (sum(known.values()) or 1)

    def _whose(self) -> list[str]:
        """The channels as marks while they are few; the team where it has few incidents, else its list is longer than what it rules out."""
        channels = getattr(self.who, "channels", None)
        marks = [_any_mark("channel", sorted(channels))] if channels and len(channels) <= _CHANNELS_AS_MARKS else []
        if sum(rollups.values(self.connection, self.who.team, "total", None).values()) <= _FEW:
            marks.append(mark("team", self.who.team))
        return marks

    def _tsquery(self) -> Any:
        config: ColumnElement[Any] = literal_column("'simple'::regconfig")
        parts: list[ColumnElement[Any]] = []
        for word in self.words:
            if word.endswith("*"):
                parts.append(func.to_tsquery(config, literal(" <-> ".join(word[:-1].split()) + ":*")))
            else:
                parts.append(_all([func.phraseto_tsquery(config, literal(one)) for one in spellings(word)], "||"))
        return _all(parts, "&&")


def _any_mark(field: str, some: Sequence[str]) -> str:
    return "(" + " OR ".join(mark(field, value) for value in some) + ")"


def _one_of(field: str, some: Sequence[str]) -> ColumnElement[bool]:
    target = incidents.c[field]
    if field == "outcome" and OPEN in some:
        return or_(target.is_(None), target.in_(some))
    given: Sequence[Any] = [int(value) for value in some] if field in INTEGERS else some
    return target == given[0] if len(given) == 1 else target.in_(given)


def _match(expression: str) -> ColumnElement[bool]:
    return text("search MATCH :expression").bindparams(expression=expression)  # type: ignore[return-value]


def _said(words: Sequence[str]) -> str:
    return f"words : ({' AND '.join(map(_spelt, words))})"


def _spelt(word: str) -> str:
    if word.endswith("*"):
        return f'"{word[:-1]}" *'
    written = [f'"{one}"' for one in spellings(word)]
    return written[0] if len(written) == 1 else f"({' OR '.join(written)})"


def _all(parts: Sequence[ColumnElement[Any]], sign: str) -> ColumnElement[Any]:
    joined = parts[0]
    for part in parts[1:]:
        joined = joined.op(sign)(part)
    return joined
