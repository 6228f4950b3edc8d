"""What engines reported for a model is read newest first: an index in that order, in place of one by card that nothing asks for."""

from alembic import op

revision = "2026_11_30_measured"
down_revision = "2026_11_30_audit"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_figures_team_model_incident", "figures", ["team", "model", "incident"])
    op.drop_index("ix_figures_team_model_gpu_tp", table_name="figures")


def downgrade() -> None:
    op.create_index("ix_figures_team_model_gpu_tp", "figures", ["team", "model", "gpu", "tp"])
    op.drop_index("ix_figures_team_model_incident", table_name="figures")
