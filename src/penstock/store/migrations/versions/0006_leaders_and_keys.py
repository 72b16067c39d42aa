"""Held and paused jobs lead no others, copies keep the age of their source, and idempotency keys have a table."""

import sqlalchemy as sa
from alembic import op

from penstock.store.migrations.indexes import NewIndex
from penstock.store.placement import own_metadata
from penstock.store.types import Identifier, Moment

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_WORKS = "unique_key IS NOT NULL AND leader_id IS NULL"
_ACTIVE = "state IN ('created', 'queued', 'running', 'retrying', 'paused')"

indexes = (
    NewIndex(
        "uq_jobs_leads",
        "jobs",
        ("kind", "unique_key"),
        unique=True,
        where=f"{_WORKS} AND state IN ('queued', 'running', 'retrying')",
    ),
    NewIndex(
        "uq_jobs_owned",
        "jobs",
        ("kind", "unique_key", "user_id"),
        unique=True,
        where=f"{_WORKS} AND user_id IS NOT NULL AND {_ACTIVE}",
    ),
    NewIndex(
        "uq_jobs_guests",
        "jobs",
        ("kind", "unique_key"),
        unique=True,
        where=f"{_WORKS} AND user_id IS NULL AND {_ACTIVE}",
    ),
    NewIndex("ix_jobs_following", "jobs", ("leader_id",), where=f"leader_id IS NOT NULL AND {_ACTIVE}"),
)
"""The unique ones allow more than the one they replace did, so the rows that are there fit them."""


def upgrade() -> None:
    """Code of the revision before goes on beside it.

    ``jobs.idempotency_key`` stays, because that code writes it; this version reads there what it finds nowhere else.
    """
    op.add_column("jobs", sa.Column("result_at", Moment, nullable=True))
    op.drop_index("uq_jobs_active", "jobs")
    op.create_table(
        "idempotency_keys",
        sa.Column("key", sa.String(64), nullable=False),
        sa.Column("request", sa.String(64), nullable=True),
        sa.Column("job_id", Identifier, nullable=True),
        sa.Column("resource_id", Identifier, nullable=True),
        sa.Column("created_at", Moment, nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_idempotency_keys"),
    )
    ours = own_metadata()
    jobs = sa.Table("jobs", ours, *(sa.Column(name) for name in ("id", "idempotency_key", "created_at")))
    keys = sa.Table("idempotency_keys", ours, *(sa.Column(name) for name in ("key", "job_id", "created_at")))
    existing_keys = sa.select(jobs.c.idempotency_key, jobs.c.id, jobs.c.created_at).where(
        jobs.c.idempotency_key.is_not(None)
    )
    op.execute(keys.insert().from_select(["key", "job_id", "created_at"], existing_keys))
