"""What the plain sqlite3 module can do on one connection: the same rows written, the same commits, nothing else.

The same module and the same pragmas as the engine's. The time is handed in as a number, and the statements are those
that were the fastest of the forms tried.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from typing import Any

import orjson
from uuid_utils.compat import uuid7

from benches.databases import sqlite_path
from benches.workload import KIND, LEASE_SECONDS, RESULT_TEXT, WORKER, given_text

_TAKE = """
    status = 'PROCESSING', attempts = attempts + 1, lease = :lease, locked_by = :worker, locked_at = :now,
    lock_expires_at = :expires, ready_at = NULL, updated_at = :now
"""
_FINISH = """
    status = 'DONE', lease = NULL, locked_by = NULL, locked_at = NULL, lock_expires_at = NULL, last_error = NULL,
    error_code = NULL, error_type = NULL, killed_by = NULL, traceback = NULL
"""
_SUCCEED = """
    previous_state = state, state = 'succeeded', event_sequence = event_sequence + 1,
    processed_items = processed_items + 1, next_claim_at = NULL, last_error = NULL, error_code = NULL,
    error_type = NULL, failed_phase = NULL, killed_by = NULL, killed_reason = NULL
"""

TAKE_ITEMS = f"""
UPDATE job_items SET {_TAKE}
WHERE job_id = :job AND position BETWEEN :first AND :last AND status = 'PENDING'
RETURNING id, job_id, role, position, attempts, input_json
"""
NOTE_TAKEN = """
UPDATE jobs SET last_claimed = :last, next_claim_at = :now, last_heartbeat = :now, updated_at = :now
WHERE id = :job AND +state = 'running'
"""
FINISH_ONE = f"UPDATE job_items SET {_FINISH}, result_json = ?, updated_at = ? WHERE id = ? AND lease = ?"
FINISH_MANY = f"""
UPDATE job_items SET {_FINISH}, result_json = ended.value ->> 1, updated_at = :now
FROM json_each(:ended) AS ended WHERE job_items.id = ended.value ->> 0 AND lease = :lease
"""
COUNT_DONE = """
UPDATE jobs SET processed_items = processed_items + :count, last_heartbeat = :now, updated_at = :now WHERE id = :job
RETURNING processed_items
"""

PICK_JOBS = """
SELECT id, params, run, event_sequence + 1 FROM jobs WHERE kind = :kind AND next_claim_at <= :now
ORDER BY priority DESC, next_claim_at LIMIT :size
"""
START_ONE = """
UPDATE jobs SET previous_state = state, state = 'running', phase = 'processing', attempts = attempts + 1,
    last_claimed = 1, next_claim_at = NULL, event_sequence = event_sequence + 1, started_at = ?, last_heartbeat = ?,
    updated_at = ?
WHERE id = ? AND +state = 'queued'
"""
TAKE_MANY = f"""
UPDATE job_items SET {_TAKE}
WHERE job_id IN (SELECT value FROM json_each(:jobs)) AND position = 1 AND status = 'PENDING'
RETURNING id, job_id, role, position, attempts
"""
TELL_ONE = """
INSERT INTO job_events (job_id, sequence, run, from_state, to_state, actor, actor_id, at)
VALUES (?, ?, ?, ?, ?, 'worker', ?, ?)
"""
SUCCEED_ONE = f"""
UPDATE jobs SET {_SUCCEED}, result = ?, completed_at = ?, last_heartbeat = ?, updated_at = ?
WHERE id = ? AND +state = 'running'
"""
START_MANY = """
UPDATE jobs SET previous_state = state, state = 'running', phase = 'processing', attempts = attempts + 1,
    last_claimed = 1, next_claim_at = NULL, event_sequence = event_sequence + 1, started_at = :now,
    last_heartbeat = :now, updated_at = :now
WHERE id IN (SELECT value FROM json_each(:jobs)) AND +state = 'queued'
"""
SUCCEED_MANY = f"""
UPDATE jobs SET {_SUCCEED}, result = ended.value ->> 1, completed_at = :now, last_heartbeat = :now, updated_at = :now
FROM json_each(:ended) AS ended WHERE jobs.id = ended.value ->> 0 AND +state = 'running'
"""
TELL_MANY = """
INSERT INTO job_events (job_id, sequence, run, from_state, to_state, actor, actor_id, at)
SELECT value ->> 0, value ->> 1, value ->> 2, :from, :to, 'worker', :worker, :now FROM json_each(:told)
"""
INSERT_JOB = f"""
INSERT INTO jobs (id, params, kind, state, priority, single_step, planned, has_finalizer, total_items, last_claimed,
    last_claimable, max_retries, created_at, updated_at, queued_at, next_claim_at)
VALUES (?, ?, '{KIND}', 'queued', 0, 1, 1, 0, 1, 0, 1, 3, ?, ?, ?, ?)
"""
INSERT_ITEM = f"""
INSERT INTO job_items (job_id, kind, role, position, status, updated_at) VALUES (?, '{KIND}', 'item', 1, 'PENDING', ?)
"""
INSERT_EVENT = """
INSERT INTO job_events (job_id, sequence, run, to_state, actor, at) VALUES (?, 1, 1, 'queued', 'system', ?)
"""
INSERT_MANY = (
    f"""INSERT INTO jobs (id, params, kind, state, priority, single_step, planned, has_finalizer, total_items,
        last_claimed, last_claimable, max_retries, created_at, updated_at, queued_at, next_claim_at)
    SELECT value ->> 0, value ->> 1, '{KIND}', 'queued', 0, 1, 1, 0, 1, 0, 1, 3, :now, :now, :now, :now
    FROM json_each(:rows)""",
    f"""INSERT INTO job_items (job_id, kind, role, position, status, updated_at)
    SELECT value ->> 0, '{KIND}', 'item', 1, 'PENDING', :now FROM json_each(:rows)""",
    """INSERT INTO job_events (job_id, sequence, run, to_state, actor, at)
    SELECT value ->> 0, 1, 1, 'queued', 'system', :now FROM json_each(:rows)""",
)


def now_microseconds() -> int:
    """The time as it is kept."""
    return time.time_ns() // 1000


class SQLiteCeiling:
    """One plain connection."""

    def __init__(self, url: str) -> None:
        self._link: Any = sqlite3.connect(
            sqlite_path(url), isolation_level=None, cached_statements=512, check_same_thread=False, timeout=30
        )
        for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "temp_store=MEMORY", "cache_size=-65536"):
            self._link.execute(f"PRAGMA {pragma}")

    def close(self) -> None:
        """Let go of the file."""
        self._link.close()

    def add_items(self, count: int) -> str:
        """A running job with so many pending items; not part of what is measured."""
        job_id, now = uuid7().hex, now_microseconds()
        self._link.execute("BEGIN IMMEDIATE")
        self._link.execute(
            "INSERT INTO jobs (id, kind, state, single_step, planned, has_finalizer, total_items, last_claimable, "
            "created_at, updated_at, queued_at, started_at, next_claim_at) "
            "VALUES (?, ?, 'running', 0, 1, 0, ?, ?, ?, ?, ?, ?, ?)",
            (job_id, KIND, count, count, now, now, now, now, now),
        )
        self._link.executemany(
            "INSERT INTO job_items (job_id, kind, role, position, status, input_json, updated_at) "
            "VALUES (?, ?, 'item', ?, 'PENDING', ?, ?)",
            ((job_id, KIND, number, given_text(number), now) for number in range(1, count + 1)),
        )
        self._link.execute("COMMIT")
        return job_id

    def drain_items(self, job_id: str, count: int, size: int, *, one_by_one: bool) -> float:
        """Claim and complete all items of a job, so many at a time; the answer is seconds."""
        begun = time.perf_counter()
        processed = 0
        for first in range(1, count + 1, size):
            lease, last = uuid7().hex, min(first + size - 1, count)
            ids = [row[0] for row in self._claim_items(job_id, first, last, lease)]
            processed = self._finish_items(job_id, ids, lease, one_by_one=one_by_one)
        taken = time.perf_counter() - begun
        assert processed == count, f"the ceiling completed {processed} of {count} items"
        return taken

    def _claim_items(self, job_id: str, first: int, last: int, lease: str) -> list[tuple[Any, ...]]:
        now = now_microseconds()
        taking = {
            "job": job_id, "first": first, "last": last, "lease": lease, "worker": WORKER, "now": now,
            "expires": now + int(LEASE_SECONDS * 1e6),
        }  # fmt: skip
        self._link.execute("BEGIN IMMEDIATE")
        rows: list[tuple[Any, ...]] = self._link.execute(TAKE_ITEMS, taking).fetchall()
        self._link.execute(NOTE_TAKEN, {"job": job_id, "last": last, "now": now})
        self._link.execute("COMMIT")
        return rows

    def _finish_items(self, job_id: str, ids: Sequence[int], lease: str, *, one_by_one: bool) -> int:
        now = now_microseconds()
        self._link.execute("BEGIN IMMEDIATE")
        if one_by_one:
            done = self._link.executemany(FINISH_ONE, [(RESULT_TEXT, now, one, lease) for one in ids]).rowcount
        else:
            ended = orjson.dumps([(one, RESULT_TEXT) for one in ids]).decode()
            done = self._link.execute(FINISH_MANY, {"ended": ended, "now": now, "lease": lease}).rowcount
        counting = {"count": done, "now": now, "job": job_id}
        [(processed,)] = self._link.execute(COUNT_DONE, counting).fetchall()
        self._link.execute("COMMIT")
        return int(processed)

    def submit_jobs(self, count: int) -> float:
        """Record so many single-step jobs in one transaction; the answer is seconds."""
        begun = time.perf_counter()
        now = now_microseconds()
        ids = [uuid7().hex for _ in range(count)]
        self._link.execute("BEGIN IMMEDIATE")
        rows = [(one, given_text(number), now, now, now, now) for number, one in enumerate(ids)]
        self._link.executemany(INSERT_JOB, rows)
        self._link.executemany(INSERT_ITEM, [(one, now) for one in ids])
        self._link.executemany(INSERT_EVENT, [(one, now) for one in ids])
        self._link.execute("COMMIT")
        return time.perf_counter() - begun

    def submit_jobs_by_json(self, count: int) -> float:
        """The same by three INSERT … SELECT FROM json_each."""
        begun = time.perf_counter()
        now = now_microseconds()
        rows = orjson.dumps([(uuid7().hex, given_text(number)) for number in range(count)]).decode()
        self._link.execute("BEGIN IMMEDIATE")
        for statement in INSERT_MANY:
            self._link.execute(statement, {"rows": rows, "now": now})
        self._link.execute("COMMIT")
        return time.perf_counter() - begun

    def drain_jobs(self, count: int, size: int, *, one_by_one: bool) -> float:
        """Start and succeed all jobs, so many at a time; the answer is seconds."""
        begun = time.perf_counter()
        processed = 0
        while picked := self.start_jobs(size, one_by_one=one_by_one):
            lease, jobs, items = picked
            processed += self.succeed_jobs(lease, jobs, items, one_by_one=one_by_one)
        taken = time.perf_counter() - begun
        assert processed == count, f"the ceiling completed {processed} of {count} jobs"
        return taken

    def start_jobs(
        self, size: int, *, one_by_one: bool
    ) -> tuple[str, list[tuple[Any, ...]], list[tuple[Any, ...]]] | None:
        """Claim up to so many jobs; the answer is the lease, the jobs and their items."""
        lease, now = uuid7().hex, now_microseconds()
        link = self._link
        link.execute("BEGIN IMMEDIATE")
        jobs = link.execute(PICK_JOBS, {"kind": KIND, "now": now, "size": size}).fetchall()
        if not jobs:
            link.execute("COMMIT")
            return None
        named = orjson.dumps([job[0] for job in jobs]).decode()
        if one_by_one:
            link.executemany(START_ONE, [(now, now, now, job[0]) for job in jobs])
        else:
            link.execute(START_MANY, {"jobs": named, "now": now})
        expires = now + int(LEASE_SECONDS * 1e6)
        taking = {"jobs": named, "lease": lease, "worker": WORKER, "now": now, "expires": expires}
        items = link.execute(TAKE_MANY, taking).fetchall()
        told = [(job[0], job[3], job[2]) for job in jobs]
        self._tell(told, "queued", "running", now, one_by_one=one_by_one)
        link.execute("COMMIT")
        return lease, jobs, items

    def succeed_jobs(
        self, lease: str, jobs: list[tuple[Any, ...]], items: list[tuple[Any, ...]], *, one_by_one: bool
    ) -> int:
        """Write the ends of jobs that were claimed; the answer is how many."""
        now = now_microseconds()
        link = self._link
        link.execute("BEGIN IMMEDIATE")
        if one_by_one:
            link.executemany(FINISH_ONE, [(RESULT_TEXT, now, item[0], lease) for item in items])
            done = link.executemany(SUCCEED_ONE, [(RESULT_TEXT, now, now, now, job[0]) for job in jobs]).rowcount
        else:
            ended = orjson.dumps([(item[0], RESULT_TEXT) for item in items]).decode()
            link.execute(FINISH_MANY, {"ended": ended, "now": now, "lease": lease})
            succeeded = orjson.dumps([(job[0], RESULT_TEXT) for job in jobs]).decode()
            done = link.execute(SUCCEED_MANY, {"ended": succeeded, "now": now}).rowcount
        told = [(job[0], job[3] + 1, job[2]) for job in jobs]
        self._tell(told, "running", "succeeded", now, one_by_one=one_by_one)
        link.execute("COMMIT")
        return int(done)

    def _tell(self, told: list[tuple[Any, ...]], source: str, target: str, now: int, *, one_by_one: bool) -> None:
        """One history row for each job."""
        if one_by_one:
            self._link.executemany(TELL_ONE, [(*one, source, target, WORKER, now) for one in told])
        else:
            text = orjson.dumps(told).decode()
            self._link.execute(TELL_MANY, {"told": text, "from": source, "to": target, "worker": WORKER, "now": now})
