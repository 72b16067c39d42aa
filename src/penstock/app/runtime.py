"""What the objects of one application share: settings, database, kinds, and where messages go."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TypeVar

from penstock.app.child_processes import ChildProcesses
from penstock.clock import Clock
from penstock.errors import ConfigurationError, LibraryMissing
from penstock.lifecycle.kind import Kinds
from penstock.lifecycle.quantities import seconds
from penstock.lifecycle.retention import Retention
from penstock.lifecycle.schedules import Schedule
from penstock.lifecycle.transport import Transport
from penstock.logs import hand_to_logging
from penstock.messages.in_process import InProcessMessages
from penstock.messages.subscriptions import Subscriptions
from penstock.operations.prune import FileUsers, PruneRules
from penstock.settings import Settings, load_settings
from penstock.settings.retention import FOREVER
from penstock.store.callers_connection import CallersConnection
from penstock.store.database_url import translate_errors
from penstock.store.engine import LOCK_SECONDS, Store, open_store
from penstock.store.schema import OURS, Schema, is_current, migrate, require_current
from penstock.store.transaction import Transaction
from penstock.worker.dispatching import Engine
from penstock.worker.failures import OnFailure

Answer = TypeVar("Answer")
_MIGRATING_CONNECTIONS = 4
"""One that changes tables, one that locks out other migrations, one that looks for blockers, and a spare."""


class Runtime:
    """Settings and a database, which are read and opened when they are first needed; and what is registered."""

    def __init__(self, database_url: str | None, settings: Settings | None, clock: Clock | None) -> None:
        self._overrides = {} if database_url is None else {"database_url": database_url}
        self._settings = settings
        self._clock = clock
        self._lock = threading.RLock()
        self._store: Store | None = None
        self._opened_in = 0
        self._inherited_stores: list[Store] = []
        self._schemas = [OURS]
        self.kinds = Kinds()
        self.subscriptions = Subscriptions()
        self._transport: Transport | None = None
        self.failure_hooks: list[OnFailure] = []
        self.file_users: list[FileUsers] = []
        self.sweep_hooks: list[Callable[[], None]] = []
        """What applications want done in each maintenance pass."""
        self.schedules: dict[str, Schedule] = {}
        """What this program declares to be submitted again and again, by name."""
        self.engines: list[Engine] = []
        self.child_processes: list[ChildProcesses] = []
        """What applications read files in; they end when this is closed."""

    @property
    def settings(self) -> Settings:
        """The settings, read from the environment when they are first needed."""
        with self._lock:
            if self._settings is None:
                self._settings = load_settings(**self._overrides)
            return self._settings

    @property
    def store(self) -> Store:
        """The database; an embedded one is brought up to date by itself, a server's by ``penstock migrate``."""
        with self._lock:
            if self._store is not None and self._opened_in != os.getpid():
                # We were forked. Its connections are our parent's: to use them, or to close them, would end them there.
                self._inherited_stores.append(self._store)
                self._store = None
            if self._store is None:
                with translate_errors(self.settings.database_url):
                    store = self._open()
                    try:
                        self._make_ready(store)
                    except BaseException:
                        store.close()
                        raise
                self.use_store(store)
            assert self._store is not None
            return self._store

    @property
    def transport(self) -> Transport:
        """What carries messages, as the settings say."""
        with self._lock:
            if self._transport is None:
                self._transport = _make_transport(self.settings, self.subscriptions)
            return self._transport

    @property
    def schemas(self) -> Sequence[Schema]:
        """The tables that are ours, and those of applications."""
        return tuple(self._schemas)

    def use_store(self, store: Store) -> None:
        """Work on a store that is open: tests open one whose clock they hold."""
        self._store = store
        self._opened_in = os.getpid()

    def add_schema(self, schema: Schema) -> None:
        """An application has tables of its own in this database."""
        with self._lock:
            if self._store is not None:
                raise ConfigurationError(f"{schema.name} must say what tables it owns before the database is opened")
            self._schemas.append(schema)

    @contextmanager
    def open_apart(self, *, migrating: bool = False) -> Iterator[Store]:
        """The database, in connections of its own and whatever its schema; closed at the end."""
        with translate_errors(self.settings.database_url), closing(self._open(migrating=migrating)) as store:
            yield store

    def write(self, connection: CallersConnection | None, operation: Callable[[Transaction], Answer]) -> Answer:
        """Run ``operation`` in a transaction of its own, or in the caller's."""
        if connection is None:
            return self.store.write(operation)
        with self.store.use_connection(connection) as transaction:
            return operation(transaction)

    @property
    def prune_rules(self) -> PruneRules:
        """How long what is over is kept."""
        settings = self.settings
        keep_for = _seconds_kept(settings.keep_jobs_for)
        failed = settings.keep_failed_jobs_for
        return PruneRules(
            self.kinds,
            Retention(keep_for, keep_for if failed is None else _seconds_kept(failed)),
            keep_keys_for=_seconds_kept(settings.keep_idempotency_keys_for),
            file_users=self.file_users,
        )

    def close(self) -> None:
        """Close the database, let go of the broker, and end the processes that read files."""
        for processes in self.child_processes:
            processes.close()
        with self._lock:
            if self._transport is not None:
                self._transport.close()
                self._transport = None
            if self._store is not None:
                if self._opened_in == os.getpid():
                    self._store.close()
                self._store = None

    def _open(self, *, migrating: bool = False) -> Store:
        settings = self.settings
        store = open_store(
            settings.database_url,
            clock=self._clock,
            pool_size=max(_MIGRATING_CONNECTIONS, settings.pool_size) if migrating else settings.pool_size,
            sqlite_synchronous=settings.sqlite_synchronous,
            schema=settings.database_schema,
            timeout=None if migrating else settings.database_timeout_seconds,
            prepared_statements=settings.prepared_statements,
            listen_url=settings.listen_url,
        )
        store.slow_query_ms = settings.slow_query_ms
        store.item_summary = self.kinds.summary
        # Whoever waits for a job holds items; their leases must have time left when it gives up.
        store.lock_seconds = min(LOCK_SECONDS, settings.lock_floor_ms / 4_000)
        hand_to_logging()
        return store

    def _make_ready(self, store: Store) -> None:
        if not store.dialect.is_embedded:
            require_current(store, self._schemas)
        # Only a look when there is nothing to do: somebody may hold the one writer's place just now.
        elif not is_current(store, self._schemas):
            migrate(store, self._schemas)


def _seconds_kept(duration: str) -> float | None:
    return None if duration == FOREVER else seconds(duration)


def _make_transport(settings: Settings, subscriptions: Subscriptions) -> Transport:
    if settings.transport != "kafka":
        return InProcessMessages(subscriptions)
    try:
        from penstock.messages.kafka.transport import KafkaMessages
    except ModuleNotFoundError as error:
        if error.name != "confluent_kafka":
            raise
        raise LibraryMissing(
            "PENSTOCK_TRANSPORT is kafka, which needs confluent-kafka, not installed here: install penstock[kafka]"
        ) from None
    return KafkaMessages(settings, subscriptions)
