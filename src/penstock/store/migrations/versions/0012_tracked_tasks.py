"""Jobs that another engine moves, and the tasks they are made of."""

import sqlalchemy as sa
from alembic import op

from penstock.store.types import Identifier, Moment, Payload

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

_KILLERS = "'user', 'system', 'timeout', 'worker_crash', 'oom'"


def upgrade() -> None:
    """No row is touched, and code of the revision before goes on beside it: it finds nothing to claim in such a job."""
    op.add_column("jobs", sa.Column("engine", sa.String(16), nullable=True))
    is_tracked = sa.text("engine IS NOT NULL")
    op.create_index(
        "ix_jobs_tracked", "jobs", ["state", "state_since"], postgresql_where=is_tracked, sqlite_where=is_tracked
    )
    op.create_table(
        "job_tasks",
        sa.Column("job_id", Identifier(), nullable=False),
        sa.Column("task_id", sa.String(155), nullable=False),
        sa.Column("name", sa.String(255), nullable=True),
        sa.Column("version", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("status", sa.SmallInteger(), nullable=False),
        sa.Column("leads_to", sa.String(155), nullable=True),
        sa.Column("is_root", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("is_awaited", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("is_counted", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("acks_late", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("worker", sa.String(64), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("error_code", sa.String(64), nullable=True),
        sa.Column("error_class", sa.String(100), nullable=True),
        sa.Column("killed_by", sa.String(16), nullable=True),
        sa.Column("result", Payload, nullable=True),
        sa.Column("checked_at", Moment, nullable=False),
        sa.Column("updated_at", Moment, nullable=False),
        sa.PrimaryKeyConstraint("job_id", "task_id", name="pk_job_tasks"),
        sa.CheckConstraint(f"killed_by IN ({_KILLERS})", name="ck_job_tasks_killed_by"),
    )
    is_open = sa.text("status < 40")
    op.create_index(
        "ix_job_tasks_checked_at", "job_tasks", ["checked_at"], postgresql_where=is_open, sqlite_where=is_open
    )
