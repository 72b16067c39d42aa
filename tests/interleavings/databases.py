"""The databases that schedules run in: a small state is put back in milliseconds, and read as a comparable value."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import psycopg

from penstock.clock import ManualClock
from penstock.store.engine import Store, open_store
from penstock.store.schema import migrate
from penstock.testing.postgres import PostgresServer

TABLES = (
    "jobs", "job_items", "job_events", "idempotency_keys", "outbox", "worker_deaths", "pruned_jobs", "pruned_counts",
)  # fmt: skip
"""What operations change."""
_VACUUMED_EVERY = 40
"""Each state that is put back leaves dead rows behind, which every statement would have to step over."""
_PATIENCE = 60.0
"""Seconds of a worker's patience with a lock: nobody gives up while the others make their steps."""
_BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)

EndState = tuple[tuple[Any, ...], ...]
"""All that matters of the rows, without ids and exact times: equal when two orders of the same steps ended alike."""


class Link(Protocol):
    """A connection of the checker's own, beside the store."""

    def execute(self, statement: str, /) -> Any:
        """Run one statement."""


class Database:
    """A store with a clock, a snapshot of its rows, and the way back to it."""

    postgresql = False

    def __init__(self, store: Store, clock: ManualClock, link: Link) -> None:
        self.store, self.clock = store, clock
        self._link = link
        self._moment = clock.held()
        schema = store.placement.schema
        self._names = [store.placement.table(name) for name in TABLES]
        self._tables = [name if schema is None else f"{schema}.{name}" for name in self._names]

    def empty(self) -> None:
        """No rows, and the clock at the beginning."""
        for table in self._tables:
            self._link.execute(f"DELETE FROM {table}")
        self.clock.advance((_BEGINNING - self.clock.held()).total_seconds())

    def keep(self) -> None:
        """Remember the rows and the time as they are now."""
        for table, name in zip(self._tables, self._names, strict=True):
            self._link.execute(f"DELETE FROM kept_{name}")
            self._link.execute(f"INSERT INTO kept_{name} SELECT * FROM {table}")
        self._moment = self.clock.held()

    def restore(self) -> None:
        """Go back to what was kept."""
        self._restore_rows()
        self.clock.advance((self._moment - self.clock.held()).total_seconds())

    def _restore_rows(self) -> None:
        raise NotImplementedError

    def read(self, name: str) -> list[dict[str, Any]]:
        """All rows of a table."""
        cursor = self._link.execute(f"SELECT * FROM {self._tables[TABLES.index(name)]}")
        columns = [one[0] for one in cursor.description]
        return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]

    def moment(self, value: Any) -> datetime:
        """A time as the driver gives it."""
        if isinstance(value, datetime):
            return value
        return datetime.fromtimestamp(value / 1e6, UTC)


class SQLiteDatabase(Database):
    """In a file, with a connection of the same library."""

    def _restore_rows(self) -> None:
        self._link.execute("BEGIN IMMEDIATE")
        for table, name in zip(self._tables, self._names, strict=True):
            self._link.execute(f"DELETE FROM {table}")
            self._link.execute(f"INSERT INTO {table} SELECT * FROM kept_{name}")
        self._link.execute("COMMIT")


class PostgreSQLDatabase(Database):
    """On a server, which also says who waits for a lock."""

    postgresql = True
    _restored = 0
    _next_message = 1

    def keep(self) -> None:
        """Remember also which number the next message gets."""
        super().keep()
        [self._next_message] = self._link.execute("SELECT last_value FROM penstock.outbox_id_seq").fetchone()

    def _restore_rows(self) -> None:
        self._link.execute(f"SELECT put_back(), setval('penstock.outbox_id_seq', {self._next_message})")
        self._restored += 1
        if self._restored % _VACUUMED_EVERY == 0:
            for table in self._tables:
                self._link.execute(f"VACUUM {table}")

    def waiting(self) -> set[int]:
        """The sessions that wait for a lock."""
        return {row[0] for row in self._link.execute("SELECT pid FROM pg_locks WHERE NOT granted").fetchall()}

    def end_session(self, session: int) -> None:
        """End it, and wait until it has gone."""
        self._link.execute(f"SELECT pg_terminate_backend({session}, 5000)")


@contextmanager
def sqlite_database(directory: Path) -> Iterator[Database]:
    """A fresh one in a directory."""
    clock = ManualClock(_BEGINNING)
    store = open_store(f"sqlite:///{directory}/interleaved.db", clock=clock, sqlite_synchronous="OFF")
    migrate(store)
    with closing(sqlite3.connect(directory / "interleaved.db", isolation_level=None, timeout=30)) as link:
        link.execute("PRAGMA wal_autocheckpoint = 0")
        for name in TABLES:
            link.execute(f"CREATE TABLE kept_{store.placement.table(name)} AS SELECT * FROM {name} WHERE 1 = 0")
        yield SQLiteDatabase(store, clock, link)
    store.close()


@contextmanager
def postgresql_database(server: PostgresServer, name: str) -> Iterator[Database]:
    """A fresh one on a server, which looks for deadlocks soon."""
    server.create_database(name)
    clock = ManualClock(_BEGINNING)
    store = open_store(server.url(name), clock=clock)
    migrate(store)
    with psycopg.connect(server.url(name).replace("+psycopg", ""), autocommit=True) as link:
        link.execute(f"ALTER DATABASE {name} SET deadlock_timeout = '20ms'")
        for table in TABLES:
            link.execute(f"CREATE TABLE kept_{table} AS SELECT * FROM penstock.{table} WITH NO DATA")
        link.execute(_put_back(TABLES))
        store.close()  # so that every session has the setting
        store.lock_seconds = _PATIENCE
        yield PostgreSQLDatabase(store, clock, link)
        store.close()
    server.drop_database(name)


def _put_back(tables: Sequence[str]) -> str:
    """A function on the server: one way there and back, and statements that are planned once."""
    body = "".join(f"DELETE FROM penstock.{one}; INSERT INTO penstock.{one} TABLE kept_{one}; " for one in tables)
    return f"CREATE FUNCTION put_back() RETURNS void LANGUAGE plpgsql AS $$ BEGIN {body} END $$"


def end_state(database: Database) -> EndState:
    """The rows as they can be compared: jobs by their titles, times by whether they have come."""
    now = database.clock.held()

    def when(value: Any) -> str | None:
        if value is None:
            return None
        ahead = (database.moment(value) - now).total_seconds()
        return "past" if ahead <= 0 else "soon" if ahead <= 60 else "later"

    jobs = database.read("jobs")
    titles = {job["id"]: job["title"] for job in jobs}
    plain = (bool, int, str, type(None))

    def row(found: dict[str, Any], *left_out: str, job: str = "job_id", timed: Sequence[str] = ()) -> tuple[Any, ...]:
        cells = [titles.get(found[job], "nobody's")]
        for name, value in found.items():
            if name in left_out or name == job:
                continue
            if name in timed:
                cells.append(f"{name} {when(value)}")
            elif name.endswith("_seconds"):
                continue  # a thousandth or two, by how many statements came before
            elif name == "recent_items":
                cells.append(f"{name} {value:.1f}")
            elif name.endswith(("_at", "_since")):
                cells.append(f"{name} {value is not None}")
            elif name in ("leader_id", "lease", "alone"):
                cells.append(f"{name} {titles.get(value, value is not None)}")
            else:
                value = int(value) if isinstance(value, bool) else value
                cells.append(f"{name} {value if isinstance(value, plain) else repr(value)}")
        return tuple(cells)

    return (
        *sorted(row(job, "title", "updated_at", "last_heartbeat", job="id", timed=["next_claim_at"]) for job in jobs),
        *sorted(
            row(item, "id", "updated_at", "locked_at", timed=["ready_at", "lock_expires_at"])
            for item in database.read("job_items")
        ),
        *sorted(row(line, "reason", "at") for line in database.read("job_events")),
        *sorted(row(key, "created_at", "key", "request") for key in database.read("idempotency_keys")),
        *sorted(("pruned", one["user_id"], bool(one["has_leftovers"])) for one in database.read("pruned_jobs")),
        *sorted(
            ("counted", one["kind"], one["state"], one["jobs"], one["items"]) for one in database.read("pruned_counts")
        ),
        *sorted(
            (message["key"], repr(message["payload"]), message["sent_at"] is not None, when(message["ready_at"]))
            for message in database.read("outbox")
        ),
    )
