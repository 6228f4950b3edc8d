"""Reviews of all time out of the rollups: sums by phase, model, GPU and rule, and what was tried."""

import json
from collections import Counter

import sqlalchemy as sa
from alembic import op

revision = "2026_11_30_reviews"
down_revision = "2026_11_30"
branch_labels = None
depends_on = None

ADDED = ("phase fixed", "model fixed", "gpu fixed", "rule wrong", "settled", "settled after", "tried")
FIXED = "SELECT team, '{0} fixed', {0}, channel, count(*) FROM incidents WHERE outcome = 'fixed' AND {0} IS NOT NULL GROUP BY 1, 3, 4"
SUMS = (
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
    if connection.dialect.name == "postgresql":  # microseconds are summed; SQLite's integers have 64 bits as they are
        op.alter_column("rollups", "count", type_=sa.BigInteger(), existing_type=sa.Integer(), existing_nullable=False)
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
    op.execute(f"DELETE FROM rollups WHERE field IN ({', '.join(repr(field) for field in ADDED)})")
