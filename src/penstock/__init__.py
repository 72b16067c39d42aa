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
    from penstock.http.application import create_app
    from penstock.http.cursors import read_cursor, written_cursor
    from penstock.http.json import Json
    from penstock.http.problems import documented
    from penstock.http.starting import FormField, StartForm
    from penstock.http.tokens import Identity
    from penstock.http.who import Admin, Anyone, SignedIn, Submitting
    from penstock.ingest.archives import ArchiveLimits, look_at_archive, pictures
    from penstock.ingest.detection import Found, found
    from penstock.ingest.limits import TableLimits
    from penstock.ingest.opening import look_at_table, open_table, table_limits
    from penstock.ingest.sources.addresses import source_of
    from penstock.ingest.sources.contract import Source, Waiting
    from penstock.ingest.tables import Row, Table, TableShape
    from penstock.lifecycle.callers import SYSTEM, Caller, admin, owner
    from penstock.lifecycle.celery_states import EFFECTIVE_STATUSES, effective_status
    from penstock.lifecycle.job import Answer, HistoryEntry, Item, Job, Progress, Submission
    from penstock.lifecycle.kind import Kind
    from penstock.lifecycle.payloads import storable_text, storable_texts
    from penstock.lifecycle.planned import Planned
    from penstock.lifecycle.policy import Policy, RunsIn
    from penstock.lifecycle.quantities import seconds, size_in_bytes
    from penstock.lifecycle.retry import Backoff
    from penstock.lifecycle.states import Actor, ErrorType, ItemRole, ItemStatus, JobState, KilledBy, Phase
    from penstock.lifecycle.transitions import TRANSITIONS, Transition, actions
    from penstock.lifecycle.vocabularies import VOCABULARIES, Vocabulary
    from penstock.operations.adopt import PastJob
    from penstock.operations.files import StoredFile
    from penstock.operations.inspect import After
    from penstock.operations.item_pages import Between, ErrorGroup, ItemRow, Place, Summary
    from penstock.operations.outbox import Message
    from penstock.operations.samples import LaneSample
    from penstock.operations.sweep import Swept
    from penstock.settings import Settings, load_settings
    from penstock.store.placement import own_metadata
    from penstock.worker.contexts import WorkItem, WorkJob
    from penstock.worker.control.provider_delay import ProviderDelay
    from penstock.worker.failures import Failure
    from penstock.worker.worker import Worker

_HOME = {
    "penstock.assembly": ("Penstock", "parse_job_id"),
    "penstock.clock": ("Clock", "DatabaseClock", "HeldClock"),
    "penstock.errors": (
        "ConfigurationError", "FileNotFound", "HandlerError", "InvalidInput", "JobNotFound", "Killed", "KindUnknown",
        "MemoryLimitExceeded", "NotAllowed", "NotFound", "NotSignedIn", "PayloadNotStorable", "PayloadTooLarge",
        "PenstockError", "Permanent", "Postponed", "Retryable", "SchemaOutOfDate", "Skip", "Stopped", "StoreRefused",
        "StoreUnavailable", "SwitchedOff", "TimeLimitExceeded", "TooManyRequests", "TransitionRefused", "WorkerCrashed",
    ),
    "penstock.http.application": ("create_app",),
    "penstock.http.cursors": ("read_cursor", "written_cursor"),
    "penstock.http.json": ("Json",),
    "penstock.http.problems": ("documented",),
    "penstock.http.starting": ("FormField", "StartForm"),
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
    "penstock.lifecycle.payloads": ("storable_text", "storable_texts"),
    "penstock.lifecycle.planned": ("Planned",),
    "penstock.worker.control.provider_delay": ("ProviderDelay",),
    "penstock.worker.failures": ("Failure",),
    "penstock.operations.item_pages": ("Between", "ErrorGroup", "ItemRow", "Place", "Summary",),
    "penstock.operations.samples": ("LaneSample",),
    "penstock.ingest.archives": ("ArchiveLimits", "look_at_archive", "pictures",),
    "penstock.ingest.detection": ("Found", "found",),
    "penstock.ingest.limits": ("TableLimits",),
    "penstock.ingest.opening": ("look_at_table", "open_table", "table_limits",),
    "penstock.ingest.sources.addresses": ("source_of",),
    "penstock.ingest.sources.contract": ("Source", "Waiting",),
    "penstock.ingest.tables": ("Row", "Table", "TableShape",),
    "penstock.settings": ("Settings", "load_settings"),
    "penstock.store.placement": ("own_metadata",),
    "penstock.worker.contexts": ("WorkItem", "WorkJob"),
    "penstock.worker.worker": ("Worker",),
}  # fmt: skip
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "EFFECTIVE_STATUSES", "SYSTEM", "TRANSITIONS", "VOCABULARIES", "Actor", "Admin", "After", "Answer", "Anyone",
    "ArchiveLimits", "Backoff", "Between", "Caller", "Clock", "ConfigurationError", "DatabaseClock", "ErrorGroup",
    "ErrorType", "Failure", "FileNotFound", "FormField", "Found", "HandlerError", "HeldClock", "HistoryEntry",
    "Identity", "InvalidInput", "Item", "ItemRole", "ItemRow", "ItemStatus", "Job", "JobNotFound", "JobState", "Json",
    "Killed",
    "KilledBy", "Kind", "KindUnknown", "LaneSample", "MemoryLimitExceeded", "Message", "NotAllowed", "NotFound",
    "NotSignedIn", "PastJob", "PayloadNotStorable", "PayloadTooLarge", "Penstock", "PenstockError", "Permanent",
    "Phase", "Place", "Planned", "Policy", "Postponed", "Progress", "ProviderDelay", "Retryable", "Row", "RunsIn",
    "SchemaOutOfDate", "Settings", "SignedIn", "Skip", "Source", "StartForm", "Stopped", "StoreRefused",
    "StoreUnavailable", "StoredFile", "Submission", "Submitting", "Summary", "Swept", "SwitchedOff", "Table",
    "TableLimits", "TableShape", "TimeLimitExceeded", "TooManyRequests", "Transition", "TransitionRefused",
    "Vocabulary", "Waiting", "WorkItem", "WorkJob", "Worker", "WorkerCrashed", "actions", "admin", "create_app",
    "documented", "effective_status", "found", "load_settings", "look_at_archive", "look_at_table", "open_table",
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
