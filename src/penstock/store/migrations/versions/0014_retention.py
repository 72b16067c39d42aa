"""Jobs are kept for as long as their kind says: which ones there were, how many, and the indexes to find them by."""

import sqlalchemy as sa
from alembic import op

from penstock.store.migrations.indexes import NewIndex
from penstock.store.types import Identifier, Moment

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

_DONE = "state IN ('succeeded', 'failed', 'committed', 'abandoned')"
_STATES = (
    "state IN ('created', 'queued', 'running', 'retrying', 'paused', 'succeeded', 'failed', 'canceled', 'committed', "
    "'abandoned')"
)

indexes = (
    NewIndex("ix_jobs_done", "jobs", ("kind", "state", "completed_at"), where=_DONE),
    NewIndex("ix_jobs_canceled", "jobs", ("kind", "canceled_at"), where="state IN ('canceled')"),
    NewIndex("ix_jobs_file_id", "jobs", ("file_id",), where="file_id IS NOT NULL"),
    NewIndex("ix_idempotency_keys_job_id", "idempotency_keys", ("job_id",)),
    NewIndex("ix_idempotency_keys_created_at", "idempotency_keys", ("created_at",)),
)


def upgrade() -> None:
    """Code of the revision before goes on beside it: to it a job that was pruned is one that never was.

    Its sweep finds unused results by their state and kind, as the index by their time alone goes.
    """
    op.drop_index("ix_jobs_completed_at", "jobs")
    op.create_table(
        "pruned_jobs",
        sa.Column("id", Identifier(), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=True),
        sa.Column("file_id", Identifier(), nullable=True),
        sa.Column("has_leftovers", sa.Boolean(), nullable=False),
        sa.Column("pruned_at", Moment(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_pruned_jobs"),
    )
    op.create_index(
        "ix_pruned_jobs_leftovers",
        "pruned_jobs",
        ["pruned_at"],
        postgresql_where=sa.text("has_leftovers"),
        sqlite_where=sa.text("has_leftovers"),
    )
    op.create_index("ix_pruned_jobs_pruned_at", "pruned_jobs", ["pruned_at"])
    op.create_table(
        "pruned_counts",
        sa.Column("kind", sa.String(64), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("jobs", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("items", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.PrimaryKeyConstraint("kind", "state", name="pk_pruned_counts"),
        sa.CheckConstraint(_STATES, name=op.f("ck_pruned_counts_state")),
    )
