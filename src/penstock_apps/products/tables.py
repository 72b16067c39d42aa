"""The table of the products application. ``tests/migrations`` proves that its revisions make exactly this."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, DateTime, Float, Index, Integer, String, Table, Uuid

from penstock.store import own_metadata

metadata = own_metadata()

search_events = Table(
    "search_events",
    metadata,
    # SQLite numbers rows by itself only where the key is an INTEGER.
    Column("id", BigInteger().with_variant(Integer(), "sqlite"), primary_key=True, autoincrement=True),
    Column("job_id", Uuid, nullable=False),
    Column("item_id", BigInteger, nullable=False),
    Column("user_id", String(255)),
    Column("kind", String(64), nullable=False),
    Column("provider", String(200), nullable=False),
    Column("strategy", String(32), nullable=False),
    Column("query", String(500), nullable=False),
    Column("outcome", String(100), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("latency_ms", Float, nullable=False),
    Column("at", DateTime(timezone=True), nullable=False),
)
"""Each question to a retailer, and how it was answered: FOUND, NOT_FOUND or the code of an error."""
Index(None, search_events.c.job_id, search_events.c.id)
