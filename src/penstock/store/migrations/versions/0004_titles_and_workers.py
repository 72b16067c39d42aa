"""What people call a job, and the workers that are alive."""

import sqlalchemy as sa
from alembic import op

from penstock.store.types import Moment, Payload

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Nothing that is there is changed: code of the revision before goes on beside it."""
    op.add_column("jobs", sa.Column("title", sa.String(255), nullable=True))
    op.create_table(
        "workers",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("started_at", Moment, nullable=False),
        sa.Column("seen_at", Moment, nullable=False),
        sa.Column("data", Payload, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_workers"),
    )
