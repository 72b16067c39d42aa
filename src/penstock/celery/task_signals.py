"""Celery's signals, heard: each becomes what is known of a task, in the process in which it is sent.

In the pool's child: the beginning of a task, and its end by return or by exception. In the worker's main process: what
was revoked, what was lost with its process, what ran into a hard time limit. In whichever process publishes: the task
that is about to be sent, whose job is that of the task that sends it. Celery logs what a receiver raises, and goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import UUID

from celery import signals
from celery._state import get_current_task

from penstock.celery.canvas import ComingTask, coming_tasks
from penstock.celery.task_sightings import (
    AWAITED_HEADER,
    JOB_HEADER,
    failure,
    is_trackable,
    lost,
    read_job_header,
    revocation,
    sighting_of_request,
    sightings_of_message,
)
from penstock.lifecycle.tracked_tasks import TaskSighting, TaskStatus

if TYPE_CHECKING:
    from penstock.celery.tracking import Tracker

S = TaskStatus
_UNLOCK = "celery.chord_unlock"


class TaskSignals:
    """The receivers of one tracked Celery application."""

    def __init__(self, tracker: Tracker) -> None:
        self._tracker = tracker
        self._coming_ids: set[str] = set()
        """The tasks to come that were named last."""
        self.receivers = {
            signals.before_task_publish: self._on_publishing,
            signals.after_task_publish: self._on_sent,
            signals.task_prerun: self._on_started,
            signals.task_success: self._on_success,
            signals.task_failure: self._on_failure,
            signals.task_postrun: self._on_end,
            signals.task_revoked: self._on_revoked,
            signals.task_unknown: self._on_unknown,
            signals.task_rejected: self._on_unreadable,
        }

    # Whoever publishes ----------------------------------------------------------------------------------------------

    def _on_publishing(self, headers: Any = None, body: Any = None, **_: Any) -> None:
        if not isinstance(headers, dict) or not is_trackable(headers.get("id")):
            return
        current = self._current_task()
        job_id = self._tracker.open_job() or self._job_of(current)
        if job_id is None:
            job_id = self._tracker.begin_root(headers, body)
            if job_id is None:
                return
        else:
            is_awaited = _is_awaited(current, headers["id"])
            if is_awaited:
                headers[AWAITED_HEADER] = True
            sightings = sightings_of_message(job_id, headers, body, is_awaited=is_awaited)
            self._tracker.hear(*sightings, at_once=self._names_new(current, sightings))
        _mark(headers, job_id)

    def _names_new(self, current: Any, sightings: list[TaskSighting]) -> bool:
        """Does a message name tasks to come that nobody has heard of?

        They are written before it is sent, once for all parts of a chord: no result tells of them later, should this
        process be killed.
        """
        coming_ids = {sighting.task_id for sighting in sightings if sighting.status is S.EXPECTED}
        if current is not None:
            coming_ids -= {task.task_id for task in coming_after(current.request)}
        is_new = not coming_ids <= self._coming_ids
        if is_new:
            self._coming_ids = coming_ids
        return is_new

    def _on_sent(self, headers: Any = None, body: Any = None, **_: Any) -> None:
        job_id = read_job_header(headers) if isinstance(headers, Mapping) else None
        if job_id is not None:
            for sighting in sightings_of_message(job_id, headers, None)[:1]:
                self._tracker.hear(replace(sighting, status=S.SENT))

    def _current_task(self) -> Any:
        """The task that runs here, if it is one of ours."""
        task = get_current_task()
        return task if task is not None and self._is_ours(task) else None

    def _job_of(self, task: Any) -> UUID | None:
        return None if task is None else read_job_header(task.request)

    def _is_ours(self, task: Any) -> bool:
        return getattr(task, "app", None) is self._tracker.celery_app

    # Whoever runs it ------------------------------------------------------------------------------------------------

    def _sighting(self, task: Any, task_id: str, request: Any, status: TaskStatus) -> TaskSighting | None:
        job_id = read_job_header(request) if self._is_ours(task) and is_trackable(task_id) else None
        return None if job_id is None else sighting_of_request(job_id, task_id, task.name, request, status)

    def _on_started(self, sender: Any = None, task_id: str = "", **_: Any) -> None:
        sighting = self._sighting(sender, task_id, sender.request, S.STARTED)
        if sighting is not None:
            worker, acks_late = self._tracker.worker_name, bool(getattr(sender, "acks_late", False))
            self._tracker.hear(replace(sighting, worker=worker, acks_late=acks_late))

    def _on_success(self, sender: Any = None, result: Any = None, **_: Any) -> None:
        request = sender.request
        end_sighting = self._sighting(sender, request.id, request, S.SUCCEEDED)
        if end_sighting is None:
            return
        is_wanted = end_sighting.is_awaited or self._tracker.is_root(end_sighting)
        self._tracker.hear(
            replace(end_sighting, result=self._tracker.keep_result(end_sighting, result) if is_wanted else None)
        )

    def _on_failure(self, sender: Any = None, task_id: str = "", exception: Any = None, **_: Any) -> None:
        # In the main process, the request of a task that was lost is on the stack for this call.
        end_sighting = self._sighting(sender, task_id, sender.request, S.FAILED)
        if end_sighting is not None and isinstance(exception, BaseException):
            self._tracker.hear(replace(end_sighting, **failure(end_sighting, exception)))

    def _on_end(self, sender: Any = None, task_id: str = "", state: Any = None, retval: Any = None, **_: Any) -> None:
        """What ends without a signal of its own; SUCCESS is said here even when the result could not be stored."""
        if state == "IGNORED":
            end_sighting = self._sighting(sender, task_id, sender.request, S.IGNORED)
            if end_sighting is not None:
                self._tracker.hear(end_sighting)
        elif state == "REJECTED" and not getattr(retval, "requeue", False):
            end_sighting = self._sighting(sender, task_id, sender.request, S.FAILED)
            if end_sighting is not None and isinstance(retval, BaseException):
                self._tracker.hear(replace(end_sighting, **failure(end_sighting, retval)))

    # The worker's main process --------------------------------------------------------------------------------------

    def _on_revoked(self, sender: Any = None, request: Any = None, **details: Any) -> None:
        task_id = getattr(request, "id", None)
        end_sighting = None if task_id is None else self._sighting(sender, task_id, request, S.REVOKED)
        if end_sighting is None:
            return
        if details.get("expired"):
            text = f"task {end_sighting.name} expired before a worker could run it"
            self._tracker.hear(replace(end_sighting, status=S.FAILED, **lost(text, "TASK_EXPIRED")))
        else:
            self._tracker.hear(replace(end_sighting, **revocation(end_sighting.name)))

    def _on_unknown(self, message: Any = None, name: Any = None, **_: Any) -> None:
        self._end_unread(message, f"no such task is registered in the worker that got it: {name}", "TASK_UNKNOWN")

    def _on_unreadable(self, message: Any = None, exc: Any = None, **_: Any) -> None:
        self._end_unread(message, f"the worker could not read the task's message: {exc}", "TASK_REJECTED")

    def _end_unread(self, message: Any, text: str, code: str) -> None:
        headers = getattr(message, "headers", None)
        job_id = read_job_header(headers) if isinstance(headers, Mapping) else None
        if job_id is None or not isinstance(headers, Mapping) or not is_trackable(headers.get("id")):
            return
        [sighting, *_] = sightings_of_message(job_id, headers, None)
        self._tracker.hear(replace(sighting, status=S.FAILED, **lost(text, code)))


def _is_awaited(current: Any, task_id: str) -> bool:
    """Does the task that runs here send what was expected after it?"""
    if current is None:
        return False
    return current.name == _UNLOCK or any(task.task_id == task_id for task in coming_after(current.request))


def coming_after(request: Any) -> list[ComingTask]:
    """What the message of a task that runs has said of the tasks after it."""
    return coming_tasks(((), {}, {"chain": request.get("chain"), "chord": request.get("chord")}))


def _mark(headers: dict[str, Any], job_id: UUID) -> None:
    """Say in the message of which job it is: for who inherits it, and for who revokes by it."""
    text = str(job_id)
    headers[JOB_HEADER] = text
    stamps = headers.get("stamps")
    stamp_names = headers.get("stamped_headers")
    headers["stamps"] = {**(stamps if isinstance(stamps, dict) else {}), JOB_HEADER: [text]}
    headers["stamped_headers"] = [*dict.fromkeys([*(stamp_names if isinstance(stamp_names, list) else []), JOB_HEADER])]
