"""What Celery's signals say of a task, as values. Nothing here knows a database."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from uuid import UUID, uuid5

from penstock.celery.canvas import coming_tasks
from penstock.lifecycle import bounds
from penstock.lifecycle.error_text import class_name, describe_error, text_of
from penstock.lifecycle.known_errors import known_code
from penstock.lifecycle.payloads import storable_text
from penstock.lifecycle.states import KilledBy
from penstock.lifecycle.tracked_tasks import TaskSighting, TaskStatus, version_of

JOB_HEADER = "penstock_job"
"""The header, and the stamp, that say of which job a task is."""
AWAITED_HEADER = "penstock_awaited"
"""The header of a task that was expected: what it returns may be what comes of the job."""
_NAMESPACE = UUID("6f1c1f0e-6c0f-4b3b-9a53-5d1a0d1f7c52")
_SIGNAL = re.compile(r"signal (\d+)")
S = TaskStatus


def job_id_of(task_id: str) -> UUID:
    """The id of the job whose root is this task: the same, where that is a UUID, as Celery's own ids are."""
    try:
        return UUID(task_id)
    except ValueError:
        return uuid5(_NAMESPACE, task_id)


def read_job_header(request: Any) -> UUID | None:
    """Of which job a task is, by its request or by the headers of its message."""
    value = request.get(JOB_HEADER) if request is not None else None
    try:
        return UUID(value) if isinstance(value, str) else None
    except ValueError:
        return None


def is_trackable(task_id: object) -> bool:
    """Can a task of this id be recorded?"""
    return isinstance(task_id, str) and 0 < len(task_id) <= bounds.TASK_ID.longest and storable_text(task_id) == task_id


def sightings_of_message(
    job_id: UUID, headers: Mapping[str, Any], body: object, *, is_root: bool = False, is_awaited: bool = False
) -> list[TaskSighting]:
    """What is about to be sent, and what is to come after it."""
    coming = [task for task in coming_tasks(body) if is_trackable(task.task_id)]
    name = _name(headers.get("task"))
    message_sighting = TaskSighting(
        job_id,
        headers["id"],
        S.PUBLISHING,
        version=message_version(headers),
        name=name,
        leads_to=coming[0].task_id if coming else None,
        is_root=is_root,
        is_awaited=is_awaited,
        is_counted=not is_helper(name),
    )
    return [message_sighting, *(_expected(job_id, task) for task in coming)]


def _expected(job_id: UUID, task: Any) -> TaskSighting:
    return TaskSighting(
        job_id,
        task.task_id,
        S.EXPECTED,
        version=task.version,
        name=_name(task.name),
        leads_to=task.leads_to if is_trackable(task.leads_to) else None,
        is_counted=not is_helper(task.name),
    )


def is_helper(name: str | None) -> bool:
    """Is it a task by which Celery helps itself, like the one that waits for the parts of a chord?"""
    return name is not None and name.startswith("celery.")


def message_version(headers: Mapping[str, Any]) -> int:
    """Which use of its id a message is."""
    return version_of(_count(headers.get("replaced_task_nesting")), _count(headers.get("retries")))


def request_version(request: Any) -> int:
    """The same of a task that runs."""
    return version_of(_count(request.get("replaced_task_nesting")), _count(request.get("retries")))


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0


def _name(name: object) -> str | None:
    return storable_text(name)[: bounds.LONGEST_TASK_NAME] if isinstance(name, str) else None


def sighting_of_request(job_id: UUID, task_id: str, name: str, request: Any, status: TaskStatus) -> TaskSighting:
    """What is heard of a task that a worker has."""
    kept_name = _name(name)
    return TaskSighting(
        job_id,
        task_id,
        status,
        version=request_version(request),
        name=kept_name,
        is_awaited=bool(request.get(AWAITED_HEADER)),
        is_counted=not is_helper(kept_name),
    )


def failure(sighting: TaskSighting, error: BaseException) -> dict[str, Any]:
    """How a task failed: what a sighting of its end says."""
    kind = class_name(error)
    text, code, killed_by = describe_error(error), known_code(error) or "PROCESSING_ERROR", None
    if kind == "WorkerLostError":
        text, code, killed_by = worker_lost_text(sighting.name, text_of(error)), "WORKER_LOST", KilledBy.WORKER_CRASH
    elif kind in ("TimeLimitExceeded", "SoftTimeLimitExceeded"):
        text = f"task {sighting.name} ran longer than it may: {text}"
        code, killed_by = "WORKER_TIMEOUT", KilledBy.TIMEOUT
    elif kind == "Reject":
        text, code = f"task {sighting.name} rejected its message: {text_of(error)}", "TASK_REJECTED"
    return _ending(text, code, kind, killed_by)


def worker_lost_text(name: str | None, text: str) -> str:
    """What can be known of a process that ended: by which signal, and of signal 9 no more than a guess why."""
    signal_match = _SIGNAL.search(text)
    if signal_match is None:
        return f"the process that ran task {name} ended: {text}"
    guess = ", perhaps for memory" if signal_match[1] == "9" else ""
    return f"the process that ran task {name} was killed by signal {signal_match[1]}{guess}"


def revocation(name: str | None) -> dict[str, Any]:
    """How a task ended that somebody revoked."""
    return _ending(f"task {name} was revoked from outside: by whom is unknown", "TASK_REVOKED", None, KilledBy.SYSTEM)


def lost(text: str, code: str, killed_by: KilledBy | None = None) -> dict[str, Any]:
    """How a task ended that is lost, as far as anybody can see."""
    return _ending(text, code, None, killed_by)


def _ending(text: str, code: str, kind: str | None, killed_by: KilledBy | None) -> dict[str, Any]:
    return {
        "error": storable_text(text)[: bounds.LONGEST_MESSAGE],
        "error_code": storable_text(code)[: bounds.LONGEST_CODE],
        "error_class": None if kind is None else storable_text(kind)[: bounds.LONGEST_CLASS],
        "killed_by": killed_by,
    }
