"""A database as it looks after a year, made in a second: 20,000 jobs, most of them over, with 200,000 items.

Job n has ten items. Of every thousand jobs one is due with fresh items, one runs with items in workers' hands, one has
items that came back, one waits for its backoff, one more is queued; two succeeded and wait; the rest is over.
"""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import text

from penstock.store.engine import Store

JOBS = 20_000
ITEMS_EACH = 10

DUE, RUNNING, RETURNED, RETRYING, QUEUED = 0, 1, 2, 3, 4
"""What a job of number n is: by n modulo 1000."""

_JOBS = """
INSERT INTO {jobs} (id, kind, user_id, state, single_step, planned, has_finalizer, total_items, processed_items,
                  returned_items, last_claimed, last_claimable, next_claim_at, unique_key, priority, created_at,
                  updated_at, queued_at, started_at, completed_at, last_heartbeat, has_followers)
SELECT {id}, 'kind' || (n % 4), 'user' || (n % 500),
       CASE n % 1000 WHEN 0 THEN 'queued' WHEN 1 THEN 'running' WHEN 2 THEN 'running' WHEN 3 THEN 'retrying'
                    WHEN 4 THEN 'queued' WHEN 5 THEN 'succeeded' WHEN 6 THEN 'succeeded' ELSE 'committed' END,
       {false}, {true}, {false}, 10,
       CASE WHEN n % 1000 < 5 THEN 0 ELSE 10 END, CASE WHEN n % 1000 = 2 THEN 2 ELSE 0 END,
       CASE WHEN n % 1000 IN (0, 4) THEN 0 ELSE 10 END, 10,
       CASE WHEN n % 1000 IN (0, 2, 3, 4) THEN {now} END, 'key' || n, 0, {now}, {now}, {now}, {now},
       CASE WHEN n % 1000 > 4 THEN {now} END, {now}, {false}
FROM {numbers}
"""
_ITEMS = """
INSERT INTO {job_items} (job_id, user_id, kind, role, position, status, attempts, ready_at, lease, locked_by, locked_at,
                       lock_expires_at, updated_at)
SELECT {id}, 'user' || (n % 500), 'kind' || (n % 4), 'item', p,
       CASE WHEN n % 1000 IN (0, 4) THEN 'PENDING' WHEN n % 1000 = 1 AND p > 5 THEN 'PROCESSING'
            WHEN n % 1000 = 2 AND p > 8 THEN 'PENDING' ELSE 'DONE' END,
       1, CASE WHEN n % 1000 = 2 AND p > 8 THEN {now} END,
       CASE WHEN n % 1000 = 1 AND p > 5 THEN {id} END, CASE WHEN n % 1000 = 1 AND p > 5 THEN 'w' END,
       CASE WHEN n % 1000 = 1 AND p > 5 THEN {now} END, CASE WHEN n % 1000 = 1 AND p > 5 THEN {now} END, {now}
FROM {numbers}, {positions}
"""


def job_id(number: int) -> UUID:
    """The id of the n-th job."""
    return UUID(int=number)


def item_id(number: int, position: int) -> int:
    """The id of an item, by how they are inserted."""
    return number * ITEMS_EACH + position


def table_name(store: Store, name: str) -> str:
    """A table of ours in plain SQL."""
    placement = store.placement
    return ".".join(part for part in (placement.schema, placement.table(name)) if part)


def fill(store: Store, now: datetime) -> None:
    """Make the jobs and their items."""
    postgresql = store.dialect.name == "postgresql"
    words = {
        "id": "lpad(to_hex(n), 32, '0')::uuid" if postgresql else "printf('%032x', n)",
        "now": f"'{now.isoformat()}'::timestamptz" if postgresql else str(int(now.timestamp() * 1_000_000)),
        "true": "true" if postgresql else "1",
        "false": "false" if postgresql else "0",
        "numbers": _numbers("n", 0, JOBS - 1, postgresql),
        "positions": _numbers("p", 1, ITEMS_EACH, postgresql),
    }
    words |= {name: table_name(store, name) for name in ("jobs", "job_items")}
    with store.engine.begin() as connection:
        if postgresql:
            # Nobody is to gather statistics behind the test's back.
            for table in ("jobs", "job_items"):
                connection.execute(text(f"ALTER TABLE {words[table]} SET (autovacuum_enabled = false)"))
        connection.execute(text(_JOBS.format(**words)))
        connection.execute(text(_ITEMS.format(**words) + " ORDER BY n, p"))


def _numbers(name: str, first: int, last: int, postgresql: bool) -> str:
    if postgresql:
        return f"generate_series({first}, {last}) AS {name}"
    return (
        f"(WITH RECURSIVE each({name}) AS (SELECT {first} UNION ALL SELECT {name} + 1 FROM each WHERE {name} < {last}) "
        f"SELECT {name} FROM each) AS {name}s"
    )


def analyze(store: Store) -> None:
    """Let the database look at what is there."""
    with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("ANALYZE"))
