"""The tables. Moments are microseconds since 1970 (UTC); blobs are zlib; '' stands for no channel, thread or enterprise in keys.

`enterprise`, `team`, `channel` and `private` stand in every row that belongs to someone, so that every query can say who may see it.
"""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import TSVECTOR

NAMES = {
    "pk": "pk_%(table_name)s",
    "fk": "fk_%(table_name)s_%(referred_table_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
}
metadata = MetaData(naming_convention=NAMES)

Key = BigInteger().with_variant(Integer, "sqlite")  # INTEGER PRIMARY KEY is SQLite's own row id


def _scope() -> list[Column[Any]]:
    return [
        Column("enterprise", Text, nullable=False, server_default=""),
        Column("team", Text, nullable=False),
        Column("channel", Text, nullable=False, server_default=""),
        Column("private", Boolean, nullable=False, server_default=text("false")),
    ]


def _of_incident() -> list[Column[Any]]:
    return [
        Column("incident", Key, ForeignKey("incidents.key"), primary_key=True),
        Column("number", Integer, primary_key=True),
        *_scope(),
    ]


JUDGED = (
    "phase", "verdict", "engine", "version", "model", "family", "gpu", "tp", "rank", "error_kind", "remedy", "flag", "rules", "outcome",
)  # fmt: skip
"""Columns of an incident that can be searched by; each has an index that ends in the moment."""

BESIDE = ("phase", "model", "gpu", "outcome", "family", "version", "tp", "rank", "flag", "channel", "private", "enterprise")
"""What else stands in those indexes: what is counted, and what narrows a search down, so that no row must be looked up."""


def _by(*names: str) -> Index:
    return Index(f"ix_incidents_{'_'.join(names)}", *names, *(name for name in BESIDE if name not in names))


incidents = Table(
    "incidents",
    metadata,
    # The key is the moment it was opened, moved on where taken: newest first is key order, on every index.
    Column("key", Key, primary_key=True, autoincrement=False),
    *_scope(),
    Column("number", Integer, nullable=False),
    Column("thread", Text, nullable=False, server_default=""),
    Column("updated", BigInteger, nullable=False),
    Column("erased", BigInteger),
    Column("verdict", Text),
    Column("phase", Text),
    Column("engine", Text),
    Column("version", Text),
    Column("version_sort", BigInteger),
    Column("model", Text),
    Column("family", Text),
    Column("gpu", Text),
    Column("gpu_count", Integer),
    Column("tp", Integer),
    Column("rank", Integer),
    Column("error_kind", Text),
    Column("error_text", Text),
    Column("remedy", Text),
    Column("flag", Text),
    Column("direction", Text),
    Column("value", Text),
    Column("rulebook", Text),
    Column("rules", Text),
    # The newest recorded result; flag, direction and value are then those of the trial it belongs to.
    Column("outcome", Text),
    Column("settled", BigInteger),
    UniqueConstraint("team", "number"),
    Index("ix_incidents_team_channel_thread", "team", "channel", "thread"),
    _by("team", "key"),
    *(_by("team", name, "key") for name in JUDGED),
)

contributions = Table(
    "contributions",
    metadata,
    *_of_incident(),
    Column("kind", Text, nullable=False),
    Column("name", Text),
    Column("author", Text),
    Column("message", Text),
    Column("at", BigInteger, nullable=False),
    Column("redactions", Integer, nullable=False, server_default="0"),
    Column("truncated", Boolean, nullable=False, server_default=text("false")),
    Column("text", LargeBinary),
    Column("sha256", Text),
    Index("ix_contributions_team_channel_message", "team", "channel", "message"),
    Index("ix_contributions_at", "at"),
)

diagnoses = Table(
    "diagnoses",
    metadata,
    *_of_incident(),
    Column("at", BigInteger, nullable=False),
    Column("heard", Integer, nullable=False),  # how many contributions it was judged from
    Column("rulebook", Text),
    Column("document", LargeBinary, nullable=False),
)

trials = Table(
    "trials",
    metadata,
    *_of_incident(),
    Column("opened", BigInteger, nullable=False),
    Column("phase", Text),
    Column("remedy", Text),
    Column("flag", Text),
    Column("direction", Text),
    Column("value", Text),
    Column("change", LargeBinary, nullable=False),
    Column("withdrawn", BigInteger),  # opened by an outcome that was taken back
    # The result now in force; `outcomes` keeps every word that was said about it.
    Column("result", Text),
    Column("note", Text),
    Column("by", Text),
    Column("at", BigInteger),
    Index("ix_trials_team_phase_result", "team", "phase", "result"),
)

outcomes = Table(
    "outcomes",
    metadata,
    *_of_incident(),
    Column("trial", Integer, nullable=False),
    Column("result", Text, nullable=False),
    Column("note", Text),
    Column("by", Text),
    Column("at", BigInteger, nullable=False),
    CheckConstraint("result IN ('fixed', 'moved', 'same', 'wrong', 'other', 'undo')", name="result"),
    ForeignKeyConstraint(["incident", "trial"], ["trials.incident", "trials.number"]),
)

figures = Table(  # what engines reported, for sizing: bytes
    "figures",
    metadata,
    *_of_incident(),
    Column("rank", Integer),
    Column("label", Text),
    Column("model", Text),
    Column("gpu", Text),
    Column("tp", Integer),
    Column("version_sort", BigInteger),
    Column("batched_tokens", Integer),
    Column("weights_bytes", BigInteger),
    Column("activation_peak_bytes", BigInteger),
    Column("non_torch_bytes", BigInteger),
    Column("consumed_bytes", BigInteger),
    Column("graph_bytes", BigInteger),
    Column("graph_estimate_bytes", BigInteger),
    Column("kv_cache_bytes", BigInteger),
    Column("total_bytes", BigInteger),
    Index("ix_figures_team_model_incident", "team", "model", "incident"),
)

deliveries = Table(
    "deliveries",
    metadata,
    Column("key", Key, primary_key=True),
    *_scope(),
    Column("thread", Text, nullable=False, server_default=""),
    Column("dedup", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("payload", LargeBinary, nullable=False),  # emptied when finished
    Column("at", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("ready_at", BigInteger, nullable=False),
    Column("worker", Text),
    Column("lease_until", BigInteger),
    Column("error", Text),
    Column("done_at", BigInteger),
    UniqueConstraint("team", "dedup"),
    CheckConstraint("state IN ('waiting', 'working', 'done', 'failed', 'drop')", name="state"),
    Index(
        "ix_deliveries_pending",
        "team", "channel", "thread", "key",
        sqlite_where=text("state IN ('waiting', 'working')"),
        postgresql_where=text("state IN ('waiting', 'working')"),
    ),
    Index("ix_deliveries_drop", "key", sqlite_where=text("state = 'drop'"), postgresql_where=text("state = 'drop'")),
    sqlite_autoincrement=True,  # an id is never used twice: its order is the order of arrival
)  # fmt: skip

replies = Table(
    "replies",
    metadata,
    *_scope()[:1],
    Column("team", Text, primary_key=True),
    Column("channel", Text, primary_key=True),
    Column("thread", Text, primary_key=True),
    Column("kind", Text, primary_key=True),
    Column("private", Boolean, nullable=False, server_default=text("false")),
    Column("number", Integer),
    Column("message", Text, nullable=False),
    Column("digest", Text),
    Column("at", BigInteger, nullable=False),
    Index("ix_replies_team_number", "team", "number"),
)

installs = Table(
    "installs",
    metadata,
    Column("enterprise", Text, primary_key=True),
    Column("team", Text, primary_key=True),
    Column("payload", LargeBinary, nullable=False),  # encrypted before it gets here
    Column("by", Text),
    Column("at", BigInteger, nullable=False),
)

watches = Table(
    "watches",
    metadata,
    *_scope()[:1],
    Column("team", Text, primary_key=True),
    Column("channel", Text, primary_key=True),
    Column("private", Boolean, nullable=False, server_default=text("false")),
    Column("on", Boolean, nullable=False),
    Column("by", Text),
    Column("at", BigInteger, nullable=False),
)

settings = Table(
    "settings",
    metadata,
    *_scope()[:1],
    Column("team", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

audit = Table(  # append-only: who did what that others must be able to look up. Ids and words of ours only, never what anyone wrote
    "audit",
    metadata,
    Column("key", Key, primary_key=True, autoincrement=False),  # the moment, moved on where taken
    *_scope(),  # no team: the whole database
    Column("by", Text),
    Column("deed", Text, nullable=False),
    Column("about", Text),
    Index("ix_audit_team_key", "team", "key"),
)

counters = Table(
    "counters",
    metadata,
    *_scope()[:1],
    Column("team", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("value", Integer, nullable=False),
)

rollups = Table(  # sums over the incidents and trials of a channel that have a value: counts, search fields' values, reviews
    "rollups",
    metadata,
    Column("team", Text, primary_key=True),
    Column("field", Text, primary_key=True),
    Column("value", Text, primary_key=True),
    Column("channel", Text, primary_key=True),
    Column("count", Key, nullable=False),
    sqlite_with_rowid=False,
)

search = Table(  # PostgreSQL, its words beside each other up to 8 KB; on SQLite the same name is an FTS5 table. Migrations make both
    "search",
    metadata,
    Column("incident", BigInteger, ForeignKey("incidents.key"), primary_key=True),
    *_scope(),
    Column("words", Text().with_variant(TSVECTOR, "postgresql"), nullable=False),
    Index("ix_search_words", "words", postgresql_using="gin"),
)
