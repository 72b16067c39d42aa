"""Photos that cannot be read, names that are not UTF-8, the last scan, and the jobs of a catalog are kept."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Code of the revision before goes on beside it: it knows nothing of what is added."""
    op.add_column("catalogs", sa.Column("last_scan", sa.JSON(), nullable=True))
    op.add_column("photos", sa.Column("path_bytes", sa.LargeBinary(), nullable=True))
    op.create_table(
        "unreadable_photos",
        sa.Column("catalog_id", sa.Uuid(), nullable=False),
        sa.Column("path_sha256", sa.String(length=64), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("path_bytes", sa.LargeBinary(), nullable=True),
        sa.Column("error_code", sa.String(length=64), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("scan_id", sa.Uuid(), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("catalog_id", "path_sha256", name="pk_unreadable_photos"),
    )
    op.create_table(
        "catalog_jobs",
        sa.Column("catalog_id", sa.Uuid(), nullable=False),
        sa.Column("work", sa.String(length=100), nullable=False),
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("unique_key", sa.String(length=255), nullable=False),
        sa.PrimaryKeyConstraint("catalog_id", "work", name="pk_catalog_jobs"),
    )
