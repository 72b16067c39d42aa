"""Parsers elsewhere say when they begin with a request."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Code of the revision before goes on beside it: it knows nothing of this table."""
    op.create_table(
        "parse_start",
        sa.Column("request_id", sa.Uuid(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("request_id", name="pk_parse_start"),
    )
    op.create_index("ix_parse_start_started_at", "parse_start", ["started_at"], unique=False)
