"""``track``: one honest job for a coordinator, a group, a chain or a chord; the calls do not change.

docs/explanation/celery.md says what is promised, and docs/how-to/track-celery-tasks.md how it is used.
"""

from __future__ import annotations

import atexit
import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import structlog
from celery import Celery
from uuid_utils.compat import uuid7

from penstock.app.penstock import Penstock
from penstock.celery.process_app import ProcessApp
from penstock.celery.sighting_buffer import SightingBuffer
from penstock.celery.task_sightings import job_id_of, lost, sightings_of_message
from penstock.celery.task_signals import TaskSignals
from penstock.errors import ConfigurationError, PenstockError
from penstock.lifecycle import bounds
from penstock.lifecycle.bounds import require_kind_name
from penstock.lifecycle.error_text import describe_error
from penstock.lifecycle.payloads import JSON, encode
from penstock.lifecycle.policy import Duration
from penstock.lifecycle.quantities import seconds
from penstock.lifecycle.states import TrackingEngine
from penstock.lifecycle.tracked_tasks import FailurePolicy, TaskSighting, TaskStatus
from penstock.operations.request import Request
from penstock.operations.tracking import record_sightings, record_tracked_job

OwnerOf = Callable[[str, Sequence[Any], Mapping[str, Any]], str | None]
"""Whose job it is, by the name and the arguments of its root task."""
_TRACKER_ATTRIBUTE = "_penstock_tracked"
_log = structlog.get_logger("penstock.celery")


@dataclass(frozen=True, slots=True)
class TrackOptions:
    """How tasks are tracked."""

    kinds: Mapping[str, str]
    """The kind of the job that each root task begins."""
    failures: FailurePolicy
    lost_after: float
    silent_after: float
    owner_of: OwnerOf | None


def track(
    celery_app: Celery,
    app: Penstock,
    *,
    jobs: Mapping[str, str] | None = None,
    failures: FailurePolicy | str = FailurePolicy.COUNT,
    lost_after: Duration = "10m",
    silent_after: Duration = "30s",
    flush_every: Duration = 0.2,
    owner_of: OwnerOf | None = None,
) -> Tracker:
    """Track the tasks of a Celery application, where it is defined: in clients and in workers alike.

    ``jobs`` names the tasks that begin a job, and the kind of the job: its id is the task's. Parts that fail are
    counted, or fail the job (``failures="fail"``). What is lost, as far as anybody can see, fails after ``lost_after``,
    and a worker that has said nothing for ``silent_after`` counts as dead. What is heard of tasks is written every
    ``flush_every`` seconds; 0 writes at once.
    """
    if getattr(celery_app, _TRACKER_ATTRIBUTE, None) is not None:
        raise ConfigurationError("this Celery application is tracked already: call track once, where it is defined")
    kinds = dict(jobs or {})
    for name, kind in kinds.items():
        if not name:
            raise ConfigurationError("jobs names a task without a name; it must be one like 'tasks.coordinator'")
        require_kind_name(kind)
    try:
        policy = FailurePolicy(failures)
    except ValueError:
        raise ConfigurationError(f"failures is {failures!r}; it must be 'count' or 'fail'") from None
    options = TrackOptions(kinds, policy, seconds(lost_after), seconds(silent_after), owner_of)
    for name in ("lost_after", "silent_after"):
        if getattr(options, name) <= 0:
            raise ConfigurationError(f"{name} must be longer than 0 s")
    tracker = Tracker(celery_app, app, options, flush_every=seconds(flush_every) if flush_every else 0.0)
    setattr(celery_app, _TRACKER_ATTRIBUTE, tracker)
    return tracker


class Tracker:
    """A Celery application whose tasks are tracked; what :func:`track` gives."""

    def __init__(self, celery_app: Celery, app: Penstock, options: TrackOptions, *, flush_every: float) -> None:
        from penstock.celery.worker_watch import WorkerWatch

        self.celery_app = celery_app
        self.options = options
        self.worker_name: str | None = None
        """What the worker is called that this process belongs to; a pool's child has it from its parent."""
        self._process_app = ProcessApp(app)
        self._buffer = SightingBuffer(self._write, flush_every)
        self._open_job: ContextVar[UUID | None] = ContextVar("penstock_celery_job", default=None)
        self._watch = WorkerWatch(self)
        self._receivers = {**TaskSignals(self).receivers, **self._watch.receivers}
        for signal, receiver in self._receivers.items():
            signal.connect(receiver, weak=False)
        atexit.register(self._buffer.close)

    @property
    def app(self) -> Penstock:
        """The Penstock of this process."""
        return self._process_app.get()

    def at_work(self) -> AbstractContextManager[Penstock]:
        """The same for a thread of ours, while nobody forks."""
        return self._process_app.at_work()

    @contextmanager
    def job(
        self, kind: str, *, owner: str | None = None, title: str | None = None, params: JSON = None
    ) -> Iterator[UUID]:
        """One job for everything that is sent in this block; the answer is its id.

        It does not end before the block does, whatever its tasks do meanwhile. What the block raises fails the job.
        """
        require_kind_name(kind)
        job_id = uuid7()
        client = TaskSighting(
            job_id,
            str(job_id),
            TaskStatus.PUBLISHING,
            name=f"the program that sends it ({socket.gethostname()})"[: bounds.LONGEST_TASK_NAME],
            is_root=True,
            is_counted=False,
        )
        self._record_job(kind, job_id, [client], params, Request(owner=owner, title=title))
        token = self._open_job.set(job_id)
        try:
            yield job_id
        except BaseException as error:
            text = f"the tasks were not all sent: {describe_error(error)}"
            self.hear(_end_of(client, TaskStatus.FAILED, **lost(text, "NOT_ALL_SENT")))
            raise
        else:
            self.hear(_end_of(client, TaskStatus.SUCCEEDED))
        finally:
            self._open_job.reset(token)
            self.flush()

    @staticmethod
    def job_id_of(task_id: str) -> UUID:
        """The job whose root is this task: what a page asks for that knows the task's id."""
        return job_id_of(task_id)

    def flush(self) -> None:
        """Write what this process has heard now."""
        self._buffer.flush()

    def reconcile(self) -> None:
        """Ask about the tasks of which nothing was heard for a while; workers do that by themselves."""
        self._watch.reconcile()

    def close(self) -> None:
        """Write the rest, and hear nothing any more."""
        for signal, receiver in self._receivers.items():
            signal.disconnect(receiver)
        self._watch.stop()
        self._buffer.close()
        if getattr(self.celery_app, _TRACKER_ATTRIBUTE, None) is self:
            delattr(self.celery_app, _TRACKER_ATTRIBUTE)

    # For its signals ------------------------------------------------------------------------------------------------

    def open_job(self) -> UUID | None:
        """The job of the block that runs here."""
        return self._open_job.get()

    def begin_root(self, headers: Mapping[str, Any], body: object) -> UUID | None:
        """Record the job that this message begins; None when it begins none, or it could not be recorded."""
        kind = self.options.kinds.get(str(headers.get("task")))
        if kind is None:
            return None
        job_id = job_id_of(headers["id"])
        sightings = sightings_of_message(job_id, headers, body, is_root=True)
        request = Request(owner=self._owner(headers, body), title=sightings[0].name)
        params = {"task": sightings[0].name, "task_id": sightings[0].task_id}
        try:
            self._record_job(kind, job_id, sightings, params, request)
        except PenstockError as error:
            _log.error("a task is sent without a job: it could not be recorded", task=headers["id"], error=str(error))
            return None
        return job_id

    def is_root(self, sighting: TaskSighting) -> bool:
        """Is it the task by which its job is known, or another of its name that goes on with it?"""
        return job_id_of(sighting.task_id) == sighting.job_id or sighting.name in self.options.kinds

    def hear(self, *sightings: TaskSighting, at_once: bool = False) -> None:
        """Something was heard of tasks: it is written soon, or before anything else happens."""
        self._buffer.add(sightings, at_once=at_once)

    def keep_result(self, sighting: TaskSighting, result: object) -> str | None:
        """What a task returned, as JSON text; None where it cannot be kept."""
        try:
            return encode(result, max_bytes=self.app.settings.max_payload_bytes, at="result")
        except PenstockError as error:
            _log.warning("a task's result is not kept", task=sighting.task_id, name=sighting.name, error=str(error))
            return None

    def _owner(self, headers: Mapping[str, Any], body: object) -> str | None:
        if self.options.owner_of is None:
            return None
        args, kwargs = (body[0], body[1]) if isinstance(body, tuple) and len(body) > 1 else ((), {})
        return self.options.owner_of(str(headers.get("task")), args, kwargs)

    def _record_job(
        self, kind: str, job_id: UUID, sightings: Sequence[TaskSighting], params: JSON, request: Request
    ) -> None:
        with self.at_work() as app:
            max_bytes = app.settings.max_payload_bytes
            app.store.write(
                lambda transaction: record_tracked_job(
                    transaction, TrackingEngine.CELERY, kind, job_id, sightings, params, request, max_bytes=max_bytes
                )
            )

    def _write(self, sightings: Sequence[TaskSighting]) -> None:
        policy = self.options.failures
        with self.at_work() as app:
            app.store.write(lambda transaction: record_sightings(transaction, sightings, policy))


def _end_of(client: TaskSighting, status: TaskStatus, **fields: Any) -> TaskSighting:
    return TaskSighting(
        client.job_id, client.task_id, status, name=client.name, is_root=True, is_counted=False, **fields
    )


def process_name(hostname: str) -> str:
    """What a worker is called here: another one after each restart, for what it held before is lost."""
    name = f"{hostname}/{os.getpid()}"
    return name if len(name) <= bounds.LONGEST_WORKER else name[-bounds.LONGEST_WORKER :]
