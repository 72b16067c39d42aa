"""Indexes for lists of jobs, newest first: everybody's for an admin, and a user's, which also knows jobs of one moment."""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add one, and let the other go on to the id."""
    op.create_index("ix_jobs_created_at_id", "jobs", ["created_at", "id"], unique=False)
    op.create_index("ix_jobs_user_id_created_at_id", "jobs", ["user_id", "created_at", "id"], unique=False)
    op.drop_index("ix_jobs_user_id_created_at", "jobs")
