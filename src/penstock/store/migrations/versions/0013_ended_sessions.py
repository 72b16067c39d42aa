"""Sessions that were ended before their tokens ran out."""

import sqlalchemy as sa
from alembic import op

from penstock.store.types import Moment

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """A table of its own: code of the revision before goes on beside it, and takes an ended session for a good one."""
    op.create_table(
        "ended_sessions",
        sa.Column("subject", sa.String(264), nullable=False),
        sa.Column("issued_before", Moment, nullable=False),
        sa.Column("ended_at", Moment, nullable=False),
        sa.Column("forget_at", Moment, nullable=True),
        sa.PrimaryKeyConstraint("subject", name="pk_ended_sessions"),
    )
    op.create_index("ix_ended_sessions_ended_at", "ended_sessions", ["ended_at"])
