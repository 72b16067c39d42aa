"""An index for pages of everybody's open items by kind, and what the workers' controllers chose and why."""

import sqlalchemy as sa
from alembic import op

from penstock.store.types import Moment, Payload

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_OPEN = sa.text("status IN ('PENDING', 'PROCESSING')")


def upgrade() -> None:
    """Nothing that is there is changed: code of the revision before goes on beside it."""
    op.create_index(
        "ix_job_items_status_kind_updated_at_id",
        "job_items",
        ["status", "kind", "updated_at", "id"],
        unique=False,
        postgresql_where=_OPEN,
        sqlite_where=_OPEN,
    )
    op.create_table(
        "lane_samples",
        sa.Column("kind", sa.String(64), nullable=False),
        sa.Column("at", Moment, nullable=False),
        sa.Column("worker", sa.String(64), nullable=False),
        sa.Column("data", Payload, nullable=False),
        sa.PrimaryKeyConstraint("kind", "at", "worker", name="pk_lane_samples"),
    )
    op.create_index("ix_lane_samples_at", "lane_samples", ["at"], unique=False)
