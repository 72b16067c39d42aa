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
    from penstock.app import Penstock, parse_job_id
    from penstock.clock import Clock, DatabaseClock, ManualClock
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
        Postponed,
        Retryable,
        SchemaOutOfDate,
        Skip,
        Stopped,
        StoreRefused,
        StoreUnavailable,
        SwitchedOff,
        TimeLimitExceeded,
        TooManyRequests,
        TransitionRefused,
        WorkerCrashed,
    )
    from penstock.http.auth import Admin, Anyone, SignedIn, Submitting
    from penstock.http.errors import documented
    from penstock.http.forms import FormField, StartForm
    from penstock.http.pagination import read_cursor, written_cursor
    from penstock.http.responses import Json
    from penstock.http.tokens import Identity
    from penstock.ingest.archives import ArchiveLimits, look_at_archive, pictures
    from penstock.ingest.detection import Found, detect_type
    from penstock.ingest.limits import TableLimits
    from penstock.ingest.opening import look_at_table, open_table, table_limits
    from penstock.ingest.sources.addresses import source_of
    from penstock.ingest.sources.contract import Source, Waiting
    from penstock.ingest.tables import Row, Table, TableShape
    from penstock.lifecycle.callers import SYSTEM, Caller, admin, owner
    from penstock.lifecycle.celery_states import EFFECTIVE_STATUSES, effective_status
    from penstock.lifecycle.job import HistoryEntry, Item, Job, Progress, Submission, SubmitOutcome
    from penstock.lifecycle.kind import Kind
    from penstock.lifecycle.payloads import storable_text, storable_texts
    from penstock.lifecycle.planned import Planned
    from penstock.lifecycle.policy import Policy, RunsIn
    from penstock.lifecycle.quantities import seconds, size_in_bytes
    from penstock.lifecycle.retry import Backoff
    from penstock.lifecycle.states import Actor, ErrorType, ItemRole, ItemStatus, JobState, KilledBy, Phase
    from penstock.lifecycle.transitions import TRANSITIONS, Transition, actions
    from penstock.lifecycle.vocabularies import VOCABULARIES, Vocabulary
    from penstock.operations.files import StoredFile
    from penstock.operations.import_jobs import PastJob
    from penstock.operations.maintenance import MaintenanceReport
    from penstock.operations.outbox import Message
    from penstock.operations.read_items import ErrorGroup, ItemCursor, ItemRow, Summary, TimeRange
    from penstock.operations.read_jobs import JobCursor
    from penstock.operations.samples import LaneSample
    from penstock.server import create_app
    from penstock.settings import Settings, load_settings
    from penstock.store.placement import own_metadata
    from penstock.worker.context import ItemContext, JobContext
    from penstock.worker.control.provider_delay import ProviderDelay
    from penstock.worker.failures import Failure
    from penstock.worker.worker import Worker

_HOME = {
    "penstock.app": ("Penstock", "parse_job_id"),
    "penstock.clock": ("Clock", "DatabaseClock", "ManualClock"),
    "penstock.errors": (
        "ConfigurationError", "FileNotFound", "HandlerError", "InvalidInput", "JobNotFound", "Killed", "KindUnknown",
        "MemoryLimitExceeded", "NotAllowed", "NotFound", "NotSignedIn", "PayloadNotStorable", "PayloadTooLarge",
        "PenstockError", "Permanent", "Postponed", "Retryable", "SchemaOutOfDate", "Skip", "Stopped", "StoreRefused",
        "StoreUnavailable", "SwitchedOff", "TimeLimitExceeded", "TooManyRequests", "TransitionRefused", "WorkerCrashed",
    ),
    "penstock.server": ("create_app",),
    "penstock.http.pagination": ("read_cursor", "written_cursor"),
    "penstock.http.responses": ("Json",),
    "penstock.http.errors": ("documented",),
    "penstock.http.forms": ("FormField", "StartForm"),
    "penstock.http.tokens": ("Identity",),
    "penstock.http.auth": ("Admin", "Anyone", "SignedIn", "Submitting"),
    "penstock.lifecycle.callers": ("SYSTEM", "Caller", "admin", "owner"),
    "penstock.lifecycle.celery_states": ("EFFECTIVE_STATUSES", "effective_status"),
    "penstock.lifecycle.job": ("SubmitOutcome", "HistoryEntry", "Item", "Job", "Progress", "Submission"),
    "penstock.lifecycle.kind": ("Kind",),
    "penstock.lifecycle.policy": ("Policy", "RunsIn"),
    "penstock.lifecycle.quantities": ("seconds", "size_in_bytes"),
    "penstock.lifecycle.retry": ("Backoff",),
    "penstock.lifecycle.states": ("Actor", "ErrorType", "ItemRole", "ItemStatus", "JobState", "KilledBy", "Phase"),
    "penstock.lifecycle.transitions": ("TRANSITIONS", "Transition", "actions"),
    "penstock.lifecycle.vocabularies": ("VOCABULARIES", "Vocabulary"),
    "penstock.operations.import_jobs": ("PastJob",),
    "penstock.operations.files": ("StoredFile",),
    "penstock.operations.read_jobs": ("JobCursor",),
    "penstock.operations.outbox": ("Message",),
    "penstock.operations.maintenance": ("MaintenanceReport",),
    "penstock.lifecycle.payloads": ("storable_text", "storable_texts"),
    "penstock.lifecycle.planned": ("Planned",),
    "penstock.worker.control.provider_delay": ("ProviderDelay",),
    "penstock.worker.failures": ("Failure",),
    "penstock.operations.read_items": ("TimeRange", "ErrorGroup", "ItemRow", "ItemCursor", "Summary",),
    "penstock.operations.samples": ("LaneSample",),
    "penstock.ingest.archives": ("ArchiveLimits", "look_at_archive", "pictures",),
    "penstock.ingest.detection": ("Found", "detect_type",),
    "penstock.ingest.limits": ("TableLimits",),
    "penstock.ingest.opening": ("look_at_table", "open_table", "table_limits",),
    "penstock.ingest.sources.addresses": ("source_of",),
    "penstock.ingest.sources.contract": ("Source", "Waiting",),
    "penstock.ingest.tables": ("Row", "Table", "TableShape",),
    "penstock.settings": ("Settings", "load_settings"),
    "penstock.store.placement": ("own_metadata",),
    "penstock.worker.context": ("ItemContext", "JobContext"),
    "penstock.worker.worker": ("Worker",),
}  # fmt: skip
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "EFFECTIVE_STATUSES", "SYSTEM", "TRANSITIONS", "VOCABULARIES", "Actor", "Admin", "JobCursor", "SubmitOutcome",
    "Anyone",
    "ArchiveLimits", "Backoff", "TimeRange", "Caller", "Clock", "ConfigurationError", "DatabaseClock", "ErrorGroup",
    "ErrorType", "Failure", "FileNotFound", "FormField", "Found", "HandlerError", "ManualClock", "HistoryEntry",
    "Identity", "InvalidInput", "Item", "ItemRole", "ItemRow", "ItemStatus", "Job", "JobNotFound", "JobState", "Json",
    "Killed",
    "KilledBy", "Kind", "KindUnknown", "LaneSample", "MemoryLimitExceeded", "Message", "NotAllowed", "NotFound",
    "NotSignedIn", "PastJob", "PayloadNotStorable", "PayloadTooLarge", "Penstock", "PenstockError", "Permanent",
    "Phase", "ItemCursor", "Planned", "Policy", "Postponed", "Progress", "ProviderDelay", "Retryable", "Row", "RunsIn",
    "SchemaOutOfDate", "Settings", "SignedIn", "Skip", "Source", "StartForm", "Stopped", "StoreRefused",
    "StoreUnavailable", "StoredFile", "Submission", "Submitting", "Summary", "MaintenanceReport", "SwitchedOff",
    "Table",
    "TableLimits", "TableShape", "TimeLimitExceeded", "TooManyRequests", "Transition", "TransitionRefused",
    "Vocabulary", "Waiting", "ItemContext", "JobContext", "Worker", "WorkerCrashed", "actions", "admin", "create_app",
    "documented", "effective_status", "detect_type", "load_settings", "look_at_archive", "look_at_table", "open_table",
    "own_metadata", "owner", "parse_job_id", "pictures", "read_cursor", "seconds", "size_in_bytes", "source_of",
    "storable_text", "storable_texts", "table_limits", "written_cursor",
]  # fmt: skip


def __getattr__(name: str) -> object:
    try:
        module = _MODULE_OF[name]
    except KeyError:
        raise AttributeError(f"module 'penstock' has no attribute {name!r}") from None
    return getattr(importlib.import_module(module), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
