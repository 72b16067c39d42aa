"""Jobs know how long they waited, worked and were paused, and how fast they go; errors keep the name of their class."""

import sqlalchemy as sa
from alembic import op

from penstock.store.types import Moment

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_SUMS = ("waiting_seconds", "active_seconds", "paused_seconds", "recent_items", "recent_seconds")


def upgrade() -> None:
    """No row is touched, and code of the revision before goes on beside it.

    A job that was recorded before has no ``state_since``: its next change counts from its creation.
    """
    for name in _SUMS:
        op.add_column("jobs", sa.Column(name, sa.Double(), nullable=False, server_default=sa.text("0")))
    for name in ("state_since", "recent_at"):
        op.add_column("jobs", sa.Column(name, Moment, nullable=True))
    for table in ("jobs", "job_items"):
        op.add_column(table, sa.Column("error_class", sa.String(100), nullable=True))
