"""Search: newest first, at most 50 rows, counts up to 10,000; by relevance only where few enough match."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, func, literal, select, text, union_all

from bot.store import rollups
from bot.store.derived import OPEN
from bot.store.hits import COUNT_UP_TO, Hits, Values
from bot.store.packed import unpack
from bot.store.query import Query, spellings
from bot.store.sight import Sight
from bot.store.tables import contributions, incidents
from bot.store.values import resolve

_RANK_UP_TO = {"sqlite": COUNT_UP_TO, "postgresql": 2_000}  # PostgreSQL unpacks every hit's words to weigh them
FACETS = ("phase", "model", "gpu", "outcome")


@dataclass(frozen=True, slots=True)
class Found:
    """`count` is exact unless `more`; `counts` of each facet are then those of the newest 10,000."""

    rows: list[dict[str, Any]]
    count: int
    more: bool
    counts: dict[str, dict[str, int]]
    unseen: tuple[str, ...] = ()


def search(connection: Connection, who: Sight, query: Query, limit: int, before: int | None = None) -> Found:
    """Everything that a query finds and someone may see. `before` is the number of the last row of the page above."""
    values, unseen = resolve(connection, who, query.terms)
    if values is None or query.wordless:
        return Found([], 0, False, {facet: {} for facet in FACETS}, unseen)
    hits = Hits(connection, who, values, query.words, query.since, query.until, query.numbers)
    count, more, counts = _count(connection, who, hits)
    few = not more and 0 < count <= _RANK_UP_TO[connection.dialect.name]
    if not count:
        unseen = (*unseen, *_alone(connection, who, query, values))
    rows = hits.ranked(limit, before) if query.words and few else None
    if rows is None:
        rows = hits.newest(limit, before)
    return Found(_quoted(connection, rows, query.words), count, more, counts, unseen)


def _alone(connection: Connection, who: Sight, query: Query, values: Values) -> Iterator[str]:
    """Why nothing is found where each field finds something: how many each finds by itself."""
    if len(query.terms) + len(query.words) + (query.since is not None) + (query.until is not None) < 2:
        return
    known = {field: rollups.values(connection, who.team, field, who.channels) for field in values}
    found = [f"{field} {sum(known[field].get(value, 0) for value in some):,}" for field, some in values.items()]
    if found:
        yield f"No incident has all of it. Found by each field alone: {', '.join(found)}. Take one away."


def _count(connection: Connection, who: Sight, hits: Hits) -> tuple[int, bool, dict[str, dict[str, int]]]:
    """How many, whether more than can be counted quickly, and the counts by facet."""
    if hits.bare and len(hits.where) == 1:
        known = {facet: rollups.values(connection, who.team, facet, who.channels) for facet in FACETS}
        return sum(rollups.values(connection, who.team, "total", who.channels).values()), False, known
    newest = hits.newest_of(*(incidents.c[facet] for facet in FACETS), limit=COUNT_UP_TO + 1).cte("newest")
    tallies = [select(literal(facet), newest.c[facet], func.count().label("n")).group_by(newest.c[facet]) for facet in FACETS]
    counts: dict[str, dict[str, int]] = {facet: {} for facet in FACETS}
    total = 0
    for facet, value, count in connection.execute(union_all(*tallies).order_by(text("n DESC"))):
        total += count if facet == "outcome" else 0  # every hit is counted once here, also those without a value
        name = OPEN if facet == "outcome" and value is None else value
        if name is not None:
            counts[facet][name] = count
    return min(total, COUNT_UP_TO), total > COUNT_UP_TO, counts


def _quoted(connection: Connection, rows: list[dict[str, Any]], words: Sequence[str]) -> list[dict[str, Any]]:
    """Each row with the first line that holds one of the words."""
    if not words:
        return [row | {"excerpt": None} for row in rows]
    query = select(contributions.c.incident, contributions.c.text).where(contributions.c.incident.in_([row["key"] for row in rows]))
    query = query.where(contributions.c.text.is_not(None))
    written = [one for word in words for one in spellings(word.rstrip("*"))]
    pattern = re.compile("|".join(r"[\W_]+".join(map(re.escape, word.split())) for word in written), re.IGNORECASE)
    lines: dict[int, str] = {}
    for key, packed in connection.execute(query.order_by(contributions.c.incident, contributions.c.number)):
        said = "" if key in lines else unpack(packed) or ""
        found = pattern.search(said)
        if found:
            start, end = said.rfind("\n", 0, found.start()) + 1, said.find("\n", found.end())
            lines[key] = said[max(start, found.start() - 120) : end if end >= 0 else len(said)][:300].strip()
    return [row | {"excerpt": lines.get(row["key"])} for row in rows]
