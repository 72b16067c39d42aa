"""The composition root: the one place that knows every concrete class, and the object people use.

>>> from penstock import Penstock
>>> app = Penstock("sqlite://")
>>> @app.kind("greet")
... def greet(item):
...     return f"hello {item.input['name']}"
>>> job = app.submit("greet", {"name": "Ada"}, owner="ada").job
>>> app.drain()
True
>>> app.get(job.id).result
'hello Ada'
>>> app.close()
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

from pydantic_settings import BaseSettings

from penstock.application import Application, Installed, Revision, Service, resolve
from penstock.changing import Changing
from penstock.clock import Clock
from penstock.errors import ConfigurationError, JobNotFound, TransitionRefused
from penstock.lifecycle.callers import SYSTEM, Caller
from penstock.lifecycle.job import Job
from penstock.lifecycle.kind import Classify, Kind, Kinds
from penstock.lifecycle.payloads import JSON
from penstock.lifecycle.policy import Duration, Policy, RunsIn
from penstock.lifecycle.quantities import seconds
from penstock.lifecycle.retry import Backoff
from penstock.lifecycle.states import JobState
from penstock.logs import hand_to_logging
from penstock.messages import InProcessMessages, Subscriber
from penstock.operations import outbox
from penstock.operations.backfill import backfill
from penstock.operations.files import FileStore, Readable, StoredFile, get_file, record_file
from penstock.operations.maintenance import MaintenanceReport, sweep
from penstock.operations.workers import subscribed_topics
from penstock.settings import Settings, load_settings, read_settings
from penstock.store.database_url import check_database, describe_connection, file_of, remarks, say, translate_errors
from penstock.store.engine import LOCK_SECONDS, CallersConnection, Store, open_store
from penstock.store.lock_waiting import say_in_the_log
from penstock.store.schema import OURS, Patience, Schema, is_current, migrate, require_current
from penstock.store.transaction import Transaction
from penstock.worker.failures import OnFailure
from penstock.worker.worker import Worker

Definition = TypeVar("Definition", bound=Callable[..., Any] | type)
Answer = TypeVar("Answer")
Hook = TypeVar("Hook", bound=OnFailure)
_ADOPTED_AT_ONCE = 500
_MIGRATING_CONNECTIONS = 4
"""One that changes tables, one that keeps other migrations away, one that looks for whom we wait, and a spare."""


class Penstock(Changing):
    """Durable jobs that people wait for.

    Without arguments it keeps everything in one SQLite file in the working directory; ``PENSTOCK_DATABASE_URL`` or
    ``database_url`` names another database. Nothing is opened until it is needed.
    """

    def __init__(
        self, database_url: str | None = None, *, settings: Settings | None = None, clock: Clock | None = None
    ) -> None:
        self._given = {} if database_url is None else {"database_url": database_url}
        self._settings = settings
        self._clock = clock
        self._lock = threading.RLock()
        self._store: Store | None = None
        self._schemas = [OURS]
        self.kinds = Kinds()
        self.transport = InProcessMessages()
        self.applications: list[Installed] = []
        self._on_failure: list[OnFailure] = []

    @property
    def settings(self) -> Settings:
        """The settings, read from the environment when they are first needed."""
        with self._lock:
            if self._settings is None:
                self._settings = load_settings(**self._given)
            return self._settings

    @property
    def store(self) -> Store:
        """The database; an embedded one is brought up to date by itself, a server's by ``penstock migrate``."""
        with self._lock:
            if self._store is None:
                with translate_errors(self.settings.database_url):
                    store = self._open()
                    try:
                        self._ready(store)
                    except BaseException:
                        store.close()
                        raise
                self._store = store
            return self._store

    def _ready(self, store: Store) -> None:
        if not store.dialect.is_embedded:
            require_current(store, self._schemas)
        # Only a look when there is nothing to do: somebody may hold the one writer's place just now.
        elif not is_current(store, self._schemas):
            migrate(store, self._schemas)

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

    @property
    def database_file(self) -> Path | None:
        """The file of an embedded database; None for a server's, and for one in memory."""
        return file_of(self.settings.database_url)

    def migrate(
        self, *, lock_timeout: Duration = 1.0, wait: Duration = 60.0, say: Callable[[str], None] = say_in_the_log
    ) -> None:
        """Bring the database's schema up to date; safe while old code runs, and when called twice.

        On a server in service it waits for others ``lock_timeout`` at a time, for ``wait`` at most, and ``say`` is told
        how it goes on. A database in the layout of an earlier version needs stopped workers, once.
        """
        patience = Patience(lock_timeout=seconds(lock_timeout), wait=seconds(wait))
        with translate_errors(self.settings.database_url), closing(self._open(migrating=True)) as store:
            migrate(store, self._schemas, patience=patience, say=say)

    def add_migrations(self, name: str, package: str, head: str, revisions: tuple[Revision, ...] = ()) -> None:
        """An application keeps tables of its own in this database: they are migrated with ours.

        The revisions are Alembic's, in the folder ``migrations/versions`` of ``package`` or in ``revisions``; ``head``
        is the newest. The tables are declared with :func:`penstock.own_metadata`, and lie where ours do.
        """
        with self._lock:
            if self._store is not None:
                raise ConfigurationError(f"{name} must say what tables it owns before the database is opened")
            self._schemas.append(Schema.of_app(name, package, head, revisions))

    def in_transaction(
        self, operation: Callable[[CallersConnection], Answer], *, reads: bool = False, single_statement: bool = False
    ) -> Answer:
        """Run ``operation`` with a SQLAlchemy connection, in a transaction of its own: for tables of an application.

        It is run again when the database says that another try may work (a deadlock, a busy file). One that only
        ``reads`` and promises to be a ``single_statement`` needs no transaction around it.
        """
        if reads:
            return self.store.read(lambda one: operation(one.connection), single_statement=single_statement)
        return self.store.write(lambda one: operation(one.connection))

    def check_database(self) -> list[str]:
        """Reach the database and look at its schema, changing nothing; what is wrong is raised.

        The answer is what its operator should know about it nonetheless.
        """
        with translate_errors(self.settings.database_url), closing(self._open()) as store:
            check_database(store, self._schemas)
            return remarks(store)

    def describe_connection(self) -> list[str]:
        """How a database server is reached, in words, and whether its notices are heard."""
        with translate_errors(self.settings.database_url), closing(self._open()) as store:
            return describe_connection(store)

    def close(self) -> None:
        """Let go of the database."""
        with self._lock:
            if self._store is not None:
                self._store.close()
                self._store = None

    # Kinds --------------------------------------------------------------------------------------------------------

    def kind(
        self,
        name: str,
        *,
        retries: int = 3,
        backoff: str | Backoff = "1s exponential up to 5m",
        not_found_retries: int = 0,
        timeout: Duration | None = None,
        memory_limit: str | int | None = None,
        runs_in: RunsIn | str | None = None,
        concurrency: int | None = None,
        reprocess: bool = False,
        priority: int = 0,
        queue_limit: int | None = None,
        wait_limit: Duration | None = None,
        run_limit: Duration | None = None,
        abandon_after: Duration | None = None,
        prune_result: bool = False,
        classify: Classify | None = None,
    ) -> Callable[[Definition], Definition]:
        """Register a kind of job: decorate a function, or a class with ``process`` and perhaps ``plan``, ``finalize``.

        ::

            @app.kind("price-check", retries=3, backoff="1s fixed", timeout="30s")
            class PriceCheck:
                async def plan(self, job):          # yields the inputs; they are persisted as they come
                    for row in job.params["rows"]:
                        yield row
                async def process(self, item):      # each item; what it returns is kept
                    return {"price": await look_up(item.input)}
                async def finalize(self, job):      # once, after the last item; its answer is the job's result
                    return {"checked": sum(1 for _ in job.results())}
        """
        policy = Policy.of(
            retries=retries,
            backoff=backoff,
            not_found_retries=not_found_retries,
            timeout=timeout,
            memory_limit=memory_limit,
            runs_in=runs_in,
            concurrency=concurrency,
            reprocess=reprocess,
            priority=priority,
            queue_limit=queue_limit,
            wait_limit=wait_limit,
            run_limit=run_limit,
            abandon_after=abandon_after,
            prune_result=prune_result,
        )

        def register(definition: Definition) -> Definition:
            self.kinds.add(Kind.of(name, definition, policy, classify))
            return definition

        return register

    def install(self, application: Application[Service], settings: BaseSettings | None = None) -> Service:
        """Bring an application in, with its tables and its kinds; the answer is its own object.

        Its settings are read from the environment unless they are given.
        """
        lacking = application.why_missing()
        if lacking is not None:
            raise ConfigurationError(lacking, code="LIBRARY_MISSING")
        settings_type = resolve(application.settings)
        if settings is None and settings_type is not None:
            settings = read_settings(settings_type)
        if application.migrations is not None:
            brought = application.migrations
            head = brought.revisions[-1].revision if brought.revisions else brought.head
            self.add_migrations(application.name, brought.package, head, brought.revisions)
        service = resolve(application.install)(self, settings)
        self.applications.append(Installed(application, settings, service))
        return service

    def on_failure(self, hook: Hook) -> Hook:
        """Call ``hook`` with a :class:`Failure` for each try that fails in a worker of this process.

        It is called after the outcome is recorded, in a thread of its own: what it raises is logged, and while it hangs
        work goes on. Failures that do not fit into its queue meanwhile are dropped, and that is logged.
        """
        self._on_failure.append(hook)
        return hook

    # Files and messages -------------------------------------------------------------------------------------------

    def keep_file(
        self,
        stream: Readable,
        *,
        name: str,
        owner: str | None = None,
        media_type: str | None = None,
        most: int | None = None,
    ) -> StoredFile:
        """Keep an uploaded file; hand the answer to :meth:`submit` as ``file``."""
        kept = FileStore(self.settings.files_directory).keep(stream, most=most)
        return self.store.write(lambda one: record_file(one, kept, name=name, owner=owner, media_type=media_type))

    def file(self, file_id: UUID, *, by: Caller = SYSTEM) -> tuple[StoredFile, Path]:
        """A kept file's record, and where its bytes are."""
        stored = self.store.read(lambda one: get_file(one, file_id, by))
        return stored, FileStore(self.settings.files_directory).path(stored.sha256).absolute()

    def publish(
        self, topic: str, payload: JSON, *, key: str | None = None, connection: CallersConnection | None = None
    ) -> None:
        """Send a message once the transaction has committed, at least once; it survives a crash in the outbox.

        Messages of one topic and ``key`` are sent in their order.
        """
        most = self.settings.max_payload_bytes
        self._write(connection, lambda one: outbox.append(one, topic, payload, key=key, most=most))

    def subscribe(self, topic: str) -> Callable[[Subscriber], Subscriber]:
        """Register a function for the messages of a topic, which workers of this process deliver.

        They wait for a process that subscribes, and are dropped after PENSTOCK_UNSUBSCRIBED_MESSAGE_DAYS without one.
        """

        def register(subscriber: Subscriber) -> Subscriber:
            self.transport.subscribe(topic, subscriber)
            return subscriber

        return register

    # Working ------------------------------------------------------------------------------------------------------

    def worker(self, *, kinds: Sequence[str] | None = None) -> Worker:
        """A worker for all kinds, or the named ones; ``start()`` and ``stop()`` it, or ``run()`` it."""
        hand_to_logging()
        worker = Worker(
            self.store,
            self.kinds,
            self.settings,
            only=kinds,
            transport=self.transport,
            gauges=self.kinds.gauges(),
            app=self,
            on_failure=self._on_failure,
        )
        for remark in remarks(self.store):
            say(remark)
        return worker

    @contextmanager
    def working(self, *, kinds: Sequence[str] | None = None) -> Iterator[Worker]:
        """A worker for the length of a ``with`` block."""
        worker = self.worker(kinds=kinds)
        worker.start()
        try:
            yield worker
        finally:
            worker.stop()

    def drain(self, *, kinds: Sequence[str] | None = None, timeout: float | None = None) -> bool:
        """Do all that waits, retries included, and come back; False when that took longer than ``timeout`` seconds."""
        return self.worker(kinds=kinds).run_until_idle(timeout)

    def kickoff(self, job_id: UUID, *, by: Caller = SYSTEM, duration: Duration = 5.0) -> Job:
        """Work on one job for so long, in this process; the answer is the job as it stands then.

        Again and again, this brings a job to its end where no worker runs; beside workers it is one more. What is in
        hand when the time is over is handed back, and does not count as a try.
        """
        job = self.get(job_id, by=by)
        if job.state in (JobState.CREATED, JobState.PAUSED):
            first = "submit it" if job.state is JobState.CREATED else "resume it"
            raise TransitionRefused(f"job {job_id} is {job.state.value}: {first} before it is kicked off")
        if job.finished:
            return job
        length = seconds(duration)
        hand = self.settings.model_copy(update={"target_slice_ms": max(10, int(length * 1000))})
        worker = Worker(
            self.store,
            self.kinds,
            hand,
            only=[job.kind],
            transport=self.transport,
            job_id=job_id,
            gauges=self.kinds.gauges(),
            app=self,
            on_failure=self._on_failure,
        )
        worker.run_until_idle(length, grace=0.0)
        return self.get(job_id, by=by)

    def sweep(self) -> MaintenanceReport:
        """One maintenance pass: expired leases, due retries, limits, unused results, stale jobs, the outbox."""
        swept = sweep(
            self.store,
            self.kinds,
            stale_seconds=self.settings.stale_minutes * 60,
            suspect_deaths=self.settings.suspect_deaths,
        )
        outbox.relay(self.store, self.transport.send, topics=self.transport.topics())
        self.store.write(self._drop_unsubscribed, bounded=True)
        return swept

    def _drop_unsubscribed(self, transaction: Transaction) -> None:
        subscribed = subscribed_topics(transaction) | self.transport.topics()
        outbox.drop_unsubscribed(transaction, subscribed, days=self.settings.unsubscribed_message_days)

    def backfill(self) -> int:
        """Write each job's owner and kind to its items again, where they say otherwise; the answer is how many did."""
        return backfill(self.store)


def parse_job_id(text: str) -> UUID:
    """A job's id as somebody typed it."""
    try:
        return UUID(text)
    except ValueError:
        raise JobNotFound(f"there is no job {text!r}: an id looks like 01890a5d-ac96-774b-bcce-b302099a8057") from None
