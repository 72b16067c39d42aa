"""One job of very many items, made by the database itself: all done with results, or all still waiting."""

from __future__ import annotations

import sqlite3
from uuid import UUID

import psycopg
from uuid_utils.compat import uuid7

from benches.databases import Databases, SQLiteDatabases, plain, sqlite_path

KIND = "products"
OWNER = "ada"
COLUMNS = ("sku", "brand", "title", "price", "currency", "stock", "url")

_JOB = """
INSERT INTO jobs (id, kind, user_id, state, phase, single_step, planned, has_finalizer, total_items, processed_items,
    last_claimed, last_claimable, event_sequence, created_at, updated_at, queued_at, started_at, completed_at)
VALUES ({p}id, '{kind}', '{owner}', {p}state, 'processing', {false}, {true}, {false}, {p}items, {p}processed,
    {p}processed, {p}items, 3, {past}, {past}, {past}, {past}, {ended})
"""
_ITEMS = """
INSERT INTO job_items (job_id, user_id, kind, role, position, status, attempts, input_json, normalized_json,
    result_json, updated_at)
SELECT {p}id, '{owner}', '{kind}', 'item', q.p, {p}status, {p}attempts, {given}, {given}, {result}, {changed}
FROM {positions}
"""


def add_job(databases: Databases, url: str, items: int, *, done: bool) -> UUID:
    """A job of so many items; each changed a millisecond after the one before."""
    job_id: UUID = uuid7()
    values: dict[str, object] = {
        "items": items, "state": "succeeded" if done else "running", "processed": items if done else 0,
        "status": "DONE" if done else "PENDING", "attempts": 1 if done else 0,
    }  # fmt: skip
    if isinstance(databases, SQLiteDatabases):
        _on_sqlite(sqlite_path(url), values | {"id": job_id.hex}, done=done)
    else:
        _on_postgres(plain(url), values | {"id": job_id}, done=done)
    return job_id


def _on_sqlite(path: str, values: dict[str, object], *, done: bool) -> None:
    link = sqlite3.connect(path, isolation_level=None)
    for pragma in ("journal_mode=WAL", "synchronous=OFF", "cache_size=-500000", "temp_store=MEMORY"):
        link.execute(f"PRAGMA {pragma}")
    past = "(CAST(strftime('%s', 'now') AS INTEGER) - 86400) * 1000000"
    product = (
        "json_object('sku', printf('SKU-%08d', q.p), 'brand', 'Brand ' || (q.p % 500), 'title', "
        "printf('Espresso machine %08d', q.p), 'price', (q.p % 900) + 0.9, 'currency', 'EUR', 'stock', q.p % 91, "
        "'url', printf('https://shop.example/%08d', q.p))"
    )
    words = {
        "p": ":", "kind": KIND, "owner": OWNER, "true": "1", "false": "0", "past": past,
        "ended": past if done else "NULL", "given": product, "result": product if done else "NULL",
        "changed": f"{past} + q.p * 1000",
        "positions": "(WITH RECURSIVE d(p) AS (SELECT 1 UNION ALL SELECT p + 1 FROM d WHERE p < :items) "
        "SELECT p FROM d) AS q",
    }  # fmt: skip
    link.execute("BEGIN IMMEDIATE")
    for template in (_JOB, _ITEMS):
        link.execute(template.format(**words), values)
    link.execute("COMMIT")
    link.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    link.close()


def _on_postgres(url: str, values: dict[str, object], *, done: bool) -> None:
    product = (
        "jsonb_build_object('sku', 'SKU-' || lpad(q.p::text, 8, '0'), 'brand', 'Brand ' || (q.p %% 500), 'title', "
        "'Espresso machine ' || lpad(q.p::text, 8, '0'), 'price', (q.p %% 900) + 0.9, 'currency', 'EUR', 'stock', "
        "q.p %% 91, 'url', 'https://shop.example/' || lpad(q.p::text, 8, '0'))"
    )
    past = "now() - interval '1 day'"
    words = {
        "kind": KIND, "owner": OWNER, "true": "true", "false": "false", "past": past,
        "ended": past if done else "NULL", "given": product, "result": product if done else "NULL",
        "changed": f"{past} + q.p * interval '1 millisecond'",
        "positions": "generate_series(1, %(items)s::int) AS q(p)",
    }  # fmt: skip
    with psycopg.connect(url, autocommit=True) as link:
        for template in (_JOB, _ITEMS):
            text = template
            for name in ("id", "state", "items", "processed", "status", "attempts"):
                text = text.replace(f"{{p}}{name}", f"%({name})s{_CASTS.get(name, '')}")
            link.execute(text.format(**words).encode(), values)
        for table in (b"jobs", b"job_items"):
            link.execute(b"VACUUM (ANALYZE) " + table)
        link.execute("CHECKPOINT")


_CASTS = {"id": "::uuid", "items": "::int", "processed": "::int", "attempts": "::int", "status": "::text"}
