"""Tries that found nothing are counted apart from those that failed: each kind has a bound of its own."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_COUNTERS = ("not_found_attempts", "earlier_not_found")


def upgrade() -> None:
    """Code of the revision before goes on beside it: it counts all tries together."""
    for name in _COUNTERS:
        op.add_column("job_items", sa.Column(name, sa.Integer(), server_default=sa.text("0"), nullable=False))
