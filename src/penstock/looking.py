"""Looking at what there is: the half of :class:`penstock.Penstock` that changes nothing."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from penstock.lifecycle.callers import SYSTEM, Caller
from penstock.lifecycle.job import HistoryEntry, Item, Job
from penstock.lifecycle.states import FINISHED, ItemStatus, JobState
from penstock.operations import read_items, read_jobs
from penstock.operations.ages import Ages, ages
from penstock.operations.outbox import Backlog, backlog
from penstock.operations.read_items import ErrorGroup, ItemCursor, ItemRow, TimeRange
from penstock.operations.samples import LaneSample, samples, thinned_samples
from penstock.operations.workers import WorkerSeen, count_deaths, subscribed_topics, workers
from penstock.store.engine import Store
from penstock.store.transaction import Transaction

_SAMPLED_WITHIN = timedelta(seconds=10)
"""A worker's last sample of a job comes a little after its end."""


class Looking(ABC):
    """What may be asked; a caller sees what they may see, and everything else as if it were not there."""

    @property
    @abstractmethod
    def store(self) -> Store:
        """The database."""

    def get(self, job_id: UUID, *, by: Caller = SYSTEM) -> Job:
        """One job as it stands now."""
        return self.store.read(lambda one: read_jobs.get_job(one, job_id, by), single_statement=True)

    def jobs(
        self,
        *,
        by: Caller = SYSTEM,
        states: Iterable[JobState] | None = None,
        kind: str | None = None,
        search: str | None = None,
        created_from: datetime | None = None,
        created_to: datetime | None = None,
        after: read_jobs.JobCursor | None = None,
        limit: int = 100,
        payloads: bool = False,
    ) -> list[Job]:
        """A page of jobs, newest first, ``after`` the last one of the page before; without params and results,
        which may be large, unless ``payloads`` are wanted.

        ``search`` is a text in the title, the kind, the owner or the error code, or how the id begins or ends; it looks
        through the next 20,000 jobs of the list, and :meth:`page_of_jobs` says where to go on.
        """
        wanted = read_jobs.JobFilter(
            states=None if states is None else tuple(states),
            kind=kind,
            search=search,
            created_from=created_from,
            created_to=created_to,
        )
        return self.store.read(
            lambda one: read_jobs.list_jobs(one, by, wanted, after=after, limit=limit, payloads=payloads),
            single_statement=True,
        )

    def page_of_jobs(
        self,
        wanted: read_jobs.JobFilter = read_jobs.ALL_JOBS,
        *,
        by: Caller = SYSTEM,
        after: read_jobs.JobCursor | None = None,
        limit: int = 100,
    ) -> read_jobs.JobPage:
        """A page of jobs, newest first, and where the list goes on.

        A search whose 20,000 jobs are used up before the page is full answers with a short page, or an empty one, and
        goes on behind the last job it has looked at: only a page without ``next`` is the last.
        """
        return self.store.read(
            lambda one: read_jobs.page_of_jobs(one, by, wanted, after=after, limit=limit),
            single_statement=wanted.text is None,
        )

    def history(
        self, job_id: UUID, *, by: Caller = SYSTEM, after: int = 0, limit: int | None = None
    ) -> list[HistoryEntry]:
        """Every change of a job's state: from where to where, by whom, why and when.

        All lines behind the one numbered ``after``; or the next ``limit`` of them, where fewer mean that it was the
        last page, and the last line's ``sequence`` is where the next one begins.
        """

        def question(transaction: Transaction) -> list[HistoryEntry]:
            read_jobs.get_job(transaction, job_id, by)
            return read_jobs.history(transaction, job_id, after=after, limit=limit)

        return self.store.read(question)

    def last_change_to(self, job_id: UUID, state: JobState, *, by: Caller = SYSTEM) -> HistoryEntry | None:
        """The last line of a job's history that leads to this state: when, by whom and why it came to be that."""

        def question(transaction: Transaction) -> HistoryEntry | None:
            read_jobs.get_job(transaction, job_id, by)
            return read_jobs.last_change_to(transaction, job_id, state)

        return self.store.read(question)

    def counts(self) -> dict[tuple[str, JobState], int]:
        """How many jobs there are of each kind in each state."""
        return self.store.read(read_jobs.count_by_state, single_statement=True)

    def marks(self, job_ids: Iterable[UUID]) -> dict[UUID, tuple[datetime, int]]:
        """For each of these jobs something that changes whenever the job does: one look for many who watch."""
        return self.store.read(lambda one: read_jobs.marks(one, job_ids), single_statement=True)

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
            read_jobs.get_job(transaction, job_id, by)
            return read_jobs.items(transaction, job_id, statuses=wanted, after=after, limit=limit)

        return self.store.read(question)

    def page_of_items(
        self,
        job_id: UUID,
        *,
        by: Caller = SYSTEM,
        statuses: Sequence[ItemStatus] | None = None,
        after: ItemCursor | None = None,
        between: TimeRange | None = None,
        limit: int = 100,
        descending: bool = False,
    ) -> list[ItemRow]:
        """A page of a job's grid: in the items' own order, or, of some ``statuses``, in that of their last change."""

        def question(transaction: Transaction) -> list[ItemRow]:
            read_jobs.get_job(transaction, job_id, by)
            if statuses is None and between is None:
                behind = None if after is None else after.position
                return read_items.page_in_order(transaction, job_id, behind=behind, limit=limit, descending=descending)
            return read_items.page_by_change(
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
        after: ItemCursor | None = None,
        between: TimeRange | None = None,
        limit: int = 100,
    ) -> list[ItemRow]:
        """A page of what waits in the jobs of ``user``, or of everybody."""
        return self.store.read(
            lambda one: read_items.pending_page(
                one, statuses=statuses, user=user, kind=kind, after=after, between=between, limit=limit
            )
        )

    def open_counts(self, *, user: str | None = None) -> dict[str, int]:
        """How many items wait or are in hand, by kind: in the jobs of ``user``, or of everybody."""
        return self.store.read(lambda one: read_items.open_counts(one, user=user), single_statement=True)

    def error_groups(self, job_id: UUID, *, by: Caller = SYSTEM) -> list[ErrorGroup]:
        """A job's failed items by error code, the most frequent first."""

        def question(transaction: Transaction) -> list[ErrorGroup]:
            read_jobs.get_job(transaction, job_id, by)
            return read_items.error_groups(transaction, job_id)

        return self.store.read(question)

    def lane_samples(
        self, *, since: datetime, until: datetime | None = None, kind: str | None = None
    ) -> list[LaneSample]:
        """What the workers' controllers chose since then, and what they saw, the oldest first."""
        return self.store.read(lambda one: samples(one, since=since, until=until, kind=kind), single_statement=True)

    def samples_of_job(self, job_id: UUID, *, by: Caller = SYSTEM, most: int = 300) -> list[LaneSample]:
        """What the controllers chose for a job's kind while it ran: at most so many samples, evenly over that time."""

        def question(transaction: Transaction) -> list[LaneSample]:
            job = read_jobs.get_job(transaction, job_id, by)
            over = job.completed_at or job.canceled_at
            until = None if over is None or not job.finished else over + _SAMPLED_WITHIN
            return thinned_samples(
                transaction, job.kind, since=job.started_at or job.created_at, until=until, most=most
            )

        return self.store.read(question)

    def workers(self) -> list[WorkerSeen]:
        """The workers that are there, and those that died within the last hour, by name."""
        return self.store.read(workers, single_statement=True)

    def worker_deaths(self) -> int:
        """How many workers died or stopped responding while they held items, since the database was made."""
        return self.store.read(count_deaths, single_statement=True)

    def ages(self) -> Ages:
        """How long the oldest waiting and the oldest running item of each kind are that, and which leases ran out."""

        def question(transaction: Transaction) -> Ages:
            return ages(transaction, read_items.open_counts(transaction, user=None))

        return self.store.read(question)

    def backlog(self) -> Backlog:
        """How many messages wait to be sent, and for how long; and how many of them nobody subscribes to."""
        return self.store.read(lambda one: backlog(one, subscribed_topics(one)))

    def stack_trace(self, job_id: UUID, *, by: Caller = SYSTEM) -> str | None:
        """Where in its code a job failed last, if it says so: in an item, or in its plan or finalize step."""

        def question(transaction: Transaction) -> str | None:
            read_jobs.get_job(transaction, job_id, by)
            return read_jobs.stack_trace(transaction, job_id)

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
