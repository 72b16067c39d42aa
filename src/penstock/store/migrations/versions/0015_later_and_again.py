"""Jobs that are released at a time, and what is submitted again and again."""

import sqlalchemy as sa
from alembic import op

from penstock.store.types import Identifier, Moment, Payload

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """No row is touched, and code of the revision before goes on beside it: it leaves a delayed job where it is."""
    op.add_column("jobs", sa.Column("run_at", Moment, nullable=True))
    op.create_table(
        "schedules",
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("kind", sa.String(64), nullable=False),
        sa.Column("definition", Payload, nullable=False),
        sa.Column("is_paused", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("next_at", Moment, nullable=True),
        sa.Column("last_at", Moment, nullable=True),
        sa.Column("last_job_id", Identifier, nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("updated_at", Moment, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_schedules"),
    )
