"""Tables as they are after a long time in service: most items done in finished jobs, one large job at work.

Of the items, 30 % are in large finished jobs, 28 % in finished jobs of a hundred, 10 % in finished single-step jobs,
1 % wait in a paused job, 1 % are single-step jobs of another kind in line, and 30 % belong to the running job of the
kind that is claimed, a sixth of them done.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

import psycopg

from benches.databases import Databases, SQLiteDatabases, plain, sqlite_path
from benches.workload import KIND, RESULT_TEXT


@dataclass(frozen=True, slots=True)
class Group:
    """Jobs that are alike."""

    number: int
    jobs: int
    items: int
    """Of each job."""
    state: str
    kind: str = "earlier"
    done: int = 0
    """Items of each job that are done."""

    @property
    def waits(self) -> bool:
        """Is it in line?"""
        return self.state in ("queued", "running")


def groups(total: int) -> list[Group]:
    """The mix for so many items."""
    large = max(100, total // 500)
    return [
        Group(1, max(1, total * 30 // 100 // large), large, "succeeded", done=large),
        Group(2, max(1, total * 28 // 100 // 100), 100, "succeeded", done=100),
        Group(3, max(1, total * 10 // 100), 1, "succeeded", done=1),
        Group(4, 1, max(1, total // 100), "paused", done=0),
        Group(5, max(1, total // 100), 1, "queued", kind="another"),
        Group(6, 1, total * 30 // 100, "running", kind=KIND, done=total * 5 // 100),
    ]


def fill(databases: Databases, url: str, total: int) -> None:
    """Make the rows, and do what autovacuum would have done by then."""
    if isinstance(databases, SQLiteDatabases):
        _fill_sqlite(sqlite_path(url), groups(total))
    else:
        _fill_postgres(plain(url), groups(total))


_JOBS = """
INSERT INTO jobs (id, kind, state, phase, single_step, planned, has_finalizer, total_items, processed_items,
    last_claimed, last_claimable, event_sequence, created_at, updated_at, queued_at, started_at, completed_at,
    next_claim_at)
SELECT {id}, {p}kind, {p}state, 'processing', {p}items = 1, true, false, {p}items, {p}done, {p}done, {p}items, 3,
    {past}, {past}, {past}, {past}, CASE WHEN {p}state = 'succeeded' THEN {past} END, CASE WHEN {p}waits THEN {past} END
FROM {numbers}
"""
_EVENTS = """
INSERT INTO job_events (job_id, sequence, run, to_state, actor, at)
SELECT {id}, s.sequence, 1, s.state, 'worker', {past}
FROM {numbers} CROSS JOIN (SELECT 1 AS sequence, 'queued' AS state UNION ALL SELECT 2, 'running'
    UNION ALL SELECT 3, 'succeeded') AS s
"""
_ITEMS = """
INSERT INTO job_items (job_id, kind, role, position, status, attempts, input_json, result_json, updated_at)
SELECT {id}, {p}kind, 'item', q.p, CASE WHEN q.p <= {p}done THEN 'DONE' ELSE 'PENDING' END,
    CASE WHEN q.p <= {p}done THEN 1 ELSE 0 END, {input},
    CASE WHEN q.p <= {p}done THEN {result} END, {past}
FROM {numbers} CROSS JOIN {positions}
"""

_POSTGRES = {
    "p": "%(",
    "id": "('0189000000007' || lpad(to_hex(%(number)s::int), 3, '0') || '8000' || lpad(to_hex(t.n), 12, '0'))::uuid",
    "past": "now() - interval '1 day' + t.n * interval '1 millisecond'",
    "numbers": "generate_series(1, %(jobs)s::int) AS t(n)",
    "positions": "generate_series(1, %(items)s::int) AS q(p)",
    "input": "jsonb_build_object('n', q.p)",
    "result": "%(result)s::jsonb",
}
_SQLITE = {
    "p": ":",
    "id": "printf('0189000000007%03x8000%012x', :number, t.n)",
    "past": ":past + t.n * 1000",
    "numbers": "(WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < :jobs) SELECT n FROM c) AS t",
    "positions": "(WITH RECURSIVE d(p) AS (SELECT 1 UNION ALL SELECT p + 1 FROM d WHERE p < :items) SELECT p FROM d) "
    "AS q",
    "input": "'{\"n\":' || q.p || '}'",
    "result": ":result",
}


def _statements(words: dict[str, str]) -> list[str]:
    written = []
    for template in (_JOBS, _EVENTS, _ITEMS):
        text = template
        for name in ("kind", "state", "items", "done", "waits"):
            marker = f"%({name})s" if words is _POSTGRES else f":{name}"
            text = text.replace(f"{{p}}{name}", _CASTS.get(name, "{}").format(marker) if words is _POSTGRES else marker)
        written.append(text.format(**words))
    return written


_CASTS = {"kind": "{}::text", "state": "{}::text", "items": "{}::int", "done": "{}::int", "waits": "{}::bool"}


def _values(group: Group) -> dict[str, object]:
    return {
        "number": group.number, "jobs": group.jobs, "items": group.items, "state": group.state, "kind": group.kind,
        "done": group.done, "waits": group.waits, "result": RESULT_TEXT,
    }  # fmt: skip


def _fill_postgres(url: str, wanted: list[Group]) -> None:
    with psycopg.connect(url, autocommit=True) as link:
        for group in wanted:
            for statement in _statements(_POSTGRES):
                link.execute(statement.encode(), _values(group))
        for table in (b"jobs", b"job_items", b"job_events"):
            link.execute(b"VACUUM (ANALYZE) " + table)
        link.execute("CHECKPOINT")


def _fill_sqlite(path: str, wanted: list[Group]) -> None:
    link = sqlite3.connect(path, isolation_level=None)
    for pragma in ("journal_mode=WAL", "synchronous=OFF", "cache_size=-1000000", "temp_store=MEMORY"):
        link.execute(f"PRAGMA {pragma}")
    [(past,)] = link.execute("SELECT (CAST(strftime('%s', 'now') AS INTEGER) - 86400) * 1000000").fetchall()
    for group in wanted:
        link.execute("BEGIN IMMEDIATE")
        for statement in _statements(_SQLITE):
            link.execute(statement, _values(group) | {"past": past})
        link.execute("COMMIT")
    link.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    link.close()
