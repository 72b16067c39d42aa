"""A saved recipe has a number, which its clients know it by; what was its id is its UUID."""

import sqlalchemy as sa
from alembic import op

from penstock.store import own_metadata

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None
compatible_from = "0002"
"""Older programs look for recipes by their UUIDs alone, and read amounts of ingredients as numbers."""

_COLUMNS = ("user_id", "title", "body", "parse_job_id", "created_at", "updated_at")
_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Number the saved recipes by their age; what was parsed of pages has amounts as numbers, and is parsed again."""
    op.create_table("saved_recipe_old", sa.Column("id", sa.Uuid(), nullable=False), *_other_columns())
    _copy("saved_recipe", ("id", *_COLUMNS), to="saved_recipe_old", as_columns=("id", *_COLUMNS))
    op.drop_table("saved_recipe")
    op.create_table(
        "saved_recipe",
        sa.Column("id", _NUMBER, autoincrement=True, nullable=False),
        sa.Column("uuid", sa.Uuid(), nullable=False),
        *_other_columns(),
        sa.PrimaryKeyConstraint("id", name="pk_saved_recipe"),
        sqlite_autoincrement=True,
    )
    _copy("saved_recipe_old", ("id", *_COLUMNS), to="saved_recipe", as_columns=("uuid", *_COLUMNS))
    op.drop_table("saved_recipe_old")
    op.create_index("ix_saved_recipe_uuid", "saved_recipe", ["uuid"], unique=True)
    op.create_index(
        "ix_saved_recipe_user_id_created_at_uuid", "saved_recipe", ["user_id", "created_at", "uuid"], unique=False
    )
    op.execute(sa.delete(_table("recipe", ())))


def _other_columns() -> tuple[sa.Column[object], ...]:
    return (
        sa.Column("user_id", sa.String(length=255), nullable=False),
        sa.Column("title", sa.String(length=500), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column("parse_job_id", sa.Uuid(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
    )


def _copy(name: str, columns: tuple[str, ...], *, to: str, as_columns: tuple[str, ...]) -> None:
    source, target = _table(name, columns), _table(to, as_columns)
    rows = sa.select(source).order_by(source.c.created_at, source.c.id)
    op.execute(target.insert().from_select(as_columns, rows))


def _table(name: str, columns: tuple[str, ...]) -> sa.Table:
    return sa.Table(name, own_metadata(), *(sa.Column(column) for column in columns))
