"""A relay takes messages under a token, topic by topic, and SQLite gives no number of a message twice."""

import sqlalchemy as sa
from alembic import op

from penstock.store.migrations.indexes import NewIndex
from penstock.store.placement import own_metadata
from penstock.store.types import Identifier, Moment, PayloadType, RowNumber

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_UNSENT = "sent_at IS NULL"
_COLUMNS = ("id", "topic", "key", "payload", "attempts", "last_error", "ready_at", "created_at", "sent_at")

indexes = (
    NewIndex("ix_outbox_unsent_topic", "outbox", ("topic", "id"), where=_UNSENT),
    NewIndex("ix_outbox_unsent_topic_key", "outbox", ("topic", "key", "id"), where=_UNSENT),
)


def upgrade() -> None:
    """Code of the revision before goes on beside it: its relays leave alone what one of ours has taken."""
    if op.get_context().dialect.name == "sqlite":
        _number_anew()
        return
    op.drop_index("ix_outbox_unsent_key", "outbox")
    op.add_column("outbox", sa.Column("lease", Identifier, nullable=True))


def _number_anew() -> None:
    """SQLite remembers the highest number that it gave only in tables that were made with AUTOINCREMENT."""
    op.create_table(
        "outbox_new",
        sa.Column("id", RowNumber, primary_key=True, autoincrement=True, nullable=False),
        sa.Column("topic", sa.String(length=255), nullable=False),
        sa.Column("key", sa.String(length=255), nullable=True),
        sa.Column("payload", PayloadType(), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("ready_at", Moment(), nullable=False),
        sa.Column("created_at", Moment(), nullable=False),
        sa.Column("sent_at", Moment(), nullable=True),
        sa.Column("lease", Identifier, nullable=True),
        sqlite_autoincrement=True,
    )
    ours = own_metadata()
    old, new = (sa.Table(name, ours, *(sa.Column(column) for column in _COLUMNS)) for name in ("outbox", "outbox_new"))
    op.execute(new.insert().from_select(_COLUMNS, sa.select(old)))
    op.drop_table("outbox")
    op.rename_table("outbox_new", "outbox")
    op.create_index("ix_outbox_unsent", "outbox", ["id"], unique=False, sqlite_where=sa.text(_UNSENT))
