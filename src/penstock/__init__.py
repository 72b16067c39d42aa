"""Penstock runs the jobs that people wait for: durable, stoppable, honest about their progress.

These are the names that most programs need. The others are public by module: ``penstock.errors``, ``penstock.app``
(what its objects give and take), ``penstock.lifecycle``, ``penstock.worker``, ``penstock.http``, ``penstock.ingest``,
``penstock.exports``, ``penstock.store``, ``penstock.application``, ``penstock.server``, ``penstock.samples``,
``penstock.settings``, ``penstock.clock``, ``penstock.celery`` and ``penstock.testing``. What none of them names may
change without notice.

>>> import penstock
>>> sorted(set(penstock.__all__) - set(dir(penstock)))
[]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.errors import NotFound, PenstockError, Permanent, Retryable, Skip
    from penstock.lifecycle.callers import SYSTEM, Caller, admin, owner
    from penstock.lifecycle.job import Item, Job, Submission
    from penstock.lifecycle.kind import Kind
    from penstock.lifecycle.planned_item import Planned
    from penstock.lifecycle.policy import Policy, RunsIn
    from penstock.lifecycle.retry import Backoff
    from penstock.lifecycle.states import ItemStatus, JobState
    from penstock.settings.all_settings import Settings, load_settings
    from penstock.worker.context import ItemContext, JobContext
    from penstock.worker.worker import Worker
else:
    from penstock.lazy import lazy_names

    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "penstock.app.penstock": "Penstock",
            "penstock.errors": "NotFound PenstockError Permanent Retryable Skip",
            "penstock.lifecycle.callers": "SYSTEM Caller admin owner",
            "penstock.lifecycle.job": "Item Job Submission",
            "penstock.lifecycle.kind": "Kind",
            "penstock.lifecycle.planned_item": "Planned",
            "penstock.lifecycle.policy": "Policy RunsIn",
            "penstock.lifecycle.retry": "Backoff",
            "penstock.lifecycle.states": "ItemStatus JobState",
            "penstock.settings.all_settings": "Settings load_settings",
            "penstock.worker.context": "ItemContext JobContext",
            "penstock.worker.worker": "Worker",
        },
    )

__all__ = [
    "Backoff", "Caller", "Item", "ItemContext", "ItemStatus", "Job", "JobContext", "JobState", "Kind",
    "NotFound", "Penstock", "PenstockError", "Permanent", "Planned", "Policy", "Retryable", "RunsIn",
    "SYSTEM", "Settings", "Skip", "Submission", "Worker", "admin", "load_settings", "owner",
]  # fmt: skip
