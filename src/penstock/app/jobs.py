"""``app.jobs``: look at jobs, wait for them, and decide about them."""

from __future__ import annotations

import builtins
import threading
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Protocol
from uuid import UUID

from penstock.app.runtime import Runtime
from penstock.errors import TransitionRefused
from penstock.lifecycle.callers import Caller
from penstock.lifecycle.identifiers import Identifier, read_job_id
from penstock.lifecycle.job import HistoryEntry, Job
from penstock.lifecycle.policy import Duration
from penstock.lifecycle.quantities import seconds
from penstock.lifecycle.states import FINISHED, ItemStatus, JobState
from penstock.operations import control, read_jobs
from penstock.operations.read_jobs import ALL_JOBS, JobCursor, JobFilter, JobPage
from penstock.operations.reprocess import FAILED_ONES, reprocess
from penstock.operations.rerun import rerun
from penstock.operations.samples import LaneSample, thinned_samples
from penstock.operations.submit import submit_created
from penstock.store.callers_connection import CallersConnection
from penstock.store.transaction import Transaction

_SAMPLED_WITHIN = timedelta(seconds=10)
"""A worker's last sample of a job comes a little after its end."""


class WorksOnJob(Protocol):
    """Works on one job in this process, for so many seconds."""

    def __call__(self, job: Job, duration: float) -> None: ...


class Jobs:
    """The jobs that a caller sees; those of others are not found.

    Every change is one transaction, and refused to whoever may not make it. The history keeps who did it, and why.
    """

    def __init__(self, runtime: Runtime, caller: Caller, work_on: WorksOnJob) -> None:
        self._runtime = runtime
        self._caller = caller
        self._work_on = work_on

    # Looking ------------------------------------------------------------------------------------------------------

    def get(self, job_id: Identifier) -> Job:
        """One job as it stands now."""
        identifier, caller = read_job_id(job_id), self._caller
        question = partial(read_jobs.get_job, job_id=identifier, caller=caller)
        return read_jobs.look_at_job(self._runtime.store, identifier, caller, question)

    def list(
        self,
        *,
        states: Iterable[JobState] | None = None,
        kind: str | None = None,
        search: str | None = None,
        created_from: datetime | None = None,
        created_to: datetime | None = None,
        after: JobCursor | None = None,
        limit: int = 100,
        payloads: bool = False,
    ) -> builtins.list[Job]:
        """A page of jobs, newest first, ``after`` the last one of the page before; without params and results,
        which may be large, unless ``payloads`` are wanted.

        ``search`` is a text in the title, the kind, the owner or the error code, or how the id begins or ends; it looks
        through the next 20,000 jobs of the list, and :meth:`page` says where to go on.
        """
        job_filter = JobFilter(
            states=None if states is None else tuple(states),
            kind=kind,
            search=search,
            created_from=created_from,
            created_to=created_to,
        )
        return self._runtime.store.read(
            lambda transaction: read_jobs.list_jobs(
                transaction, self._caller, job_filter, after=after, limit=limit, payloads=payloads
            ),
            single_statement=True,
        )

    def page(self, job_filter: JobFilter = ALL_JOBS, *, after: JobCursor | None = None, limit: int = 100) -> JobPage:
        """A page of jobs, newest first, and where the list goes on.

        A search whose 20,000 jobs are used up before the page is full answers with a short page, or an empty one, and
        goes on behind the last job it has looked at: only a page without ``next`` is the last.
        """
        return self._runtime.store.read(
            lambda transaction: read_jobs.page_of_jobs(transaction, self._caller, job_filter, after=after, limit=limit),
            single_statement=not job_filter.is_search,
        )

    def history(self, job_id: Identifier, *, after: int = 0, limit: int | None = None) -> builtins.list[HistoryEntry]:
        """Every change of a job's state: from where to where, by whom, why and when.

        All lines behind the one numbered ``after``; or the next ``limit`` of them, where fewer mean that it was the
        last page, and the last line's ``sequence`` is where the next one begins.
        """

        def question(transaction: Transaction) -> builtins.list[HistoryEntry]:
            job = self._visible(transaction, job_id)
            return read_jobs.history(transaction, job.id, after=after, limit=limit)

        return self._runtime.store.read(question)

    def last_change_to(self, job_id: Identifier, state: JobState) -> HistoryEntry | None:
        """The last line of a job's history that leads to this state: when, by whom and why it came to be that."""

        def question(transaction: Transaction) -> HistoryEntry | None:
            return read_jobs.last_change_to(transaction, self._visible(transaction, job_id).id, state)

        return self._runtime.store.read(question)

    def stack_trace(self, job_id: Identifier) -> str | None:
        """Where in its code a job failed last, if it says so: in an item, or in its plan or finalize step."""

        def question(transaction: Transaction) -> str | None:
            return read_jobs.stack_trace(transaction, self._visible(transaction, job_id).id)

        return self._runtime.store.read(question)

    def samples(self, job_id: Identifier, *, limit: int = 300) -> builtins.list[LaneSample]:
        """What the controllers chose for a job's kind while it ran: at most so many samples, evenly over that time."""

        def question(transaction: Transaction) -> builtins.list[LaneSample]:
            job = self._visible(transaction, job_id)
            over = job.completed_at or job.canceled_at
            until = None if over is None or not job.finished else over + _SAMPLED_WITHIN
            return thinned_samples(
                transaction, job.kind, since=job.started_at or job.created_at, until=until, limit=limit
            )

        return self._runtime.store.read(question)

    def wait(self, job_id: Identifier, *, timeout: float = 60.0, every: float = 0.05) -> Job:
        """Wait until a job is finished; the answer is the job, finished or not when the time is up."""
        give_up = threading.Event()
        for _ in range(max(1, int(timeout / every))):
            job = self.get(job_id)
            if job.state in FINISHED:
                return job
            give_up.wait(every)
        return self.get(job_id)

    # Deciding -----------------------------------------------------------------------------------------------------

    def release(self, job_id: Identifier, *, connection: CallersConnection | None = None) -> Job:
        """Release a job that was only recorded (``hold=True``): workers may take it now."""

        def operation(transaction: Transaction) -> Job:
            job = self._visible(transaction, job_id)
            if not submit_created(transaction, self._runtime.kinds.get(job.kind), job.id, self._caller):
                job = self._visible(transaction, job.id)
                raise TransitionRefused(f"job {job.id} is {job.state.value}: it has been submitted already")
            return self._visible(transaction, job.id)

        return self._runtime.write(connection, operation)

    def pause(self, job_id: Identifier, *, reason: str | None = None) -> Job:
        """No new item starts; claimed ones finish."""
        identifier = read_job_id(job_id)
        return self._runtime.store.write(
            lambda transaction: control.pause(transaction, identifier, self._caller, reason)
        )

    def resume(self, job_id: Identifier, *, reason: str | None = None) -> Job:
        """Resume a paused job: its items are claimed again."""
        identifier = read_job_id(job_id)
        return self._runtime.store.write(
            lambda transaction: control.resume(transaction, identifier, self._caller, reason)
        )

    def cancel(
        self, job_id: Identifier, *, reason: str | None = None, connection: CallersConnection | None = None
    ) -> Job:
        """Stop a job for good; the history keeps who and why."""
        identifier = read_job_id(job_id)
        return self._runtime.write(
            connection, lambda transaction: control.cancel(transaction, identifier, self._caller, reason)
        )

    def commit(
        self, job_id: Identifier, *, reason: str | None = None, connection: CallersConnection | None = None
    ) -> Job:
        """The owner used the result; with ``connection`` in the same transaction as what it was used for."""
        identifier = read_job_id(job_id)
        return self._runtime.write(
            connection, lambda transaction: control.commit(transaction, identifier, self._caller, reason)
        )

    def abandon(self, job_id: Identifier, *, reason: str | None = None) -> Job:
        """The owner does not want the result."""
        identifier = read_job_id(job_id)
        return self._runtime.store.write(
            lambda transaction: control.abandon(transaction, identifier, self._caller, reason)
        )

    def reprocess(
        self,
        job_id: Identifier,
        *,
        statuses: Sequence[ItemStatus] = FAILED_ONES,
        item_ids: Sequence[int] | None = None,
        error_codes: Sequence[str | None] | None = None,
        reset_attempts: bool = True,
        permanent: bool = True,
        reason: str | None = None,
    ) -> Job:
        """Run items of a finished job again, in a new run; with ``error_codes`` only those that ended with one of them
        (None: without any).
        """

        def operation(transaction: Transaction) -> Job:
            job = self._visible(transaction, job_id)
            control.require_ours(job, "it has no items to run again; send its task again")
            return reprocess(
                transaction,
                self._runtime.kinds.get(job.kind),
                job.id,
                self._caller,
                statuses=statuses,
                item_ids=item_ids,
                error_codes=error_codes,
                reset_attempts=reset_attempts,
                permanent=permanent,
                reason=reason,
            )

        return self._runtime.store.write(operation)

    def rerun(self, job_id: Identifier) -> Job:
        """Submit the work of a job that is over again, as a new job: the same kind, owner, title, params and items.

        With a ``unique_key`` the answer may be another job that does this work already.
        """
        identifier, runtime = read_job_id(job_id), self._runtime
        return runtime.store.write(
            lambda transaction: rerun(
                transaction, runtime.kinds, identifier, self._caller, max_bytes=runtime.settings.max_payload_bytes
            )
        )

    def kickoff(self, job_id: Identifier, *, duration: Duration = 5.0) -> Job:
        """Work on one job for so long, in this process; the answer is the job as it stands then.

        Again and again, this brings a job to its end where no worker runs; beside workers it is one more. What is in
        hand when the time is over is handed back, and does not count as a try.
        """
        job = self.get(job_id)
        if job.state in (JobState.CREATED, JobState.PAUSED):
            first = "submit it" if job.state is JobState.CREATED else "resume it"
            raise TransitionRefused(f"job {job.id} is {job.state.value}: {first} before it is kicked off")
        if job.finished:
            return job
        control.require_ours(job, "it is not worked on here; start a worker of that engine")
        self._work_on(job, seconds(duration))
        return self.get(job.id)

    def _visible(self, transaction: Transaction, job_id: Identifier) -> Job:
        """A job that the caller may see."""
        identifier: UUID = read_job_id(job_id)
        return read_jobs.get_job(transaction, identifier, self._caller)
