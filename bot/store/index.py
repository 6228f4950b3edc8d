"""The search index: words of the evidence, and the judged values as words of their own; FTS5 on SQLite, tsvector on PostgreSQL.

On SQLite the index keeps no copy of the text: taking an entry out needs the very words that were put in. Whoever changes `words_of`
or `marks_of` must rebuild the index in a migration.
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, delete, text

from bot.store import tables
from bot.store.derived import counted

_SEPARATORS = re.compile(r"[\W_]+")
_SMALL_LETTERS = bytes(ord(chr(code).lower()) if chr(code).isascii() and chr(code).isalnum() else ord(" ") for code in range(256))
SMALL = 20_000  # incidents whose index is merged within a second or two
MOST_WORDS = 400_000  # characters; PostgreSQL's tsvector ends at 1 MB, positions included


_PUT = text(
    "INSERT INTO search (incident, enterprise, team, channel, private, words) "
    "VALUES (:key, :enterprise, :team, :channel, :private, to_tsvector('simple', :words))"
)


def words_of(said: str) -> str:
    """Text as both indexes read it: words of letters and digits, small letters. `max_num_seqs` is three words in a row.

    Of a very long text the head and the tail, since PostgreSQL could not take it all.
    """
    if len(said) > MOST_WORDS:
        said = said[: MOST_WORDS // 2] + " " + said[-MOST_WORDS // 2 :]
    if said.isascii():
        return _ascii_words(said)
    return " ".join(words for line in said.split("\n") if (words := _ascii_words(line) if line.isascii() else _wide_words(line)))


def _ascii_words(said: str) -> str:
    """The same as `_wide_words`, several times as fast: the event loop waits for a log's words."""
    return " ".join(said.encode("ascii").translate(_SMALL_LETTERS).decode("ascii").split())


def _wide_words(said: str) -> str:
    """Wide forms, ligatures and raised digits as the plain letters that both databases know."""
    return _SEPARATORS.sub(" ", unicodedata.normalize("NFKC", said)).lower().strip()


def mark(field: str, value: str) -> str:
    """A judged value as one word that no log contains: `gpu:H100-80GB` is one such word whatever stands in it."""
    return "q" + hashlib.blake2b(f"{field}={value.lower()}".encode("utf-8", "replace"), digest_size=6).hexdigest() + "q"


def marks_of(row: Mapping[str, Any]) -> str:
    """All judged values of an incident's row, its team and its channel, as such words."""
    return " ".join([mark("team", row["team"]), *(mark(field, value) for field, value in counted(row) if field != "total")])


def is_other(connection: Connection, row: Mapping[str, Any], changed: Mapping[str, Any]) -> bool:
    """Whether a changed row has another entry though nobody said anything more: PostgreSQL has columns for what was judged."""
    return connection.dialect.name == "sqlite" and marks_of(row) != marks_of(changed)


def put(connection: Connection, rows: Sequence[tuple[Mapping[str, Any], str]]) -> None:
    """Index (incident row, everything said) pairs."""
    if not rows:
        return
    if connection.dialect.name == "sqlite":
        statement = text("INSERT INTO search (rowid, words, marks) VALUES (:key, :words, :marks)")
        connection.execute(statement, [{"key": row["key"], "words": words_of(said), "marks": marks_of(row)} for row, said in rows])
        return
    names = ("enterprise", "team", "channel", "private")
    entries = [{"key": row["key"], "words": words_of(said), **{name: row[name] for name in names}} for row, said in rows]
    connection.execute(_PUT, entries)


def take_out(connection: Connection, rows: Iterable[tuple[Mapping[str, Any], str]]) -> None:
    """Remove entries; each with the row and the text that it was indexed with."""
    if connection.dialect.name == "sqlite":
        statement = text("INSERT INTO search (search, rowid, words, marks) VALUES ('delete', :key, :words, :marks)")
        gone = [{"key": row["key"], "words": words_of(said), "marks": marks_of(row)} for row, said in rows]
        if gone:
            connection.execute(statement, gone)
        return
    keys = [row["key"] for row, _ in rows]
    connection.execute(delete(tables.search).where(tables.search.c.incident.in_(keys)))


def squeeze(connection: Connection, whole: bool) -> None:
    """SQLite keeps words that were taken out in the file until it merges the index: a small one now, a large one when `whole`."""
    entries = text("SELECT count(*) FROM (SELECT 1 FROM search_docsize LIMIT :most)")
    if whole or connection.execute(entries, {"most": SMALL}).scalar_one() < SMALL:
        connection.execute(text("INSERT INTO search (search) VALUES ('optimize')"))
