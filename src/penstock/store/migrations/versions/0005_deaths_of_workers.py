"""Deaths of workers, counted apart from the tries of the items they held."""

import sqlalchemy as sa
from alembic import op

from penstock.store.types import Identifier, Moment

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Nothing that is there is changed: code of the revision before goes on beside it."""
    for table in ("jobs", "job_items"):
        op.add_column(table, sa.Column("deaths", sa.Integer(), nullable=False, server_default=sa.text("0")))
    op.add_column("job_items", sa.Column("alone", Identifier, nullable=True))
    op.create_table(
        "worker_deaths",
        sa.Column("worker", sa.String(64), nullable=False),
        sa.Column("at", Moment, nullable=False),
        sa.Column("items", sa.Integer(), nullable=False, server_default=sa.text("0")),
        sa.PrimaryKeyConstraint("worker", name="pk_worker_deaths"),
    )
