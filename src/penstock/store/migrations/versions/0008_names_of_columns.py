"""Columns of jobs are called what they hold."""

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None
compatible_from = "0008"
"""Programs of before ask for the old names."""
needs_stopped_workers = True

NEW_NAMES = {
    "turn_at": "next_claim_at",
    "claimed_to": "last_claimed",
    "open_to": "last_claimable",
    "followed": "has_followers",
    "finalizes": "has_finalizer",
}


def upgrade() -> None:
    """Nothing but names changes, and databases do that without touching a row."""
    for old, new in NEW_NAMES.items():
        op.alter_column("jobs", old, new_column_name=new)
