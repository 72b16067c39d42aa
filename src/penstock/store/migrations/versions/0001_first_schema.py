"""The first schema: jobs, their items, their history, files and the outbox."""

import sqlalchemy as sa
from alembic import op

from penstock.store.types import Identifier, Moment, PayloadType, RowNumber

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create everything."""
    op.create_table(
        "files",
        sa.Column("id", Identifier(), nullable=False),
        sa.Column("user_id", sa.String(length=255), nullable=True),
        sa.Column("name", sa.String(length=1024), nullable=False),
        sa.Column("media_type", sa.String(length=255), nullable=True),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("created_at", Moment(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_files")),
    )
    op.create_index("ix_files_sha256", "files", ["sha256"], unique=False)
    op.create_index("ix_files_user_id_created_at", "files", ["user_id", "created_at"], unique=False)
    op.create_table(
        "job_events",
        sa.Column("job_id", Identifier(), nullable=False),
        sa.Column("sequence", sa.Integer(), nullable=False),
        sa.Column("run", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("from_state", sa.String(length=16), nullable=True),
        sa.Column("to_state", sa.String(length=16), nullable=False),
        sa.Column("actor", sa.String(length=8), nullable=False),
        sa.Column("actor_id", sa.String(length=255), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("data", PayloadType(), nullable=True),
        sa.Column("at", Moment(), nullable=False),
        sa.PrimaryKeyConstraint("job_id", "sequence", name=op.f("pk_job_events")),
    )
    op.create_table(
        "job_items",
        sa.Column("id", RowNumber, autoincrement=True, nullable=False),
        sa.Column("job_id", Identifier(), nullable=False),
        sa.Column("user_id", sa.String(length=255), nullable=True),
        sa.Column("kind", sa.String(length=64), nullable=False),
        sa.Column("role", sa.String(length=8), server_default=sa.text("'item'"), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(length=10), server_default=sa.text("'PENDING'"), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("ready_at", Moment(), nullable=True),
        sa.Column("lease", Identifier(), nullable=True),
        sa.Column("locked_by", sa.String(length=64), nullable=True),
        sa.Column("locked_at", Moment(), nullable=True),
        sa.Column("lock_expires_at", Moment(), nullable=True),
        sa.Column("input_json", PayloadType(), nullable=True),
        sa.Column("normalized_json", PayloadType(), nullable=True),
        sa.Column("result_json", PayloadType(), nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("error_code", sa.String(length=64), nullable=True),
        sa.Column("error_type", sa.String(length=16), nullable=True),
        sa.Column("killed_by", sa.String(length=16), nullable=True),
        sa.Column("traceback", sa.Text(), nullable=True),
        sa.Column("updated_at", Moment(), nullable=False),
        sa.CheckConstraint(
            "(status = 'PROCESSING') = (lease IS NOT NULL)", name=op.f("ck_job_items_lease_while_processing")
        ),
        sa.CheckConstraint("role IN ('plan', 'item', 'finalize')", name=op.f("ck_job_items_role")),
        sa.CheckConstraint(
            "status IN ('PENDING', 'PROCESSING', 'DONE', 'ERROR', 'NOT_FOUND', 'SKIPPED')",
            name=op.f("ck_job_items_status"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_job_items")),
        sa.UniqueConstraint("job_id", "position", name=op.f("uq_job_items_job_id_position")),
    )
    op.create_index(
        "ix_job_items_job_id_status_updated_at_id", "job_items", ["job_id", "status", "updated_at", "id"], unique=False
    )
    op.create_index(
        "ix_job_items_returned",
        "job_items",
        ["job_id", "ready_at"],
        unique=False,
        postgresql_where=sa.text("status = 'PENDING' AND ready_at IS NOT NULL"),
        sqlite_where=sa.text("status = 'PENDING' AND ready_at IS NOT NULL"),
    )
    op.create_index(
        "ix_job_items_status_user_id_updated_at_id",
        "job_items",
        ["status", "user_id", "updated_at", "id"],
        unique=False,
        postgresql_where=sa.text("status IN ('PENDING', 'PROCESSING')"),
        sqlite_where=sa.text("status IN ('PENDING', 'PROCESSING')"),
    )
    op.create_table(
        "jobs",
        sa.Column("id", Identifier(), nullable=False),
        sa.Column("kind", sa.String(length=64), nullable=False),
        sa.Column("user_id", sa.String(length=255), nullable=True),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("previous_state", sa.String(length=16), nullable=True),
        sa.Column("phase", sa.String(length=16), server_default=sa.text("'init'"), nullable=False),
        sa.Column("run", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("priority", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("params", PayloadType(), nullable=True),
        sa.Column("result", PayloadType(), nullable=True),
        sa.Column("unique_key", sa.String(length=255), nullable=True),
        sa.Column("idempotency_key", sa.String(length=64), nullable=True),
        sa.Column("leader_id", Identifier(), nullable=True),
        sa.Column("followed", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("single_step", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("planned", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("finalizes", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("total_items", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("processed_items", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("failed_items", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("not_found_items", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("skipped_items", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("returned_items", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("claimed_to", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("open_to", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("turn_at", Moment(), nullable=True),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("retries", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("max_retries", sa.Integer(), server_default=sa.text("3"), nullable=False),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("error_code", sa.String(length=64), nullable=True),
        sa.Column("error_type", sa.String(length=16), nullable=True),
        sa.Column("failed_phase", sa.String(length=16), nullable=True),
        sa.Column("killed_by", sa.String(length=16), nullable=True),
        sa.Column("killed_reason", sa.Text(), nullable=True),
        sa.Column("message", sa.Text(), nullable=True),
        sa.Column("last_heartbeat", Moment(), nullable=True),
        sa.Column("file_id", Identifier(), nullable=True),
        sa.Column("ip_address", sa.String(length=64), nullable=True),
        sa.Column("event_sequence", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("created_at", Moment(), nullable=False),
        sa.Column("queued_at", Moment(), nullable=True),
        sa.Column("started_at", Moment(), nullable=True),
        sa.Column("completed_at", Moment(), nullable=True),
        sa.Column("committed_at", Moment(), nullable=True),
        sa.Column("abandoned_at", Moment(), nullable=True),
        sa.Column("canceled_at", Moment(), nullable=True),
        sa.Column("updated_at", Moment(), nullable=False),
        sa.CheckConstraint("error_type IN ('RETRYABLE', 'TERMINAL')", name=op.f("ck_jobs_error_type")),
        sa.CheckConstraint(
            "killed_by IN ('user', 'system', 'timeout', 'worker_crash', 'oom')", name=op.f("ck_jobs_killed_by")
        ),
        sa.CheckConstraint("phase IN ('init', 'batching', 'processing', 'finalizing')", name=op.f("ck_jobs_phase")),
        sa.CheckConstraint(
            "state IN ('created', 'queued', 'running', 'retrying', 'paused', 'succeeded', 'failed', 'canceled', 'committed', 'abandoned')",
            name=op.f("ck_jobs_state"),
        ),
        sa.CheckConstraint("processed_items <= total_items", name=op.f("ck_jobs_processed_within_total")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_jobs")),
    )
    op.create_index(
        "ix_jobs_completed_at",
        "jobs",
        ["completed_at"],
        unique=False,
        postgresql_where=sa.text("state = 'succeeded'"),
        sqlite_where=sa.text("state = 'succeeded'"),
    )
    op.create_index(
        "ix_jobs_leader_id",
        "jobs",
        ["leader_id"],
        unique=False,
        postgresql_where=sa.text("leader_id IS NOT NULL"),
        sqlite_where=sa.text("leader_id IS NOT NULL"),
    )
    op.create_index("ix_jobs_state_kind", "jobs", ["state", "kind"], unique=False)
    op.create_index(
        "ix_jobs_turn",
        "jobs",
        ["kind", sa.literal_column("priority DESC"), "turn_at"],
        unique=False,
        postgresql_where=sa.text("turn_at IS NOT NULL"),
        sqlite_where=sa.text("turn_at IS NOT NULL"),
    )
    op.create_index(
        "ix_jobs_unique_key",
        "jobs",
        ["kind", "unique_key"],
        unique=False,
        postgresql_where=sa.text("unique_key IS NOT NULL"),
        sqlite_where=sa.text("unique_key IS NOT NULL"),
    )
    op.create_index("ix_jobs_user_id_created_at", "jobs", ["user_id", "created_at"], unique=False)
    op.create_index("ix_jobs_user_id_state", "jobs", ["user_id", "state"], unique=False)
    op.create_index(
        "uq_jobs_active",
        "jobs",
        ["kind", "unique_key"],
        unique=True,
        postgresql_where=sa.text(
            "unique_key IS NOT NULL AND leader_id IS NULL AND state IN ('created', 'queued', 'running', 'retrying', 'paused')"
        ),
        sqlite_where=sa.text(
            "unique_key IS NOT NULL AND leader_id IS NULL AND state IN ('created', 'queued', 'running', 'retrying', 'paused')"
        ),
    )
    op.create_index(
        "uq_jobs_idempotency_key",
        "jobs",
        ["idempotency_key"],
        unique=True,
        postgresql_where=sa.text("idempotency_key IS NOT NULL"),
        sqlite_where=sa.text("idempotency_key IS NOT NULL"),
    )
    op.create_table(
        "outbox",
        sa.Column("id", RowNumber, autoincrement=True, nullable=False),
        sa.Column("topic", sa.String(length=255), nullable=False),
        sa.Column("key", sa.String(length=255), nullable=True),
        sa.Column("payload", PayloadType(), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("ready_at", Moment(), nullable=False),
        sa.Column("created_at", Moment(), nullable=False),
        sa.Column("sent_at", Moment(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outbox")),
    )
    op.create_index(
        "ix_outbox_unsent",
        "outbox",
        ["id"],
        unique=False,
        postgresql_where=sa.text("sent_at IS NULL"),
        sqlite_where=sa.text("sent_at IS NULL"),
    )
    op.create_index(
        "ix_outbox_unsent_key",
        "outbox",
        ["key", "id"],
        unique=False,
        postgresql_where=sa.text("sent_at IS NULL"),
        sqlite_where=sa.text("sent_at IS NULL"),
    )
