"""The object people use, :class:`penstock.Penstock`, and the small ones it is made of.

``penstock.py`` composes them; ``bound.py`` has what :meth:`Penstock.acting_as` gives; ``jobs.py``, ``items.py``,
``messages.py``, ``system.py`` and ``schedules.py`` are ``app.jobs`` to ``app.schedules``; ``child_processes.py`` is
where applications read files; ``runtime.py`` is what all share. ``app.files`` is a
:class:`penstock.operations.files.Files`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.app.bound import BoundApp
    from penstock.app.child_processes import ChildProcesses
    from penstock.app.items import Items
    from penstock.app.jobs import Jobs
    from penstock.app.messages import Messages
    from penstock.app.penstock import Penstock
    from penstock.app.schedules import Schedules
    from penstock.app.system import System
    from penstock.lifecycle.files import StoredFile
    from penstock.lifecycle.schedules import CatchUp, Schedule
    from penstock.lifecycle.transport import Message
    from penstock.operations.ages import Ages
    from penstock.operations.files import Files, ReceivedFile
    from penstock.operations.import_jobs import PastJob
    from penstock.operations.maintenance import MaintenanceReport
    from penstock.operations.outbox import Backlog
    from penstock.operations.read_items import ErrorGroup, ItemCursor, ItemRow, Summary, TimeRange
    from penstock.operations.read_jobs import JobCursor, JobFilter, JobPage
    from penstock.operations.request import SubmitOptions
    from penstock.operations.samples import LaneSample
    from penstock.operations.schedules import ScheduleStatus
    from penstock.operations.workers import WorkerSeen
    from penstock.runners.process_handle import Limits
else:
    from penstock.lazy import lazy_names

    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "penstock.app.bound": "BoundApp",
            "penstock.app.child_processes": "ChildProcesses",
            "penstock.app.items": "Items",
            "penstock.app.jobs": "Jobs",
            "penstock.app.messages": "Messages",
            "penstock.app.penstock": "Penstock",
            "penstock.app.schedules": "Schedules",
            "penstock.app.system": "System",
            "penstock.lifecycle.schedules": "CatchUp Schedule",
            "penstock.operations.ages": "Ages",
            "penstock.operations.files": "Files ReceivedFile",
            "penstock.lifecycle.files": "StoredFile",
            "penstock.operations.import_jobs": "PastJob",
            "penstock.operations.maintenance": "MaintenanceReport",
            "penstock.operations.outbox": "Backlog",
            "penstock.operations.read_items": "ErrorGroup ItemCursor ItemRow Summary TimeRange",
            "penstock.operations.read_jobs": "JobCursor JobFilter JobPage",
            "penstock.operations.request": "SubmitOptions",
            "penstock.operations.samples": "LaneSample",
            "penstock.lifecycle.transport": "Message",
            "penstock.operations.schedules": "ScheduleStatus",
            "penstock.operations.workers": "WorkerSeen",
            "penstock.runners.process_handle": "Limits",
        },
    )

__all__ = [
    "Ages", "Backlog", "BoundApp", "CatchUp", "ChildProcesses", "ErrorGroup", "Files", "ItemCursor", "ItemRow",
    "Items", "JobCursor", "JobFilter", "JobPage", "Jobs", "LaneSample", "Limits", "MaintenanceReport", "Message",
    "Messages", "PastJob", "Penstock", "ReceivedFile", "Schedule", "ScheduleStatus", "Schedules", "StoredFile",
    "SubmitOptions", "Summary", "System", "TimeRange", "WorkerSeen",
]  # fmt: skip
