"""What keeps a million incidents quick: sums for a review of all time, and indexes that answer without the rows."""

import json
from collections import Counter

import sqlalchemy as sa
from alembic import op

revision = "2026_11_30_many"
down_revision = "2026_11_30"
branch_labels = None
depends_on = None

JUDGED = (
    "engine", "error_kind", "family", "flag", "model", "gpu", "outcome", "phase", "rank", "remedy", "rules", "tp", "verdict", "version",
)  # fmt: skip
INDEXES = (["team", "key"], *(["team", name, "key"] for name in JUDGED))
BESIDE = ("phase", "model", "gpu", "outcome", "family", "version", "tp", "rank", "flag", "channel", "private", "enterprise")
ADDED = ("rules", "phase fixed", "model fixed", "gpu fixed", "rule wrong", "settled", "settled after", "tried")
FIXED = "SELECT team, '{0} fixed', {0}, channel, count(*) FROM incidents WHERE outcome = 'fixed' AND {0} IS NOT NULL GROUP BY 1, 3, 4"
SUMS = (
    "SELECT team, 'rules', rules, channel, count(*) FROM incidents WHERE rules IS NOT NULL GROUP BY 1, 3, 4",
    *(FIXED.format(name) for name in ("phase", "model", "gpu")),
    "SELECT team, 'settled', coalesce(phase, ''), channel, count(*) FROM incidents WHERE settled IS NOT NULL GROUP BY 1, 3, 4",
    "SELECT team, 'settled after', coalesce(phase, ''), channel, sum(settled - key) FROM incidents WHERE settled > key GROUP BY 1, 3, 4",
)
WRONG = "SELECT team, channel, rules, count(*) FROM incidents WHERE outcome = 'wrong' GROUP BY 1, 2, 3"
TRIED = """
SELECT team, channel, phase, remedy, flag, direction, result, count(*) FROM trials
WHERE result IS NOT NULL AND remedy IS NOT NULL AND withdrawn IS NULL GROUP BY 1, 2, 3, 4, 5, 6, 7
"""


def upgrade() -> None:
    connection = op.get_bind()
    for name in ("gpu_count", "version_sort"):  # nobody searches by them
        op.drop_index(f"ix_incidents_team_{name}_key", "incidents")
    if connection.dialect.name == "postgresql":
        op.alter_column("rollups", "count", type_=sa.BigInteger(), existing_type=sa.Integer(), existing_nullable=False)  # microseconds
        op.execute("ALTER TABLE search SET (toast_tuple_target = 8160)")  # an incident's words lie in its row, not in a second place
        op.execute(
            "UPDATE incidents SET model = left(model, 200), family = left(family, 200) WHERE length(model) > 200 OR length(family) > 200"
        )
    for columns in INDEXES:
        index = f"ix_incidents_{'_'.join(columns)}"
        op.execute(f"DROP INDEX IF EXISTS {index}")
        op.create_index(index, "incidents", [*columns, *(name for name in BESIDE if name not in columns)])
    _sum(connection)


def _sum(connection: sa.Connection) -> None:
    for query in SUMS:
        op.execute(f"INSERT INTO rollups (team, field, value, channel, count) {query}")
    added: Counter[tuple[str, str, str, str]] = Counter()
    for team, channel, rules, count in connection.execute(sa.text(WRONG)):
        for rule in (rules or "").split() or ["no rule"]:
            added[team, "rule wrong", rule, channel] += count
    for team, channel, *change, count in connection.execute(sa.text(TRIED)):
        added[team, "tried", json.dumps(change, separators=(",", ":")), channel] += count
    names = ("team", "field", "value", "channel", "count")
    rows = [dict(zip(names, (*key, count), strict=True)) for key, count in added.items()]
    if rows:
        connection.execute(
            sa.text("INSERT INTO rollups (team, field, value, channel, count) VALUES (:team, :field, :value, :channel, :count)"), rows
        )


def downgrade() -> None:
    for columns in INDEXES:
        index = f"ix_incidents_{'_'.join(columns)}"
        op.drop_index(index, "incidents")
        if "rules" not in columns:
            op.create_index(index, "incidents", columns)
    for name in ("gpu_count", "version_sort"):
        op.create_index(f"ix_incidents_team_{name}_key", "incidents", ["team", name, "key"])
    op.execute(f"DELETE FROM rollups WHERE field IN ({', '.join(repr(field) for field in ADDED)})")
