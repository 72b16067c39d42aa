"""Which job does what to a catalog: for each work one at a time, with those that go on where it stopped.

A job that is full hands what is left to another, under a unique key of its own: the first one's key is still in use
then. So the catalog remembers the last job of each work and its key. Whoever asks for that work is answered with that
job while it runs; and a job that is not the last one any more (somebody canceled it, and started another) keeps
nothing. All of it happens while the catalog's row is locked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar
from uuid import UUID

from penstock import SYSTEM, Caller, Job, JobContext, JobState, Kind, Penstock, Permanent
from penstock.errors import JobNotFound, TransitionRefused
from penstock.lifecycle import JSON, SubmitOutcome
from penstock.store import DatabaseConnection
from penstock_apps.catalogs.payloads import CatalogParams
from penstock_apps.catalogs.photo_repository import Guard
from penstock_apps.catalogs.repository import Catalog, CatalogJob, CatalogRepository

Params = TypeVar("Params", bound=CatalogParams)


class CatalogJobs:
    """The jobs that work on catalogs."""

    def __init__(self, app: Penstock, repository: CatalogRepository) -> None:
        self._app = app
        self._repository = repository

    def start(
        self,
        kind: Kind[Params, JSON, JSON],
        catalog_id: UUID,
        options: list[JSON],
        params_of: Callable[[Catalog], Params],
        *,
        by: Caller,
        idempotency_key: str | None,
        fingerprint: JSON,
        accept: Callable[[Job], None] = lambda _: None,
    ) -> Job:
        """The job that does this work on a catalog: the one that runs, or a new one.

        ``accept`` raises where that job is not what was asked for: then nothing has happened.
        """
        work, as_caller = work_of(kind.name, options), self._app.acting_as(by)

        def operation(connection: DatabaseConnection) -> Job:
            catalog = self._repository.lock(connection, catalog_id, by=by)
            last = self._repository.job(connection, catalog.id, work)
            unique_key = f"{catalog.id}{work.removeprefix(kind.name)}" if last is None else last.unique_key
            params = params_of(catalog)
            submission = as_caller.submit(
                kind,
                params,
                owner=catalog.user_id,
                unique_key=unique_key,
                idempotency_key=idempotency_key,
                # Of the params only what was asked for: bounds and folders are settings, which a deployment may change.
                fingerprint=[kind.name, str(catalog.id), fingerprint],
                title=catalog.name,
                connection=connection,
            )
            accept(submission.job)
            if submission.answer is SubmitOutcome.NEW:
                self._repository.set_job(connection, catalog.id, work, CatalogJob(submission.job.id, unique_key))
            return submission.job

        return self._app.in_transaction(operation)

    def begin(self, catalog_id: UUID, work: str, job_id: UUID) -> None:
        """A job is about to plan: where it was submitted by other means, it does the work from now on.

        While another one does it, it is refused.
        """
        unique_key = self._app.acting_as(SYSTEM).jobs.get(job_id).unique_key
        last = self._app.in_transaction(
            lambda connection: self._repository.job(connection, catalog_id, work), reads=True
        )
        if last is not None and last.job_id != job_id and not self._is_over(last.job_id):
            raise Permanent(f"job {last.job_id} does this to the catalog already", code="CATALOG_JOB_RUNS")

        def operation(connection: DatabaseConnection) -> None:
            self._require(connection, catalog_id)
            if self._repository.job(connection, catalog_id, work) != last:
                raise Permanent("another job has begun to do this to the catalog", code="CATALOG_JOB_RUNS")
            if last is None or last.job_id != job_id:
                key = unique_key or f"{catalog_id} {job_id}"
                self._repository.set_job(connection, catalog_id, work, CatalogJob(job_id, key))

        self._app.in_transaction(operation)

    def guard(self, catalog_id: UUID, work: str, job_id: UUID) -> Guard:
        """What refuses to let a job write when the catalog is gone, or another job has taken its place."""

        def require_current(connection: DatabaseConnection) -> None:
            self._require(connection, catalog_id)
            last = self._repository.job(connection, catalog_id, work)
            if last is not None and last.job_id != job_id and last.unique_key != _continuation_key(catalog_id, job_id):
                raise Permanent(f"job {last.job_id} does this to the catalog now", code="CATALOG_JOB_RUNS")

        return require_current

    def go_on(self, catalog_id: UUID, work: str, job: JobContext[Params, JSON], more: dict[str, JSON]) -> UUID:
        """Submit the job that does what this one has left; asked again, it is the same one."""
        as_system, guard = self._app.acting_as(SYSTEM), self.guard(catalog_id, work, job.id)
        this_job = as_system.jobs.get(job.id)
        if this_job.state is not JobState.RUNNING:
            raise Permanent(f"job {job.id} is {this_job.state.value}: it hands nothing on", code="CATALOG_JOB_RUNS")
        unique_key = _continuation_key(catalog_id, job.id)

        def operation(connection: DatabaseConnection) -> UUID:
            guard(connection)
            submission = as_system.submit(
                job.kind,
                {**job.params, **more, "continues": str(job.id)},
                owner=job.owner,
                unique_key=unique_key,
                idempotency_key=f"{job.id}:continuation",
                title=this_job.title,
                connection=connection,
            )
            self._repository.set_job(connection, catalog_id, work, CatalogJob(submission.job.id, unique_key))
            return submission.job.id

        return self._app.in_transaction(operation)

    def cancel_all(self, connection: DatabaseConnection, catalog_id: UUID, *, by: Caller, reason: str) -> None:
        """Stop whatever is done to a catalog."""
        jobs = self._app.acting_as(by).jobs
        for job_id in self._repository.jobs(connection, catalog_id):
            try:
                jobs.cancel(job_id, reason=reason, connection=connection)
            except (TransitionRefused, JobNotFound):
                continue  # it is over already

    def _require(self, connection: DatabaseConnection, catalog_id: UUID) -> None:
        try:
            self._repository.lock(connection, catalog_id, by=SYSTEM)
        except JobNotFound as error:
            raise Permanent(error.message, code=error.code) from None

    def _is_over(self, job_id: UUID) -> bool:
        try:
            return self._app.acting_as(SYSTEM).jobs.get(job_id).finished
        except JobNotFound:
            return True


def work_of(kind: str, options: list[JSON]) -> str:
    """What is done to a catalog, in a text: jobs that do different things run side by side.

    >>> work_of("thumbnails", [[128, 512], 80])
    'thumbnails 128,512 80'
    """
    texts = (",".join(map(str, option)) if isinstance(option, list) else str(option) for option in options)
    return " ".join([kind, *texts])


def _continuation_key(catalog_id: UUID, job_id: UUID) -> str:
    return f"{catalog_id} after {job_id}"
