"""The tables of the recipes application. ``tests/migrations`` proves that its revisions make exactly these."""

from __future__ import annotations

from sqlalchemy import JSON, BigInteger, Boolean, Column, DateTime, Index, Integer, String, Table, Text, Uuid, false

from penstock.store import own_metadata

metadata = own_metadata()

resource = Table(
    "resource",
    metadata,
    Column("url_hash", String(64), primary_key=True),
    Column("url", Text, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
)
"""Pages by the keys of their normalized addresses; ``url`` is the address by which one was first asked for."""

recipe = Table(
    "recipe",
    metadata,
    Column("url_hash", String(64), primary_key=True),
    Column("title", String(500)),
    Column("ingredients", JSON, nullable=False),
    Column("result", JSON, nullable=False),
    Column("parsed_at", DateTime(timezone=True), nullable=False),
    Column("llm_may_help", Boolean, nullable=False, server_default=false()),
)
"""What pages say themselves, for everybody; where a page says only part of a recipe and no model has answered
(``llm_may_help``), it is no answer for who allows one.
"""
Index(None, recipe.c.url_hash, recipe.c.parsed_at)

llm_recipe = Table(
    "llm_recipe",
    metadata,
    Column("url_hash", String(64), primary_key=True),
    Column("title", String(500)),
    Column("ingredients", JSON, nullable=False),
    Column("result", JSON, nullable=False),
    Column("parsed_at", DateTime(timezone=True), nullable=False),
)
"""What a language model made of pages, for those who allow that."""

saved_recipe = Table(
    "saved_recipe",
    metadata,
    # SQLite numbers rows by itself only where the key is an INTEGER.
    Column("id", BigInteger().with_variant(Integer(), "sqlite"), primary_key=True, autoincrement=True),
    Column("uuid", Uuid, nullable=False),
    Column("user_id", String(255), nullable=False),
    Column("title", String(500), nullable=False),
    Column("body", JSON, nullable=False),
    Column("parse_job_id", Uuid),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("updated_at", DateTime(timezone=True), nullable=False),
    sqlite_autoincrement=True,
)
Index(None, saved_recipe.c.uuid, unique=True)
Index(None, saved_recipe.c.user_id, saved_recipe.c.created_at, saved_recipe.c.uuid)

parse_result = Table(
    "parse_result",
    metadata,
    Column("request_id", Uuid, primary_key=True),
    Column("success", Boolean, nullable=False),
    Column("error_message", Text),
    Column("received_at", DateTime(timezone=True), nullable=False),
)
"""How a parser elsewhere answered a request; the first answer counts."""
