"""The tables of the catalogs application. ``tests/migrations`` proves that its revisions make exactly these."""

from __future__ import annotations

from sqlalchemy import JSON, BigInteger, Column, DateTime, Index, LargeBinary, String, Table, Text, Uuid

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
    Column("last_scan", JSON(none_as_null=True)),
)
Index(None, catalogs.c.user_id, catalogs.c.created_at)

catalog_jobs = Table(
    "catalog_jobs",
    metadata,
    Column("catalog_id", Uuid, primary_key=True),
    Column("work", String(100), primary_key=True),
    Column("job_id", Uuid, nullable=False),
    Column("unique_key", String(255), nullable=False),
)
"""The last job that was started for each work on a catalog, its continuations included."""

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
    Column("path_bytes", LargeBinary),
)
"""``path_bytes`` is there where the path is not UTF-8, and ``path`` only shows it."""

unreadable_photos = Table(
    "unreadable_photos",
    metadata,
    Column("catalog_id", Uuid, primary_key=True),
    Column("path_sha256", String(64), primary_key=True),
    Column("path", Text, nullable=False),
    Column("path_bytes", LargeBinary),
    Column("error_code", String(64)),
    Column("error", Text),
    Column("scan_id", Uuid, nullable=False),
    Column("updated_at", DateTime(timezone=True), nullable=False),
)
"""What the last scan could not read; ``scan_id`` is the job it began with."""
