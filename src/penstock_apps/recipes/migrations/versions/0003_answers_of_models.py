"""What a language model made of a page is kept apart from what pages say themselves: not everybody wants it."""

import sqlalchemy as sa
from alembic import op

from penstock.store import own_metadata

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_COLUMNS = ("url_hash", "title", "ingredients", "result", "parsed_at")


def upgrade() -> None:
    """Code of the revision before goes on beside it: it reads such a page once more."""
    op.add_column("recipe", sa.Column("llm_may_help", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.create_table(
        "llm_recipe",
        sa.Column("url_hash", sa.String(length=64), nullable=False),
        sa.Column("title", sa.String(length=500), nullable=True),
        sa.Column("ingredients", sa.JSON(), nullable=False),
        sa.Column("result", sa.JSON(), nullable=False),
        sa.Column("parsed_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("url_hash", name="pk_llm_recipe"),
    )
    ours = own_metadata()
    pages, answers = (_table(name, ours) for name in ("recipe", "llm_recipe"))
    by_model = pages.c.result["used_llm"].as_boolean().is_(sa.true())
    op.execute(answers.insert().from_select(_COLUMNS, sa.select(pages).where(by_model)))
    op.execute(pages.delete().where(by_model))


def _table(name: str, metadata: sa.MetaData) -> sa.Table:
    columns = (sa.Column(column, sa.JSON() if column == "result" else sa.types.NullType()) for column in _COLUMNS)
    return sa.Table(name, metadata, *columns)
