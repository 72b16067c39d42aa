"""Columns of jobs, and the index of the queue, are named by what they hold."""

import sqlalchemy as sa
from alembic import op

from penstock.store.placement import placement_of

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None
compatible_from = "0008"
"""Older programs use the old names."""
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
    _rename_index("ix_jobs_turn", "ix_jobs_next_claim")


def _rename_index(old: str, new: str) -> None:
    """SQLite cannot rename an index: it is built again, over the few jobs that are queued."""
    dialect = op.get_context().dialect
    if dialect.name == "sqlite":
        op.drop_index(old, "jobs")
        op.create_index(
            new,
            "jobs",
            ["kind", sa.literal_column("priority DESC"), "next_claim_at"],
            unique=False,
            sqlite_where=sa.text("next_claim_at IS NOT NULL"),
        )
        return
    quote, placement = dialect.identifier_preparer.quote, placement_of(dialect)
    place = "" if placement.schema is None else f"{quote(placement.schema)}."
    op.execute(f"ALTER INDEX {place}{quote(placement.index(old))} RENAME TO {quote(placement.index(new))}")
