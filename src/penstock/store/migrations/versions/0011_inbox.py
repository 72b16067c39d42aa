"""The inbox: which messages had their effect, so that one that comes twice has it once."""

import sqlalchemy as sa
from alembic import op

from penstock.store.types import Moment

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Code of the revision before goes on beside it: it knows nothing of this table."""
    op.create_table(
        "inbox",
        sa.Column("subscriber", sa.String(length=64), nullable=False),
        sa.Column("topic", sa.String(length=255), nullable=False),
        sa.Column("message_id", sa.String(length=255), nullable=False),
        sa.Column("accepted_at", Moment(), nullable=False),
        sa.PrimaryKeyConstraint("subscriber", "topic", "message_id", name="pk_inbox"),
    )
    op.create_index("ix_inbox_accepted_at", "inbox", ["accepted_at"], unique=False)
