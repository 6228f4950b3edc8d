"""Who erased, exported, switched or installed something."""

import sqlalchemy as sa
from alembic import op

revision = "2026_11_30_audit"
down_revision = "2026_11_30_many"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "audit",
        sa.Column("key", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("enterprise", sa.Text(), server_default="", nullable=False),
        sa.Column("team", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), server_default="", nullable=False),
        sa.Column("private", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("by", sa.Text(), nullable=True),
        sa.Column("deed", sa.Text(), nullable=False),
        sa.Column("about", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_audit")),
    )
    op.create_index("ix_audit_team_key", "audit", ["team", "key"])


def downgrade() -> None:
    op.drop_table("audit")
