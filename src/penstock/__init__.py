"""Penstock runs the jobs that people wait for: durable, stoppable, honest about their progress.

>>> import penstock
>>> sorted(set(penstock.__all__) - set(dir(penstock)))
[]

Names are loaded when they are first used, so that a child process that only needs an error class does not pay for a
database.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.assembly import Penstock, parse_job_id
    from penstock.clock import Clock, DatabaseClock, HeldClock
    from penstock.errors import (
        ConfigurationError,
        FileNotFound,
        HandlerError,
        InvalidInput,
        JobNotFound,
        Killed,
        KindUnknown,
        MemoryLimitExceeded,
        NotAllowed,
        NotFound,
        NotSignedIn,
        PayloadNotStorable,
        PayloadTooLarge,
        PenstockError,
        Permanent,
        Retryable,
        SchemaOutOfDate,
        Skip,
        Stopped,
        StoreRefused,
        StoreUnavailable,
        TimeLimitExceeded,
        TooManyRequests,
        TransitionRefused,
        WorkerCrashed,
    )
    from penstock.http.application import create_app
    from penstock.http.cursors import read_cursor, written_cursor
    from penstock.http.json import Json
    from penstock.http.problems import documented
    from penstock.http.tokens import Identity
    from penstock.http.who import Admin, Anyone, SignedIn, Submitting
    from penstock.lifecycle.callers import SYSTEM, Caller, admin, owner
    from penstock.lifecycle.celery_states import EFFECTIVE_STATUSES, effective_status
    from penstock.lifecycle.job import Answer, HistoryEntry, Item, Job, Progress, Submission
    from penstock.lifecycle.kind import Kind
    from penstock.lifecycle.policy import Policy, RunsIn
    from penstock.lifecycle.quantities import seconds, size_in_bytes
    from penstock.lifecycle.retry import Backoff
    from penstock.lifecycle.states import Actor, ErrorType, ItemRole, ItemStatus, JobState, KilledBy, Phase
    from penstock.lifecycle.transitions import TRANSITIONS, Transition, actions
    from penstock.lifecycle.vocabularies import VOCABULARIES, Vocabulary
    from penstock.operations.adopt import PastJob
    from penstock.operations.files import StoredFile
    from penstock.operations.inspect import After
    from penstock.operations.outbox import Message
    from penstock.operations.sweep import Swept
    from penstock.settings import Settings, load_settings
    from penstock.worker.contexts import WorkItem, WorkJob
    from penstock.worker.worker import Worker

_HOME = {
    "penstock.assembly": ("Penstock", "parse_job_id"),
    "penstock.clock": ("Clock", "DatabaseClock", "HeldClock"),
    "penstock.errors": (
        "ConfigurationError", "FileNotFound", "HandlerError", "InvalidInput", "JobNotFound", "Killed", "KindUnknown",
        "MemoryLimitExceeded", "NotAllowed", "NotFound", "NotSignedIn", "PayloadNotStorable", "PayloadTooLarge",
        "PenstockError", "Permanent", "Retryable", "SchemaOutOfDate", "Skip", "Stopped", "StoreRefused",
        "StoreUnavailable", "TimeLimitExceeded", "TooManyRequests", "TransitionRefused", "WorkerCrashed",
    ),
    "penstock.http.application": ("create_app",),
    "penstock.http.cursors": ("read_cursor", "written_cursor"),
    "penstock.http.json": ("Json",),
    "penstock.http.problems": ("documented",),
    "penstock.http.tokens": ("Identity",),
    "penstock.http.who": ("Admin", "Anyone", "SignedIn", "Submitting"),
    "penstock.lifecycle.callers": ("SYSTEM", "Caller", "admin", "owner"),
    "penstock.lifecycle.celery_states": ("EFFECTIVE_STATUSES", "effective_status"),
    "penstock.lifecycle.job": ("Answer", "HistoryEntry", "Item", "Job", "Progress", "Submission"),
    "penstock.lifecycle.kind": ("Kind",),
    "penstock.lifecycle.policy": ("Policy", "RunsIn"),
    "penstock.lifecycle.quantities": ("seconds", "size_in_bytes"),
    "penstock.lifecycle.retry": ("Backoff",),
    "penstock.lifecycle.states": ("Actor", "ErrorType", "ItemRole", "ItemStatus", "JobState", "KilledBy", "Phase"),
    "penstock.lifecycle.transitions": ("TRANSITIONS", "Transition", "actions"),
    "penstock.lifecycle.vocabularies": ("VOCABULARIES", "Vocabulary"),
    "penstock.operations.adopt": ("PastJob",),
    "penstock.operations.files": ("StoredFile",),
    "penstock.operations.inspect": ("After",),
    "penstock.operations.outbox": ("Message",),
    "penstock.operations.sweep": ("Swept",),
    "penstock.settings": ("Settings", "load_settings"),
    "penstock.worker.contexts": ("WorkItem", "WorkJob"),
    "penstock.worker.worker": ("Worker",),
}  # fmt: skip
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "EFFECTIVE_STATUSES", "SYSTEM", "TRANSITIONS", "VOCABULARIES", "Actor", "Admin", "After", "Answer", "Anyone",
    "Backoff", "Caller", "Clock", "ConfigurationError", "DatabaseClock", "ErrorType", "FileNotFound",
    "HandlerError", "HeldClock", "HistoryEntry", "Identity", "InvalidInput", "Item", "ItemRole", "ItemStatus",
    "Job", "JobNotFound", "JobState", "Json", "Killed", "KilledBy", "Kind", "KindUnknown", "MemoryLimitExceeded",
    "Message", "NotAllowed", "NotFound", "NotSignedIn", "PastJob", "PayloadNotStorable", "PayloadTooLarge",
    "Penstock", "PenstockError", "Permanent", "Phase", "Policy", "Progress", "Retryable", "RunsIn",
    "SchemaOutOfDate", "Settings", "SignedIn", "Skip", "Stopped", "StoreRefused", "StoreUnavailable", "StoredFile",
    "Submission", "Submitting", "Swept", "TimeLimitExceeded", "TooManyRequests", "Transition", "TransitionRefused",
    "Vocabulary", "WorkItem", "WorkJob", "Worker", "WorkerCrashed", "actions", "admin", "create_app", "documented",
    "effective_status", "load_settings", "owner", "parse_job_id", "read_cursor", "seconds", "size_in_bytes",
    "written_cursor",
]  # fmt: skip


def __getattr__(name: str) -> object:
    try:
        module = _MODULE_OF[name]
    except KeyError:
        raise AttributeError(f"module 'penstock' has no attribute {name!r}") from None
    return getattr(importlib.import_module(module), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
