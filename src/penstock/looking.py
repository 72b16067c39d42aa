"""Looking at what there is: the half of :class:`penstock.Penstock` that changes nothing."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from datetime import datetime
from uuid import UUID

from penstock.lifecycle.callers import SYSTEM, Caller
from penstock.lifecycle.job import HistoryEntry, Item, Job
from penstock.lifecycle.states import FINISHED, ItemStatus, JobState
from penstock.operations import inspect, item_pages
from penstock.operations.item_pages import Between, ErrorGroup, ItemRow, Place
from penstock.operations.samples import LaneSample, samples
from penstock.store.engine import Store, Transaction


class Looking(ABC):
    """What may be asked; a caller sees what they may see, and everything else as if it were not there."""

    @property
    @abstractmethod
    def store(self) -> Store:
        """The database."""

    def get(self, job_id: UUID, *, by: Caller = SYSTEM) -> Job:
        """One job as it stands now."""
        return self.store.read(lambda one: inspect.get_job(one, job_id, by), at_once=True)

    def jobs(
        self,
        *,
        by: Caller = SYSTEM,
        states: Iterable[JobState] | None = None,
        kind: str | None = None,
        after: inspect.After | None = None,
        limit: int = 100,
        payloads: bool = False,
    ) -> list[Job]:
        """A page of jobs, newest first, ``after`` the last one of the page before; without params and results,
        which may be large, unless ``payloads`` are wanted.
        """
        wanted = None if states is None else list(states)
        return self.store.read(
            lambda one: inspect.list_jobs(
                one, by, states=wanted, kind=kind, after=after, limit=limit, payloads=payloads
            ),
            at_once=True,
        )

    def history(self, job_id: UUID, *, by: Caller = SYSTEM, after: int = 0) -> list[HistoryEntry]:
        """Every change of a job's state: from where to where, by whom, why and when."""

        def question(transaction: Transaction) -> list[HistoryEntry]:
            inspect.get_job(transaction, job_id, by)
            return inspect.history(transaction, job_id, after=after)

        return self.store.read(question)

    def counts(self) -> dict[tuple[str, JobState], int]:
        """How many jobs there are of each kind in each state."""
        return self.store.read(inspect.count_by_state, at_once=True)

    def marks(self, job_ids: Iterable[UUID]) -> dict[UUID, tuple[datetime, int]]:
        """For each of these jobs something that changes whenever the job does: one look for many who watch."""
        return self.store.read(lambda one: inspect.marks(one, job_ids), at_once=True)

    def items(
        self,
        job_id: UUID,
        *,
        by: Caller = SYSTEM,
        statuses: Iterable[ItemStatus] | None = None,
        after: int = 0,
        limit: int = 1000,
    ) -> list[Item]:
        """A page of a job's items, behind position ``after``."""
        wanted = None if statuses is None else list(statuses)

        def question(transaction: Transaction) -> list[Item]:
            inspect.get_job(transaction, job_id, by)
            return inspect.items(transaction, job_id, statuses=wanted, after=after, limit=limit)

        return self.store.read(question)

    def page_of_items(
        self,
        job_id: UUID,
        *,
        by: Caller = SYSTEM,
        statuses: Sequence[ItemStatus] | None = None,
        after: Place | None = None,
        between: Between | None = None,
        limit: int = 100,
        descending: bool = False,
    ) -> list[ItemRow]:
        """A page of a job's grid: in the items' own order, or, of some ``statuses``, in that of their last change."""

        def question(transaction: Transaction) -> list[ItemRow]:
            inspect.get_job(transaction, job_id, by)
            if statuses is None and between is None:
                behind = None if after is None else after.position
                return item_pages.page_in_order(transaction, job_id, behind=behind, limit=limit, descending=descending)
            return item_pages.page_by_change(
                transaction,
                job_id,
                statuses=list(ItemStatus) if statuses is None else statuses,
                after=after,
                between=between,
                limit=limit,
                descending=descending,
            )

        return self.store.read(question)

    def pending(
        self,
        *,
        user: str | None = None,
        statuses: Sequence[ItemStatus] = (ItemStatus.PENDING, ItemStatus.PROCESSING),
        kind: str | None = None,
        after: Place | None = None,
        between: Between | None = None,
        limit: int = 100,
    ) -> list[ItemRow]:
        """A page of what waits in the jobs of ``user``, or of everybody."""
        return self.store.read(
            lambda one: item_pages.pending_page(
                one, statuses=statuses, user=user, kind=kind, after=after, between=between, limit=limit
            )
        )

    def open_counts(self, *, user: str | None = None) -> dict[str, int]:
        """How many items wait or are in hand, by kind: in the jobs of ``user``, or of everybody."""
        return self.store.read(lambda one: item_pages.open_counts(one, user=user), at_once=True)

    def error_groups(self, job_id: UUID, *, by: Caller = SYSTEM) -> list[ErrorGroup]:
        """A job's failed items by error code, the most frequent first."""

        def question(transaction: Transaction) -> list[ErrorGroup]:
            inspect.get_job(transaction, job_id, by)
            return item_pages.error_groups(transaction, job_id)

        return self.store.read(question)

    def lane_samples(self, *, since: datetime, kind: str | None = None) -> list[LaneSample]:
        """What the workers' controllers chose since then, and what they saw, the oldest first."""
        return self.store.read(lambda one: samples(one, since=since, kind=kind), at_once=True)

    def stack_trace(self, job_id: UUID, *, by: Caller = SYSTEM) -> str | None:
        """Where in its code a job failed last, if it says so: in an item, or in its plan or finalize step."""

        def question(transaction: Transaction) -> str | None:
            inspect.get_job(transaction, job_id, by)
            return inspect.stack_trace(transaction, job_id)

        return self.store.read(question)

    def wait(self, job_id: UUID, *, by: Caller = SYSTEM, timeout: float = 60.0, every: float = 0.05) -> Job:
        """Wait until a job is finished; the answer is the job, finished or not when the time is up."""
        give_up = threading.Event()
        for _ in range(max(1, int(timeout / every))):
            job = self.get(job_id, by=by)
            if job.state in FINISHED:
                return job
            give_up.wait(every)
        return self.get(job_id, by=by)
