"""The task that works off a ticket, in a process of a Celery pool.

Celery promises nothing here that we need: the message is acknowledged when the task begins, the task is never tried
again, nobody keeps its result. Its limits are the kind's, not Celery's, so Celery's are out of the way: a ticket may
hold a plan that takes an hour.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Sequence
from typing import Any

import structlog
from celery import Task

from penstock.app.penstock import Penstock
from penstock.celery.ticket import holder_of, read_ticket
from penstock.errors import PenstockError
from penstock.worker.slice_worker import SliceWorker

_NO_LIMIT = 365 * 24 * 3600
"""Celery takes none for the one of its settings."""
_log = structlog.get_logger("penstock.celery")


class TicketFailed(PenstockError):
    """A ticket could not be worked off, for want of memory: as a ``MemoryError`` it would end Celery's main process."""

    code = "TICKET_FAILED"


class TicketTask(Task):  # type: ignore[misc]
    """Works off tickets of one app."""

    Request = "penstock.celery.lost_child:TicketRequest"
    abstract = False
    acks_late = False
    ignore_result = True
    max_retries = 0
    serializer = "json"
    soft_time_limit = _NO_LIMIT
    store_errors_even_if_ignored = False
    time_limit = _NO_LIMIT
    track_started = False
    typing = False  # what a stranger sends is read, and refused, by us

    def __init__(self, app: Penstock, kinds: Sequence[str], name: str) -> None:
        self.name = name
        self._penstock = app
        self._kinds = tuple(kinds)
        self._made_in = os.getpid()
        self._lock = threading.Lock()
        self._slice_workers: dict[int, SliceWorker] = {}

    def run(self, *arguments: object, **keywords: object) -> int:
        """Work off one ticket; the answer is how many items there were."""
        request: Any = self.request
        ticket = read_ticket(arguments, keywords, self._kinds)
        try:
            worker = self._slice_worker()
            holder = holder_of(str(request.id), str(request.hostname))
            items = worker.work_off(ticket.kind, holder=holder, items=ticket.size)
        except MemoryError as error:
            raise TicketFailed(f"there was no memory to work off the ticket: {error}") from None
        if self._is_in_child and worker.is_idle() and worker.has_hung_threads():
            _log.warning("handlers that were given up still run; their process ends, and Celery starts another")
            os.kill(os.getpid(), signal.SIGTERM)
        return items

    def take_back(self, task_id: str, node: str) -> None:
        """A child died over this ticket: what it held goes back in line."""
        holder = holder_of(task_id, node)
        items = self._penstock.take_back(holder)
        _log.warning("a child of the pool died over a ticket", holder=holder, items_taken_back=items)

    @property
    def _is_in_child(self) -> bool:
        """Was this process forked for the pool? One that was not does other things too."""
        return os.getpid() != self._made_in

    def _slice_worker(self) -> SliceWorker:
        """What this process works with; a forked one opens its own database."""
        with self._lock:
            worker = self._slice_workers.get(os.getpid())
            if worker is None:
                worker = self._slice_workers[os.getpid()] = self._penstock.slice_worker()
            return worker
