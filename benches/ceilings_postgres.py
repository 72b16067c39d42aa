"""What plain psycopg can do on one connection: the same rows written, the same commits, nothing else.

Each claim and each completion is one statement of data-modifying CTEs, prepared once, with binary parameters, in
autocommit: one round trip and one commit. No handler runs, no lease is renewed, nothing is checked but the fence.
"""

from __future__ import annotations

import time
from typing import Any, LiteralString

import orjson
import psycopg
from psycopg.types.json import set_json_loads
from uuid_utils.compat import uuid7

from benches.databases import plain
from benches.workload import KIND, LEASE_SECONDS, RESULT_TEXT, WORKER, given_text

_TAKE: LiteralString = """
    status = 'PROCESSING', attempts = job_items.attempts + 1, lease = %(lease)b, locked_by = %(worker)b,
    locked_at = statement_timestamp(), lock_expires_at = statement_timestamp() + %(seconds)b * interval '1 second',
    ready_at = NULL, updated_at = statement_timestamp()
"""
_FINISH: LiteralString = """
    status = 'DONE', result_json = ended.result::jsonb, lease = NULL, locked_by = NULL, locked_at = NULL,
    lock_expires_at = NULL, last_error = NULL, error_code = NULL, error_type = NULL, killed_by = NULL,
    traceback = NULL, updated_at = statement_timestamp()
"""

CLAIM_ITEMS: LiteralString = f"""
WITH noted AS (
    UPDATE jobs SET last_claimed = %(last)b, next_claim_at = statement_timestamp(),
        last_heartbeat = statement_timestamp(), updated_at = statement_timestamp()
    WHERE id = %(job)b AND state = 'running'
)
UPDATE job_items SET {_TAKE}
WHERE job_id = %(job)b AND position BETWEEN %(first)b AND %(last)b AND status = 'PENDING'
RETURNING id, job_id, role, position, attempts, input_json
"""

FINISH_ITEMS: LiteralString = f"""
WITH done AS (
    UPDATE job_items SET {_FINISH}
    FROM unnest(%(ids)b::bigint[], %(results)b::text[]) AS ended(id, result)
    WHERE job_items.id = ended.id AND job_items.lease = %(lease)b
    RETURNING job_items.id
)
UPDATE jobs SET processed_items = processed_items + (SELECT count(*) FROM done),
    last_heartbeat = statement_timestamp(), updated_at = statement_timestamp()
WHERE id = %(job)b
RETURNING processed_items
"""

CLAIM_JOBS: LiteralString = f"""
WITH picked AS MATERIALIZED (
    SELECT id FROM jobs WHERE kind = %(kind)b AND next_claim_at <= statement_timestamp()
    ORDER BY priority DESC, next_claim_at LIMIT %(size)b FOR NO KEY UPDATE SKIP LOCKED
), started AS (
    UPDATE jobs SET previous_state = state, state = 'running', phase = 'processing', attempts = attempts + 1,
        last_claimed = 1, next_claim_at = NULL, event_sequence = event_sequence + 1, started_at = statement_timestamp(),
        last_heartbeat = statement_timestamp(), updated_at = statement_timestamp()
    FROM picked WHERE jobs.id = picked.id AND state = 'queued'
    RETURNING jobs.id, jobs.params, jobs.run, jobs.event_sequence, jobs.previous_state
), told AS (
    INSERT INTO job_events (job_id, sequence, run, from_state, to_state, actor, actor_id, at)
    SELECT id, event_sequence, run, previous_state, 'running', 'worker', %(worker)b, statement_timestamp() FROM started
)
UPDATE job_items SET {_TAKE}
FROM started WHERE job_items.job_id = started.id AND position = 1 AND status = 'PENDING'
RETURNING job_items.id, job_items.job_id, role, position, job_items.attempts, started.params
"""

FINISH_JOBS: LiteralString = f"""
WITH ended AS MATERIALIZED (
    SELECT * FROM unnest(%(ids)b::bigint[], %(jobs)b::uuid[], %(results)b::text[]) AS ended(id, job_id, result)
), done AS (
    UPDATE job_items SET {_FINISH}
    FROM ended WHERE job_items.id = ended.id AND job_items.lease = %(lease)b
), succeeded AS (
    UPDATE jobs SET previous_state = state, state = 'succeeded', event_sequence = event_sequence + 1,
        result = ended.result::jsonb, processed_items = processed_items + 1, next_claim_at = NULL, last_error = NULL,
        error_code = NULL, error_type = NULL, failed_phase = NULL, killed_by = NULL, killed_reason = NULL,
        completed_at = statement_timestamp(), last_heartbeat = statement_timestamp(),
        updated_at = statement_timestamp()
    FROM ended WHERE jobs.id = ended.job_id AND state = 'running'
    RETURNING jobs.id, jobs.run, jobs.event_sequence, jobs.previous_state
), told AS (
    INSERT INTO job_events (job_id, sequence, run, from_state, to_state, actor, actor_id, at)
    SELECT id, event_sequence, run, previous_state, 'succeeded', 'worker', %(worker)b, statement_timestamp()
    FROM succeeded
)
SELECT count(*) FROM succeeded
"""

_JOB_COLUMNS: LiteralString = (
    "id, params, kind, state, priority, single_step, planned, has_finalizer, total_items, last_claimed, "
    "last_claimable, max_retries, created_at, updated_at, queued_at, next_claim_at"
)


# On tables that grew a moment ago, without statistics, the planner sorts and hashes what an index has in order.
_PLANS_NOT_WANTED: tuple[LiteralString, ...] = ("seqscan", "bitmapscan", "hashjoin", "mergejoin", "sort", "memoize")


class PostgresCeiling:
    """One plain connection."""

    def __init__(self, url: str) -> None:
        self._link = psycopg.connect(plain(url), autocommit=True)
        for what in _PLANS_NOT_WANTED:
            self._link.execute(f"SET enable_{what} = off")
        # Rows come as a worker could use them, by the fastest decoder there is.
        set_json_loads(orjson.loads, self._link)
        self._cursor = self._link.cursor(binary=True)

    def close(self) -> None:
        """Let go of the connection."""
        self._link.close()

    def _all(self, statement: LiteralString, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
        return self._cursor.execute(statement, parameters, prepare=True).fetchall()

    def add_items(self, count: int) -> Any:
        """A running job with so many pending items; not part of what is measured."""
        job_id = uuid7()
        self._link.execute(
            "INSERT INTO jobs (id, kind, state, single_step, planned, has_finalizer, total_items, last_claimable, "
            "created_at, updated_at, queued_at, started_at, next_claim_at) VALUES "
            "(%s, %s, 'running', false, true, false, %s, %s, now(), now(), now(), now(), now())",
            (job_id, KIND, count, count),
        )
        self._link.execute(
            "INSERT INTO job_items (job_id, kind, role, position, status, input_json, updated_at) "
            "SELECT %s, %s, 'item', n, 'PENDING', jsonb_build_object('n', n), now() FROM generate_series(1, %s) AS n",
            (job_id, KIND, count),
        )
        return job_id

    def drain_items(self, job_id: Any, count: int, size: int) -> float:
        """Claim and complete all items of a job, so many at a time; the answer is seconds."""
        begun = time.perf_counter()
        processed = 0
        for first in range(1, count + 1, size):
            lease = uuid7()
            claim = {
                "job": job_id, "first": first, "last": min(first + size - 1, count), "lease": lease,
                "worker": WORKER, "seconds": LEASE_SECONDS,
            }  # fmt: skip
            rows = self._all(CLAIM_ITEMS, claim)
            ids = [row[0] for row in rows]
            finish = {"job": job_id, "ids": ids, "results": [RESULT_TEXT] * len(ids), "lease": lease}
            [(processed,)] = self._all(FINISH_ITEMS, finish)
        taken = time.perf_counter() - begun
        assert processed == count, f"the ceiling completed {processed} of {count} items"
        return taken

    def submit_jobs(self, count: int) -> float:
        """Record so many single-step jobs in one transaction, by COPY; the answer is seconds."""
        begun = time.perf_counter()
        ids = [uuid7() for _ in range(count)]
        with self._link.transaction():
            [(now,)] = self._cursor.execute("SELECT now()").fetchall()
            with self._cursor.copy(f"COPY jobs ({_JOB_COLUMNS}) FROM STDIN") as copy:
                for number, one in enumerate(ids):
                    copy.write_row(
                        (one, given_text(number), KIND, "queued", 0, True, True, False, 1, 0, 1, 3, now, now, now, now)
                    )
            with self._cursor.copy(
                "COPY job_items (job_id, kind, role, position, status, updated_at) FROM STDIN"
            ) as copy:
                for one in ids:
                    copy.write_row((one, KIND, "item", 1, "PENDING", now))
            with self._cursor.copy("COPY job_events (job_id, sequence, run, to_state, actor, at) FROM STDIN") as copy:
                for one in ids:
                    copy.write_row((one, 1, 1, "queued", "system", now))
        return time.perf_counter() - begun

    def submit_jobs_by_arrays(self, count: int) -> float:
        """The same by three INSERT … SELECT FROM unnest, which turned out to be as good or better."""
        begun = time.perf_counter()
        ids = [uuid7() for _ in range(count)]
        params = [given_text(number) for number in range(count)]
        with self._link.transaction():
            self._cursor.execute(
                f"INSERT INTO jobs ({_JOB_COLUMNS}) SELECT id, params::jsonb, %(kind)b, 'queued', 0, true, true, "
                "false, 1, 0, 1, 3, statement_timestamp(), statement_timestamp(), statement_timestamp(), "
                "statement_timestamp() FROM unnest(%(ids)b::uuid[], %(params)b::text[]) AS new(id, params)",
                {"kind": KIND, "ids": ids, "params": params},
            )
            self._cursor.execute(
                "INSERT INTO job_items (job_id, kind, role, position, status, updated_at) "
                "SELECT id, %(kind)b, 'item', 1, 'PENDING', statement_timestamp() FROM unnest(%(ids)b::uuid[]) AS id",
                {"kind": KIND, "ids": ids},
            )
            self._cursor.execute(
                "INSERT INTO job_events (job_id, sequence, run, to_state, actor, at) "
                "SELECT id, 1, 1, 'queued', 'system', statement_timestamp() FROM unnest(%(ids)b::uuid[]) AS id",
                {"ids": ids},
            )
        return time.perf_counter() - begun

    def drain_jobs(self, count: int, size: int) -> float:
        """Start and succeed all jobs, so many at a time; the answer is seconds."""
        begun = time.perf_counter()
        processed = 0
        while True:
            lease = uuid7()
            claim = {"kind": KIND, "size": size, "lease": lease, "worker": WORKER, "seconds": LEASE_SECONDS}
            rows = self._all(CLAIM_JOBS, claim)
            if not rows:
                break
            finish = {
                "ids": [row[0] for row in rows], "jobs": [row[1] for row in rows],
                "results": [RESULT_TEXT] * len(rows), "lease": lease, "worker": WORKER,
            }  # fmt: skip
            [(ended,)] = self._all(FINISH_JOBS, finish)
            processed += ended
        taken = time.perf_counter() - begun
        assert processed == count, f"the ceiling completed {processed} of {count} jobs"
        return taken
