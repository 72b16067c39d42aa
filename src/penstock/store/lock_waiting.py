"""Changing the tables of a PostgreSQL database that is in service.

A statement that changes a table waits until everybody has let go of it, and whoever comes later queues behind it. So it
waits for a second at most (``lock_timeout``), steps back, lets the others go on, and tries again, until its whole time
is over. A second connection looks meanwhile for whom it waits, and says so.

Everything is set for one transaction only (SET LOCAL), and what must exclude another migration is a lock of a
transaction: a pooler in transaction mode may give the next transaction to another session.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from time import monotonic
from typing import Any, TypeVar

import structlog
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from penstock.errors import StoreUnavailable
from penstock.store.engine import Store
from penstock.store.migrations.indexes import NewIndex
from penstock.store.placement import placement_of
from penstock.store.revisions import build_concurrently

Result = TypeVar("Result")
Say = Callable[[str], None]
"""Takes a line about a migration's progress."""

_LOOK_SECONDS = 0.2
_MAX_PAUSE = 5.0
_PASSING = frozenset({"55P03", "40P01"})
_CANCELED = "57014"
_log = structlog.get_logger("penstock.schema")

_BLOCKERS = text("""
    SELECT pid, application_name, usename, state, coalesce(xact_start, backend_start) AS since, left(query, 80) AS query
    FROM pg_stat_activity WHERE pid = ANY(pg_blocking_pids(:pid)) ORDER BY since""")
_ALONE = text("SELECT pg_advisory_xact_lock(hashtext('penstock.migrate'), hashtext(:key))")
_INDEX = text("""
    SELECT i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
    JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = :schema AND c.relname = :name""")
_BUILDING = text("""
    SELECT p.pid, p.phase, p.blocks_done, p.blocks_total FROM pg_stat_progress_create_index p
    JOIN pg_class c ON c.oid = p.relid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = :schema AND c.relname = :table AND p.command = 'CREATE INDEX CONCURRENTLY'
      AND p.datname = current_database()""")


def say_in_the_log(line: str) -> None:
    """Where a migration's progress goes if nobody asks for it."""
    _log.info(line)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a migration waits for others."""

    lock_timeout: float = 1.0
    """Seconds that one try waits for a lock, and others behind it."""
    wait: float = 60.0
    """Seconds after which it gives up."""


@dataclass(frozen=True, slots=True)
class Blocker:
    """A session that holds what a migration waits for."""

    pid: int
    application_name: str
    user: str
    state: str
    since: datetime
    query: str

    def __str__(self) -> str:
        program = f" {self.application_name!r}" if self.application_name else ""
        query = " ".join(self.query.split())
        return f"pid {self.pid}{program} of {self.user}, {self.state} since {self.since:%Y-%m-%d %H:%M:%S%z}: {query}"


class LockWaiting:
    """Retries within a bound, and knows who held the lock."""

    def __init__(self, store: Store, patience: Patience, say: Say) -> None:
        self._store = store
        self._patience = patience
        self._say = say

    def run(self, what: str, attempt: Callable[[Connection], Result]) -> Result:
        """Run ``attempt`` in a transaction of its own, as often as it takes."""

        def attempt_once(watch: _Watch) -> Result:
            with self._begin(watch) as connection:
                return attempt(connection)

        return self._again_and_again(what, attempt_once)

    @contextmanager
    def alone(self, key: str) -> Iterator[None]:
        """Nobody else migrates the same schema within the block.

        A transaction that does nothing else holds a lock.
        """
        with ExitStack() as stack:
            self._again_and_again("another migration", lambda watch: stack.enter_context(self._lock(watch, key)))
            yield

    def build(self, index: NewIndex) -> None:
        """Build an index without blocking others; one that was left unfinished is built anew."""
        placement = placement_of(self._store.engine.dialect)
        parameters = {"schema": placement.schema, "name": placement.index(index.name)}
        with self._store.engine.connect() as connection:
            valid = connection.execute(_INDEX, parameters).scalar()
        if valid:
            return
        if valid is False:
            self._say(f"index {index.name} was left unfinished: it is dropped and built again")
            quote = self._store.engine.dialect.identifier_preparer.quote
            drop = text(f"DROP INDEX IF EXISTS {quote(str(placement.schema))}.{quote(placement.index(index.name))}")
            self.run(f"index {index.name}", lambda connection: connection.execute(drop))
        self._say(f"building index {index.name} on {index.table}")
        with self._store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            watch = _Watch(self._store, f"index {index.name}", self._say, self._patience)
            watch.index_of = {"schema": placement.schema, "table": placement.table(index.table)}
            try:
                with watch:
                    build_concurrently(connection, index)
            except DBAPIError as error:
                if watch.gave_up and _state(error) == _CANCELED:
                    raise self._locked_out(f"index {index.name}", watch.blockers) from error
                raise

    def _again_and_again(self, what: str, attempt: Callable[[_Watch], Result]) -> Result:
        give_up = monotonic() + self._patience.wait
        pause = 0.1
        with _Watch(self._store, what, self._say, self._patience) as watch:
            while True:
                try:
                    return attempt(watch)
                except DBAPIError as error:
                    if _state(error) not in _PASSING:
                        raise
                    if monotonic() >= give_up:
                        raise self._locked_out(what, watch.blockers) from error
                finally:
                    watch.pid = None
                # Whoever queued behind us goes first.
                threading.Event().wait(pause * (0.5 + random.random()))
                pause = min(2 * pause, _MAX_PAUSE)

    @contextmanager
    def _begin(self, watch: _Watch) -> Iterator[Connection]:
        with self._store.engine.connect() as connection, connection.begin():
            milliseconds = max(1, round(self._patience.lock_timeout * 1000))
            # What an administrator set for ordinary sessions would end a migration half way.
            connection.execute(text(f"SET LOCAL lock_timeout = {milliseconds}"))
            connection.execute(text("SET LOCAL statement_timeout = 0"))
            connection.execute(text("SET LOCAL idle_in_transaction_session_timeout = 0"))
            watch.pid = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
            yield connection

    @contextmanager
    def _lock(self, watch: _Watch, key: str) -> Iterator[None]:
        with self._begin(watch) as connection:
            connection.execute(_ALONE, {"key": key})
            # Until the next statement the server keeps the snapshot of the last, and an index would wait for it.
            connection.execute(text("SET LOCAL lock_timeout = 0"))
            yield

    def _locked_out(self, what: str, blockers: Sequence[Blocker]) -> StoreUnavailable:
        holders = "; ".join(map(str, blockers)) or "somebody whom this user may not see"
        return StoreUnavailable(
            f"gave up after {self._patience.wait:g} s of waiting for {what}: it is held by {holders}. "
            "End that session, or run it again later or with a longer --wait: nothing was changed by this step",
            code="SCHEMA_LOCKED",
        )


class _Watch:
    """Finds, on a connection of its own, the sessions that another connection waits for."""

    def __init__(self, store: Store, what: str, say: Say, patience: Patience) -> None:
        self.pid: int | None = None
        """The session to look at."""
        self.index_of: dict[str, Any] | None = None
        """Or the table of the index that it builds: behind a pooler its session is not known before."""
        self.blockers: Sequence[Blocker] = ()
        self.gave_up = False
        self._store = store
        self._what = what
        self._say = say
        self._patience = patience
        self._period = min(_LOOK_SECONDS, patience.lock_timeout / 4)
        self._phase: tuple[str, int] | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="penstock-lock-watch", daemon=True)

    def __enter__(self) -> _Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        blocked_since: float | None = None
        if self._over.wait(self._period):
            return
        # Where one may not look, nobody is named.
        with suppress(SQLAlchemyError), self._store.engine.connect() as raw_connection:
            connection = raw_connection.execution_options(isolation_level="AUTOCOMMIT")
            while not self._over.wait(self._period):
                blockers = self._blockers(connection)
                if not blockers:
                    blocked_since = None
                    continue
                if {blocker.pid for blocker in blockers} != {blocker.pid for blocker in self.blockers}:
                    self._say(f"waiting for {self._what}, held by {'; '.join(map(str, blockers))}")
                self.blockers = blockers
                blocked_since = blocked_since or monotonic()
                if self.index_of is not None and monotonic() - blocked_since > self._patience.wait:
                    # It has no lock_timeout: that would have to be set for the session, and nobody queues behind it.
                    self.gave_up = True
                    connection.execute(text("SELECT pg_cancel_backend(:pid)"), {"pid": self.pid})

    def _blockers(self, connection: Connection) -> Sequence[Blocker]:
        if self.index_of is not None:
            building = connection.execute(_BUILDING, self.index_of).one_or_none()
            self.pid = None if building is None else building.pid
            if building is not None:
                self._say_progress(building)
        if self.pid is None:
            return ()
        return [
            Blocker(row.pid, row.application_name, row.usename, row.state, row.since, row.query)
            for row in connection.execute(_BLOCKERS, {"pid": self.pid})
        ]

    def _say_progress(self, building: Any) -> None:
        tenths = 10 * building.blocks_done // building.blocks_total if building.blocks_total else 0
        if self._phase != (building.phase, tenths):
            self._phase = (building.phase, tenths)
            self._say(f"{self._what}: {building.phase}, {10 * tenths} %")


def _state(error: DBAPIError) -> str | None:
    state: str | None = getattr(error.orig, "sqlstate", None)
    return state
