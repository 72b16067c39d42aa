"""The composition root: the one place that knows every concrete class, and the object people use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TypeVar, Unpack

from pydantic_settings import BaseSettings

from penstock.app.bound import BoundApp
from penstock.app.child_processes import ChildProcesses
from penstock.app.messages import Messages
from penstock.app.runtime import Runtime
from penstock.app.schedules import Schedules
from penstock.app.system import System
from penstock.application import Application, Installed, Revision, Service, resolve
from penstock.clock import Clock
from penstock.errors import ConfigurationError, LibraryMissing
from penstock.lifecycle.callers import SYSTEM, Caller
from penstock.lifecycle.handlers import place_of
from penstock.lifecycle.job import Job
from penstock.lifecycle.kind import Classify, Kind, Kinds
from penstock.lifecycle.payloads import JSON
from penstock.lifecycle.policy import Policy, PolicyOptions
from penstock.lifecycle.schedules import CatchUp, Schedule
from penstock.logs import hand_to_logging
from penstock.operations.maintenance import rescue_from
from penstock.operations.request import Request
from penstock.settings import Settings, read_settings
from penstock.store.database_url import remarks, say
from penstock.store.engine import DatabaseConnection, Store
from penstock.store.schema import Schema
from penstock.worker.dispatching import Engine
from penstock.worker.failures import OnFailure
from penstock.worker.slice_worker import SliceWorker
from penstock.worker.worker import Worker

Definition = TypeVar("Definition", bound=object)
Answer = TypeVar("Answer")
Hook = TypeVar("Hook", bound=OnFailure)


class Penstock(BoundApp):
    """Durable jobs that people wait for.

    Without arguments it keeps everything in one SQLite file in the working directory; ``PENSTOCK_DATABASE_URL`` or
    ``database_url`` names another database. Nothing is opened until it is needed.

    >>> from penstock import Penstock, owner
    >>> app = Penstock("sqlite://")
    >>> @app.kind("greet")
    ... def greet(item):
    ...     return f"hello {item.input['name']}"
    >>> ada = app.acting_as(owner("ada"))
    >>> job = ada.submit("greet", {"name": "Ada"}).job
    >>> app.drain()
    True
    >>> ada.jobs.get(job.id).result
    'hello Ada'
    >>> app.close()

    The object itself acts as the system, the program that made it: it sees and may do everything. Who does something
    for others says for whom, with :meth:`acting_as`.
    """

    messages: Messages
    """What is published and subscribed to."""
    system: System
    """The database, the workers and maintenance."""
    schedules: Schedules
    """What is submitted again and again."""

    def __init__(
        self, database_url: str | None = None, *, settings: Settings | None = None, clock: Clock | None = None
    ) -> None:
        runtime = Runtime(database_url, settings, clock)
        super().__init__(runtime, SYSTEM, self._work_on)
        self.messages = Messages(runtime)
        self.system = System(runtime)
        self.schedules = Schedules(runtime)
        self.applications: list[Installed] = []
        self.missing_applications: list[Application[Any]] = []

    def acting_as(self, caller: Caller) -> BoundApp:
        """The same in somebody's name: ``owner("ann")``, ``owner(None)`` (a guest), ``admin("root")`` or ``SYSTEM``.

        What is submitted is theirs, what is read they may see, and the history says that they did it.
        """
        return BoundApp(self._runtime, caller, self._work_on)

    # What it is made of -------------------------------------------------------------------------------------------

    @property
    def settings(self) -> Settings:
        """The settings, read from the environment when they are first needed."""
        return self._runtime.settings

    @property
    def store(self) -> Store:
        """The database; an embedded one is brought up to date by itself, a server's by ``penstock migrate``."""
        return self._runtime.store

    @property
    def kinds(self) -> Kinds:
        """The kinds that are registered."""
        return self._runtime.kinds

    def close(self) -> None:
        """Close the database, and end the processes that read files."""
        self._runtime.close()

    # Registering --------------------------------------------------------------------------------------------------

    def kind(
        self,
        name: str,
        *,
        policy: Policy | None = None,
        classify: Classify | None = None,
        **options: Unpack[PolicyOptions],
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

        A class that needs something is registered as an instance: ``app.kind("scan")(Scan(records))``. The rules are
        arguments, or a ``policy``. ``classify`` is a function from the exception a handler raised to the one that
        counts. A handler that could not run is refused here, with its place.
        """
        if callable(name):
            raise ConfigurationError(f"@app.kind needs the kind's name: @app.kind('…') ({place_of(name)})")
        if policy is not None and options:
            raise ConfigurationError(f"kind {name!r} has a policy already; {', '.join(options)} belong into it")
        rules = Policy(**options) if policy is None else policy

        def register(definition: Definition) -> Definition:
            self.kinds.add(Kind.of(name, definition, rules, classify))
            return definition

        return register

    def schedule(
        self,
        name: str,
        cron: str,
        kind: str,
        params: JSON = None,
        *,
        tz: str = "UTC",
        catch_up: Literal["one", "all", "none"] = "one",
        owner: str | None = None,
        title: str | None = None,
        priority: int | None = None,
        unique_key: str | None = None,
    ) -> None:
        """Submit a job of a kind at each tick of a cron expression, once, however many workers there are.

        ::

            app.schedule("nightly", "0 3 * * *", "report", {"of": "yesterday"}, tz="Europe/Berlin")

        Workers see to it. They ``catch_up`` with ticks that were missed because none ran: with the last ``one``, with
        ``all`` or with ``none`` of them. A job's ``run_at`` is its tick. With a ``unique_key`` no second job comes
        while the one before still runs.
        """
        if name in self._runtime.schedules:
            raise ConfigurationError(f"the schedule {name!r} is declared twice; give one of them another name")
        if catch_up not in tuple(CatchUp):
            raise ConfigurationError(f"catch_up is {catch_up!r}; it must be one of {', '.join(CatchUp)}")
        self.kinds.get(kind)
        Request(owner=owner, priority=priority, unique_key=unique_key, title=title)  # these have bounds
        self._runtime.schedules[name] = Schedule(
            name, cron, kind, params, tz, CatchUp(catch_up), owner, title, priority, unique_key
        )

    def install(self, application: Application[Service], settings: BaseSettings | None = None) -> Service:
        """Bring an application in, with its tables and its kinds; the answer is its own object.

        Its settings are read from the environment unless they are given.
        """
        lacking = application.why_missing()
        if lacking is not None:
            raise LibraryMissing(lacking)
        settings_type = resolve(application.settings)
        if settings is None and settings_type is not None:
            settings = read_settings(settings_type)
        if application.migrations is not None:
            migrations = application.migrations
            head = migrations.revisions[-1].revision if migrations.revisions else migrations.head
            self.add_migrations(application.name, migrations.package, head, migrations.revisions)
        service = resolve(application.install)(self, settings)
        self.applications.append(Installed(application, settings, service))
        return service

    def child_processes(self, size: int, *, max_waiting: int | None = None) -> ChildProcesses:
        """Processes in which an application has files of strangers read, with limits; they end with this object.

        Without ``max_waiting`` any number of calls may wait for one of them.
        """
        processes = ChildProcesses(size, max_waiting=max_waiting)
        self._runtime.child_processes.append(processes)
        return processes

    def on_failure(self, hook: Hook) -> Hook:
        """Call ``hook`` with a :class:`Failure` for each try that fails in a worker of this process.

        It is called after the outcome is recorded, in a thread of its own: what it raises is logged, and while it hangs
        work goes on. Failures that do not fit into its queue meanwhile are dropped, and that is logged.
        """
        self._runtime.failure_hooks.append(hook)
        return hook

    def add_migrations(self, name: str, package: str, head: str, revisions: tuple[Revision, ...] = ()) -> None:
        """An application keeps tables of its own in this database: they are migrated with ours.

        The revisions are Alembic's, in the folder ``migrations/versions`` of ``package`` or in ``revisions``; ``head``
        is the newest. The tables are declared with :func:`penstock.store.own_metadata`, and lie where ours do.
        """
        self._runtime.add_schema(Schema.of_app(name, package, head, revisions))

    def in_transaction(
        self, operation: Callable[[DatabaseConnection], Answer], *, reads: bool = False, single_statement: bool = False
    ) -> Answer:
        """Run ``operation`` with a SQLAlchemy connection, in a transaction of its own: for tables of an application.

        It is run again when the database says that another try may work (a deadlock, a busy file). One that only
        ``reads`` and promises to be a ``single_statement`` needs no transaction around it.
        """
        if reads:
            return self.store.read(
                lambda transaction: operation(transaction.connection), single_statement=single_statement
            )
        return self.store.write(lambda transaction: operation(transaction.connection))

    # Working ------------------------------------------------------------------------------------------------------

    def worker(self, *, kinds: Sequence[str] | None = None) -> Worker:
        """A worker for all kinds, or the named ones; ``start()`` and ``stop()`` it, or ``run()`` it."""
        hand_to_logging()
        worker = self._new_worker(self.settings, only=kinds)
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
        """Run everything that waits, retries included; False if that takes longer than ``timeout`` seconds."""
        return self.worker(kinds=kinds).run_until_idle(timeout)

    def add_engine(self, engine: Engine) -> None:
        """Have handlers run on an engine: :func:`penstock.celery.run_on_celery` calls this."""
        self._runtime.engines.append(engine)

    def dispatcher(self, engine: str) -> Worker:
        """A worker that runs no handlers, and tells the engine of that name of work; ``start()`` and ``stop()`` it.

        It has the duties of any worker besides: it sweeps, relays messages and takes over from the dead.
        """
        engines = [candidate for candidate in self._runtime.engines if candidate.name == engine]
        if not engines:
            raise ConfigurationError(
                f"no kind of this app runs on {engine}: call run_on_{engine}(…) in the module that has the app",
                code="ENGINE_UNKNOWN",
            )
        hand_to_logging()
        dispatchers = [candidate.dispatcher(self.store, self.settings) for candidate in engines]
        return self._new_worker(self.settings, only=(), dispatchers=dispatchers)

    def slice_worker(self) -> SliceWorker:
        """What a process of an engine works off its slices with."""
        hand_to_logging()
        return SliceWorker(self.store, self.kinds, self.settings, app=self, on_failure=self._runtime.failure_hooks)

    def take_back(self, holder: str) -> int:
        """What a process held that is known to be dead goes back in line; the answer is how many items that were.

        In connections of its own, which are closed again: a process that forks others must not keep any.
        """
        with self._runtime.open_apart() as store:
            return rescue_from(store, self.kinds, holder, self.settings.suspect_deaths)

    def _work_on(self, job: Job, duration: float) -> None:
        """Work on one job alone, for so many seconds."""
        settings = self.settings.model_copy(update={"target_slice_ms": max(10, int(duration * 1000))})
        self._new_worker(settings, only=[job.kind], job_id=job.id).run_until_idle(duration, grace=0.0)

    def _new_worker(self, settings: Settings, **options: Any) -> Worker:
        runtime = self._runtime
        return Worker(
            self.store,
            self.kinds,
            settings,
            transport=runtime.transport,
            gauges=self.kinds.gauges(),
            app=self,
            on_failure=runtime.failure_hooks,
            on_sweep=runtime.sweep_hooks,
            prune_rules=runtime.prune_rules,
            schedules=tuple(runtime.schedules.values()),
            **options,
        )
