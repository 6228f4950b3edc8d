"""The first tables."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "2026_11_30"
down_revision = None
branch_labels = None
depends_on = None


JUDGED = (
    "engine", "error_kind", "family", "flag", "gpu_count", "gpu", "model", "outcome", "phase", "rank", "remedy", "tp", "verdict", "version",
    "version_sort",
)  # fmt: skip
KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _scope() -> list[sa.Column[Any]]:
    return [
        sa.Column("enterprise", sa.Text(), server_default="", nullable=False),
        sa.Column("team", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), server_default="", nullable=False),
        sa.Column("private", sa.Boolean(), server_default=sa.text("false"), nullable=False),
    ]


def _of_incident() -> list[sa.Column[Any]]:
    return [sa.Column("incident", KEY, nullable=False), sa.Column("number", sa.Integer(), nullable=False), *_scope()]


def upgrade() -> None:
    op.create_table(
        "counters",
        sa.Column("enterprise", sa.Text(), server_default="", nullable=False),
        sa.Column("team", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("team", "name", name=op.f("pk_counters")),
    )
    op.create_table(
        "deliveries",
        sa.Column("key", KEY, nullable=False),
        *_scope(),
        sa.Column("thread", sa.Text(), server_default="", nullable=False),
        sa.Column("dedup", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("ready_at", sa.BigInteger(), nullable=False),
        sa.Column("worker", sa.Text(), nullable=True),
        sa.Column("lease_until", sa.BigInteger(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("done_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("state IN ('waiting', 'working', 'done', 'failed', 'drop')", name=op.f("ck_deliveries_state")),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_deliveries")),
        sa.UniqueConstraint("team", "dedup", name=op.f("uq_deliveries_team_dedup")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_deliveries_drop",
        "deliveries",
        ["key"],
        unique=False,
        sqlite_where=sa.text("state = 'drop'"),
        postgresql_where=sa.text("state = 'drop'"),
    )
    op.create_index(
        "ix_deliveries_pending",
        "deliveries",
        ["team", "channel", "thread", "key"],
        unique=False,
        sqlite_where=sa.text("state IN ('waiting', 'working')"),
        postgresql_where=sa.text("state IN ('waiting', 'working')"),
    )
    op.create_table(
        "incidents",
        sa.Column("key", KEY, autoincrement=False, nullable=False),
        *_scope(),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("thread", sa.Text(), server_default="", nullable=False),
        sa.Column("updated", sa.BigInteger(), nullable=False),
        sa.Column("erased", sa.BigInteger(), nullable=True),
        sa.Column("verdict", sa.Text(), nullable=True),
        sa.Column("phase", sa.Text(), nullable=True),
        sa.Column("engine", sa.Text(), nullable=True),
        sa.Column("version", sa.Text(), nullable=True),
        sa.Column("version_sort", sa.BigInteger(), nullable=True),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("family", sa.Text(), nullable=True),
        sa.Column("gpu", sa.Text(), nullable=True),
        sa.Column("gpu_count", sa.Integer(), nullable=True),
        sa.Column("tp", sa.Integer(), nullable=True),
        sa.Column("rank", sa.Integer(), nullable=True),
        sa.Column("error_kind", sa.Text(), nullable=True),
        sa.Column("error_text", sa.Text(), nullable=True),
        sa.Column("remedy", sa.Text(), nullable=True),
        sa.Column("flag", sa.Text(), nullable=True),
        sa.Column("direction", sa.Text(), nullable=True),
        sa.Column("value", sa.Text(), nullable=True),
        sa.Column("rulebook", sa.Text(), nullable=True),
        sa.Column("rules", sa.Text(), nullable=True),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.Column("settled", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_incidents")),
        sa.UniqueConstraint("team", "number", name=op.f("uq_incidents_team_number")),
    )
    op.create_index("ix_incidents_team_channel_thread", "incidents", ["team", "channel", "thread"], unique=False)
    for name in JUDGED:
        op.create_index(f"ix_incidents_team_{name}_key", "incidents", ["team", name, "key"], unique=False)
    op.create_index("ix_incidents_team_key", "incidents", ["team", "key"], unique=False)
    op.create_table(
        "installs",
        sa.Column("enterprise", sa.Text(), nullable=False),
        sa.Column("team", sa.Text(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.Column("by", sa.Text(), nullable=True),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("enterprise", "team", name=op.f("pk_installs")),
    )
    op.create_table(
        "replies",
        sa.Column("enterprise", sa.Text(), server_default="", nullable=False),
        sa.Column("team", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("thread", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("private", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("number", sa.Integer(), nullable=True),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=True),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("team", "channel", "thread", "kind", name=op.f("pk_replies")),
    )
    op.create_index("ix_replies_team_number", "replies", ["team", "number"], unique=False)
    op.create_table(
        "rollups",
        sa.Column("team", sa.Text(), nullable=False),
        sa.Column("field", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("team", "field", "value", "channel", name=op.f("pk_rollups")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "settings",
        sa.Column("enterprise", sa.Text(), server_default="", nullable=False),
        sa.Column("team", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("team", "name", name=op.f("pk_settings")),
    )
    op.create_table(
        "watches",
        sa.Column("enterprise", sa.Text(), server_default="", nullable=False),
        sa.Column("team", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("private", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("on", sa.Boolean(), nullable=False),
        sa.Column("by", sa.Text(), nullable=True),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("team", "channel", name=op.f("pk_watches")),
    )
    op.create_table(
        "contributions",
        *_of_incident(),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=True),
        sa.Column("author", sa.Text(), nullable=True),
        sa.Column("message", sa.Text(), nullable=True),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("redactions", sa.Integer(), server_default="0", nullable=False),
        sa.Column("truncated", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("text", sa.LargeBinary(), nullable=True),
        sa.Column("sha256", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["incident"], ["incidents.key"], name=op.f("fk_contributions_incidents")),
        sa.PrimaryKeyConstraint("incident", "number", name=op.f("pk_contributions")),
    )
    op.create_index("ix_contributions_at", "contributions", ["at"], unique=False)
    op.create_index("ix_contributions_team_channel_message", "contributions", ["team", "channel", "message"], unique=False)
    op.create_table(
        "diagnoses",
        *_of_incident(),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("heard", sa.Integer(), nullable=False),
        sa.Column("rulebook", sa.Text(), nullable=True),
        sa.Column("document", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["incident"], ["incidents.key"], name=op.f("fk_diagnoses_incidents")),
        sa.PrimaryKeyConstraint("incident", "number", name=op.f("pk_diagnoses")),
    )
    op.create_table(
        "figures",
        *_of_incident(),
        sa.Column("rank", sa.Integer(), nullable=True),
        sa.Column("label", sa.Text(), nullable=True),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("gpu", sa.Text(), nullable=True),
        sa.Column("tp", sa.Integer(), nullable=True),
        sa.Column("version_sort", sa.BigInteger(), nullable=True),
        sa.Column("batched_tokens", sa.Integer(), nullable=True),
        sa.Column("weights_bytes", sa.BigInteger(), nullable=True),
        sa.Column("activation_peak_bytes", sa.BigInteger(), nullable=True),
        sa.Column("non_torch_bytes", sa.BigInteger(), nullable=True),
        sa.Column("consumed_bytes", sa.BigInteger(), nullable=True),
        sa.Column("graph_bytes", sa.BigInteger(), nullable=True),
        sa.Column("graph_estimate_bytes", sa.BigInteger(), nullable=True),
        sa.Column("kv_cache_bytes", sa.BigInteger(), nullable=True),
        sa.Column("total_bytes", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["incident"], ["incidents.key"], name=op.f("fk_figures_incidents")),
        sa.PrimaryKeyConstraint("incident", "number", name=op.f("pk_figures")),
    )
    op.create_index("ix_figures_team_model_gpu_tp", "figures", ["team", "model", "gpu", "tp"], unique=False)
    op.create_table(
        "trials",
        *_of_incident(),
        sa.Column("opened", sa.BigInteger(), nullable=False),
        sa.Column("phase", sa.Text(), nullable=True),
        sa.Column("remedy", sa.Text(), nullable=True),
        sa.Column("flag", sa.Text(), nullable=True),
        sa.Column("direction", sa.Text(), nullable=True),
        sa.Column("value", sa.Text(), nullable=True),
        sa.Column("change", sa.LargeBinary(), nullable=False),
        sa.Column("withdrawn", sa.BigInteger(), nullable=True),
        sa.Column("result", sa.Text(), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
        sa.Column("by", sa.Text(), nullable=True),
        sa.Column("at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["incident"], ["incidents.key"], name=op.f("fk_trials_incidents")),
        sa.PrimaryKeyConstraint("incident", "number", name=op.f("pk_trials")),
    )
    op.create_index("ix_trials_team_phase_result", "trials", ["team", "phase", "result"], unique=False)
    op.create_table(
        "outcomes",
        *_of_incident(),
        sa.Column("trial", sa.Integer(), nullable=False),
        sa.Column("result", sa.Text(), nullable=False),
        sa.Column("note", sa.Text(), nullable=True),
        sa.Column("by", sa.Text(), nullable=True),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("result IN ('fixed', 'moved', 'same', 'wrong', 'other', 'undo')", name=op.f("ck_outcomes_result")),
        sa.ForeignKeyConstraint(["incident", "trial"], ["trials.incident", "trials.number"], name=op.f("fk_outcomes_trials")),
        sa.ForeignKeyConstraint(["incident"], ["incidents.key"], name=op.f("fk_outcomes_incidents")),
        sa.PrimaryKeyConstraint("incident", "number", name=op.f("pk_outcomes")),
    )
    if op.get_bind().dialect.name == "sqlite":
        # No copy of the text is kept in the index (content=''): it lies compressed in contributions.
        op.execute("CREATE VIRTUAL TABLE search USING fts5(words, marks, content='', tokenize='unicode61 remove_diacritics 0')")
        return
    op.create_table(
        "search",
        sa.Column("incident", sa.BigInteger(), nullable=False),
        *_scope(),
        sa.Column("words", postgresql.TSVECTOR(), nullable=False),
        sa.ForeignKeyConstraint(["incident"], ["incidents.key"], name=op.f("fk_search_incidents")),
        sa.PrimaryKeyConstraint("incident", name=op.f("pk_search")),
    )
    op.create_index("ix_search_words", "search", ["words"], unique=False, postgresql_using="gin")


def downgrade() -> None:
    for table in (
        "search",
        "outcomes",
        "trials",
        "figures",
        "diagnoses",
        "contributions",
        "watches",
        "settings",
        "rollups",
        "replies",
        "installs",
        "incidents",
        "deliveries",
        "counters",
    ):
        op.drop_table(table)
