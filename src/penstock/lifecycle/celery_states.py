"""The real status of a job whose coordinator is a Celery task: a table for those who stay with Celery.

A coordinator hands out its work and returns, and Celery calls that SUCCESS while the workers still run. What the task
returned tells more: ``{"status": "dispatched"}`` means that the work is on its way. Celery's state and that word
together are one of the five statuses people are shown. Nothing else of Penstock is needed to use this.
"""

from __future__ import annotations

from collections.abc import Mapping

QUEUED, RUNNING, COMPLETED, FAILED, KILLED = "queued", "running", "completed", "failed", "killed"

ANY = "*"
"""Whatever the task's result says."""

EFFECTIVE_STATUSES: Mapping[tuple[str, str], str] = {
    ("PENDING", ANY): QUEUED,
    ("STARTED", ANY): RUNNING,
    ("SUCCESS", "dispatched"): RUNNING,
    ("SUCCESS", "processing"): RUNNING,
    ("SUCCESS", "completed"): COMPLETED,
    ("SUCCESS", "completed_with_errors"): COMPLETED,
    ("SUCCESS", "requeued"): COMPLETED,
    ("SUCCESS", ANY): COMPLETED,
    ("FAILURE", ANY): FAILED,
    ("REVOKED", ANY): KILLED,
}
"""By Celery's state and the ``status`` in the task's result. A state that is not here is one of a task in progress."""


def effective_status(celery_state: str, result: object = None) -> str:
    """What people are shown: ``queued``, ``running``, ``completed``, ``failed`` or ``killed``.

    ``result`` is what the task returned, as Celery keeps it; only its ``status`` is looked at.

    >>> effective_status("SUCCESS", {"status": "dispatched", "total_items": 1000})
    'running'
    >>> effective_status("SUCCESS", {"status": "completed_with_errors"})
    'completed'
    >>> effective_status("RETRY")
    'running'
    """
    result_status = result.get("status") if isinstance(result, Mapping) else None
    for word in (result_status, ANY):
        status = EFFECTIVE_STATUSES.get((celery_state, word)) if isinstance(word, str) else None
        if status is not None:
            return status
    return RUNNING
