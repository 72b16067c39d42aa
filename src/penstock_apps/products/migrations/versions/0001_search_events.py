"""The first schema of the products: what retailers were asked, and how they answered."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "search_events",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("item_id", sa.BigInteger(), nullable=False),
        sa.Column("user_id", sa.String(length=255), nullable=True),
        sa.Column("kind", sa.String(length=64), nullable=False),
        sa.Column("provider", sa.String(length=200), nullable=False),
        sa.Column("strategy", sa.String(length=32), nullable=False),
        sa.Column("query", sa.String(length=500), nullable=False),
        sa.Column("outcome", sa.String(length=100), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("latency_ms", sa.Float(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_search_events"),
    )
    op.create_index("ix_search_events_job_id_id", "search_events", ["job_id", "id"], unique=False)
