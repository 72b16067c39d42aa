"""What people call a job, the workers that are alive, and lists of jobs in a state, newest first."""

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
    op.create_index("ix_jobs_state_created_at_id", "jobs", ["state", "created_at", "id"], unique=False)
    op.create_index(
        "ix_jobs_user_id_state_created_at_id", "jobs", ["user_id", "state", "created_at", "id"], unique=False
    )
    op.drop_index("ix_jobs_user_id_state", "jobs")  # the one above begins with the same columns
    op.create_table(
        "workers",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("started_at", Moment, nullable=False),
        sa.Column("seen_at", Moment, nullable=False),
        sa.Column("data", Payload, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_workers"),
    )
