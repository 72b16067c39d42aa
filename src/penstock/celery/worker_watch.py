"""A worker's watch over tracked jobs, in its main process: it says that it is there, stops what was canceled, and asks
about tasks of which nothing is heard.

Every process of a worker may be killed at any moment, with what it had heard and not written. So whoever is left asks:
the result backend for the end of a task, the worker itself for what it holds, and the heartbeats for who is gone.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING, Any
from uuid import UUID

import structlog
from celery import signals
from celery.result import result_from_tuple
from celery.worker import state as worker_state

from penstock.celery.task_sightings import JOB_HEADER, failure, is_trackable, lost, revocation
from penstock.lifecycle.states import KilledBy, TrackingEngine
from penstock.lifecycle.tracked_tasks import TaskSighting, TaskStatus
from penstock.operations import tracking
from penstock.operations.workers import appear, leave
from penstock.store.queries.tracked_tasks import QuietTask

if TYPE_CHECKING:
    from penstock.celery.tracking import Tracker

S = TaskStatus
_LOOK_SECONDS = 1.0
"""How often a worker looks for jobs that were canceled."""
_STOPPED_WITHIN = 86_400.0
_BATCH_SIZE = 500
_log = structlog.get_logger("penstock.celery")


class WorkerWatch:
    """One thread in the main process of a worker."""

    def __init__(self, tracker: Tracker) -> None:
        self._tracker = tracker
        self._hostname: str | None = None
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._stopped_jobs: set[UUID] = set()
        self.receivers = {
            signals.worker_init: self._on_init,
            signals.worker_ready: self._on_ready,
            signals.worker_shutdown: self._on_shutdown,
            signals.worker_process_shutdown: self._on_child_shutdown,
        }

    def _on_init(self, sender: Any = None, **_: Any) -> None:
        """Before the first message: a worker that starts later than a cancel was not told of it, and asks."""
        from penstock.celery.tracking import process_name

        if getattr(sender, "app", None) is not self._tracker.celery_app:
            return
        self._hostname = str(sender.hostname)
        self._tracker.worker_name = process_name(self._hostname)
        for job_id in self._look_for_stopped():
            revoked_stamps = worker_state.revoked_stamps.setdefault(JOB_HEADER, [])
            revoked_stamps.append(str(job_id))
        self._appear()

    def _on_ready(self, sender: Any = None, **_: Any) -> None:
        if self._hostname is None or getattr(sender, "app", None) is not self._tracker.celery_app:
            return
        self._stopping.clear()
        self._thread = threading.Thread(target=self._run, name="penstock-celery-watch", daemon=True)
        self._thread.start()

    def _on_child_shutdown(self, **_: Any) -> None:
        self._tracker.flush()

    def _on_shutdown(self, **_: Any) -> None:
        self.stop()
        name = self._tracker.worker_name
        self._tracker.flush()
        if name is not None:
            with self._tracker.at_work() as app:
                app.store.write(lambda transaction: leave(transaction, name))

    def stop(self) -> None:
        """End the thread."""
        self._stopping.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout=5.0)
            self._thread = None

    def _run(self) -> None:
        silent_after = self._tracker.options.silent_after
        next_heartbeat = next_look = monotonic()
        while not self._stopping.wait(min(_LOOK_SECONDS, silent_after / 3)):
            try:
                if monotonic() >= next_heartbeat:
                    self._appear()
                    next_heartbeat = monotonic() + silent_after / 3
                self._stop_canceled()
                if monotonic() >= next_look:
                    self.reconcile()
                    next_look = monotonic() + silent_after / 3
            except Exception as error:  # noqa: BLE001 - the next round tries again, whatever it was
                _log.warning("a worker could not look after tracked jobs; it tries again", error=str(error))

    def _appear(self) -> None:
        name = self._tracker.worker_name
        if name is not None:
            data = {"kinds": [], "held": {}, "topics": [], "engine": TrackingEngine.CELERY.value}
            with self._tracker.at_work() as app:
                app.store.write(lambda transaction: appear(transaction, name, data))

    # Cancel -----------------------------------------------------------------------------------------------------------

    def _look_for_stopped(self) -> list[UUID]:
        """Jobs that ended early while tasks of theirs are open, and that this worker has not heard of."""
        with self._tracker.at_work() as app:
            job_ids = app.store.read(
                lambda transaction: tracking.stopped_jobs(transaction, seconds=_STOPPED_WITHIN, limit=_BATCH_SIZE)
            )
        new = [job_id for job_id in job_ids if job_id not in self._stopped_jobs]
        self._stopped_jobs = set(job_ids)
        return new

    def _stop_canceled(self) -> None:
        """Each worker tells itself: what it runs of the job is ended, what it gets of it is thrown away."""
        new = self._look_for_stopped()
        if new:
            self._tracker.celery_app.control.revoke_by_stamped_headers(
                {JOB_HEADER: [str(job_id) for job_id in new]}, terminate=True, destination=[self._hostname]
            )

    # What nothing is heard of -------------------------------------------------------------------------------

    def reconcile(self) -> None:
        """Ask about tasks that have been quiet for a while, and say what becomes of jobs of which nothing is left."""
        tracker, options, quiet = self._tracker, self._tracker.options, self._tracker.options.silent_after / 3
        tracker.flush()
        new_sightings: list[TaskSighting] = []
        if tracker.worker_name is not None:
            held_ids = {request.id for request in list(worker_state.active_requests)}
            for task in self._take_quiet(quiet, worker=tracker.worker_name):
                new_sightings += [] if task.task_id in held_ids else self._ask(task, let_go=True)
        for task in self._take_quiet(quiet):
            new_sightings += self._ask(task)
        tracker.hear(*new_sightings)
        tracker.flush()
        with tracker.at_work() as app:
            overdue = app.store.read(
                lambda transaction: tracking.quiet_jobs(
                    transaction, TrackingEngine.CELERY, seconds=options.lost_after, limit=_BATCH_SIZE
                )
            )
        for job in overdue:
            self._settle_overdue(job.id)

    def _take_quiet(self, quiet: float, worker: str | None = None) -> list[QuietTask]:
        with self._tracker.at_work() as app:
            return app.store.write(
                lambda transaction: tracking.take_quiet_tasks(
                    transaction, seconds=quiet, limit=_BATCH_SIZE, worker=worker
                )
            )

    def _settle_overdue(self, job_id: UUID) -> None:
        policy = self._tracker.options.failures
        with self._tracker.at_work() as app:
            app.store.write(lambda transaction: tracking.settle_tracked(transaction, [job_id], policy, is_overdue=True))

    def _ask(self, task: QuietTask, *, let_go: bool = False) -> list[TaskSighting]:
        """What can be found out about a task; ``let_go``: its worker, which asks, does not run it any more."""
        options = self._tracker.options
        sighting = TaskSighting(
            task.job_id,
            task.task_id,
            S(task.status),
            version=task.version,
            name=task.name,
            is_awaited=task.is_awaited,
        )
        end_sightings = self._ask_backend(sighting)
        if task.status == S.EXPECTED:
            # Celery calls a callback failed that never ran: what it waits for says more.
            return end_sightings if any(sighting.status is S.SUCCEEDED for sighting in end_sightings) else []
        if end_sightings:
            return end_sightings
        is_overdue = task.quiet_seconds >= options.lost_after
        if task.status == S.PUBLISHING and is_overdue:
            text = f"it was never confirmed that {task.name} reached the broker"
            return [replace(sighting, status=S.FAILED, **lost(text, "TASK_NOT_SENT"))]
        if task.status != S.STARTED:
            return []
        if let_go and is_overdue:
            text = f"worker {task.worker} does not run {task.name} any more, and how it ended is not known"
            return [replace(sighting, status=S.FAILED, **lost(text, "WORKER_LOST", KilledBy.WORKER_CRASH))]
        silence = task.worker_silent_seconds
        is_silent = silence is None or silence >= options.silent_after
        if is_silent and task.worker is not None and (is_overdue or not task.acks_late):
            return [replace(sighting, status=S.FAILED, **self._silence(task))]
        return []

    def _silence(self, task: QuietTask) -> dict[str, Any]:
        worker = task.worker or "?"
        with self._tracker.at_work() as app:
            count = app.store.read(lambda transaction: tracking.count_in_hands(transaction, worker))
        since = "its last task began" if task.worker_seen_at is None else f"{task.worker_seen_at:%Y-%m-%d %H:%M:%S} UTC"
        hands = "1 task" if count == 1 else f"{count:,} tasks"
        return lost(
            f"worker {worker} is silent since {since}, with {hands} in its hands", "WORKER_LOST", KilledBy.WORKER_CRASH
        )

    def _ask_backend(self, sighting: TaskSighting) -> list[TaskSighting]:
        """The end that the result backend knows of, and the tasks that were sent meanwhile."""
        from celery.backends.base import DisabledBackend

        backend = self._tracker.celery_app.backend
        if isinstance(backend, DisabledBackend):
            return []
        meta: Mapping[str, Any] = backend.get_task_meta(sighting.task_id, cache=False)
        match meta.get("status"):
            case "SUCCESS":
                is_wanted = sighting.is_awaited or self._tracker.is_root(sighting)
                result = self._tracker.keep_result(sighting, meta.get("result")) if is_wanted else None
                return [*self._children(sighting, meta), replace(sighting, status=S.SUCCEEDED, result=result)]
            case "FAILURE":
                error = meta.get("result")
                text = f"{sighting.name} failed, by the result backend"
                fields = (
                    failure(sighting, error) if isinstance(error, BaseException) else lost(text, "PROCESSING_ERROR")
                )
                return [*self._children(sighting, meta), replace(sighting, status=S.FAILED, **fields)]
            case "REVOKED":
                return [replace(sighting, status=S.REVOKED, **revocation(sighting.name))]
        return []

    def _children(self, sighting: TaskSighting, meta: Mapping[str, Any]) -> list[TaskSighting]:
        """What it has sent, for a process that was killed has not written that either.

        A result with a parent is that of a callback, or of a further step: it was not sent by this task.
        """
        children: list[TaskSighting] = []
        app = self._tracker.celery_app
        waiting: list[tuple[Any, str | None]] = [
            (result_from_tuple(child, app=app), None) for child in meta.get("children") or ()
        ]
        while waiting and len(children) < _BATCH_SIZE:
            result, leads_to = waiting.pop()
            parent, members = getattr(result, "parent", None), getattr(result, "results", None)
            task_id = getattr(result, "id", None)
            if members:
                waiting += [(member, leads_to) for member in members]
            elif isinstance(task_id, str) and is_trackable(task_id):
                status = S.SENT if parent is None else S.EXPECTED
                children.append(TaskSighting(sighting.job_id, task_id, status, leads_to=leads_to))
                leads_to = task_id
            if parent is not None:
                waiting.append((parent, leads_to))
        return children
