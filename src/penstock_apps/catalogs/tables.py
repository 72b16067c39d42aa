"""The tables of the catalogs application. ``tests/migrations`` proves that its revisions make exactly these."""

from __future__ import annotations

from sqlalchemy import JSON, BigInteger, Column, DateTime, Index, String, Table, Text, Uuid

from penstock.store import own_metadata

metadata = own_metadata()

catalogs = Table(
    "catalogs",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("user_id", String(255)),
    Column("name", String(255), nullable=False),
    Column("source_directories", JSON, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
)
Index(None, catalogs.c.user_id, catalogs.c.created_at)

photos = Table(
    "photos",
    metadata,
    Column("catalog_id", Uuid, primary_key=True),
    Column("path_sha256", String(64), primary_key=True),
    Column("path", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("modified", BigInteger, nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("perceptual_hash", String(16), nullable=False),
    Column("facts", JSON, nullable=False),
    Column("tags", JSON),
    Column("group_id", String(64)),
    Column("updated_at", DateTime(timezone=True), nullable=False),
)
