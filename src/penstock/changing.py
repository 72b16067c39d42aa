"""Changing what there is: the half of :class:`penstock.Penstock` that submits jobs and decides about them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, TypeVar
from uuid import UUID

from penstock.errors import TransitionRefused
from penstock.lifecycle import grid
from penstock.lifecycle.callers import SYSTEM, Caller
from penstock.lifecycle.job import Job, Submission
from penstock.lifecycle.kind import Kinds
from penstock.lifecycle.payloads import JSON
from penstock.lifecycle.policy import Duration
from penstock.lifecycle.quantities import seconds
from penstock.lifecycle.states import ItemStatus
from penstock.looking import Looking
from penstock.operations import control, read_jobs
from penstock.operations.export import export_rows
from penstock.operations.files import StoredFile
from penstock.operations.idempotency import Key, take_key
from penstock.operations.import_jobs import PastJob, import_job
from penstock.operations.reprocess import FAILED_ONES, reprocess
from penstock.operations.request import Request
from penstock.operations.submit import is_one_statement, submit, submit_created
from penstock.operations.submit_many import submit_many
from penstock.settings import Settings
from penstock.store.engine import CallersConnection
from penstock.store.transaction import Transaction

Answer = TypeVar("Answer")
_ADOPTED_AT_ONCE = 500


class Changing(Looking):
    """What may be done to jobs; each is one transaction, and refused to whoever may not."""

    kinds: Kinds

    @property
    @abstractmethod
    def settings(self) -> Settings:
        """The settings."""

    # Submitting ---------------------------------------------------------------------------------------------------

    def submit(
        self,
        kind: str,
        params: JSON = None,
        *,
        items: Iterable[JSON] | None = None,
        owner: str | None = None,
        by: Caller | None = None,
        unique_key: str | None = None,
        fresh_for: Duration | None = None,
        idempotency_key: str | None = None,
        fingerprint: JSON = None,
        priority: int | None = None,
        file: StoredFile | None = None,
        ip_address: str | None = None,
        hold: bool = False,
        job_id: UUID | None = None,
        title: str | None = None,
        connection: CallersConnection | None = None,
    ) -> Submission:
        """Record a job and let it flow; the answer has the job, and says whether it is new.

        ``items`` gives the job its items right away. With a ``unique_key``, one job does the work for everybody who
        asks for it at the same time, and with ``fresh_for`` a result not older than that is the answer. The same
        request again, with the same ``idempotency_key`` and owner (of guests, the same ``ip_address``), gives the same
        job, and another request with that key is refused; ``fingerprint`` says what the client asked for where the
        params hold more than that. ``hold`` only records the job, until :meth:`release`. ``job_id`` is for a job that
        has a name already; one that is taken is refused. ``title`` is what people know it by, like the name of a file.
        With ``connection`` all happens inside the caller's own SQLAlchemy transaction.
        """
        request = Request(
            owner=owner,
            caller=by or SYSTEM,
            unique_key=unique_key,
            fresh_for=None if fresh_for is None else seconds(fresh_for),
            idempotency_key=idempotency_key,
            fingerprint=fingerprint,
            priority=priority,
            file_id=None if file is None else file.id,
            file_sha256=None if file is None else file.sha256,
            ip_address=ip_address,
            hold=hold,
            id=job_id,
            title=title,
        )
        known, most = self.kinds.get(kind), self.settings.max_payload_bytes
        given = None if items is None else list(items)

        def operation(transaction: Transaction) -> Submission:
            return submit(transaction, known, params, request, items=given, most=most)

        if connection is None and given is None and is_one_statement(known, request):
            return self.store.write(operation, single_statement=True)
        return self._write(connection, operation)

    def submit_many(
        self,
        kind: str,
        params: Iterable[JSON],
        *,
        owner: str | None = None,
        by: Caller | None = None,
        priority: int | None = None,
        connection: CallersConnection | None = None,
    ) -> list[UUID]:
        """Record one job for each of ``params``, in one transaction; the answer is their ids, in order."""
        request = Request(owner=owner, caller=by or SYSTEM, priority=priority)
        known, most = self.kinds.get(kind), self.settings.max_payload_bytes
        # The transaction may have to be run again, and a generator yields once.
        given = params if isinstance(params, Sequence) else list(params)
        return self._write(connection, lambda one: submit_many(one, known, given, request, most=most))

    def take_key(
        self,
        idempotency_key: str,
        fingerprint: JSON,
        *,
        owner: str | None = None,
        ip_address: str | None = None,
        resource_id: UUID | None = None,
        connection: CallersConnection | None = None,
    ) -> UUID | None:
        """Take an idempotency key for a request before it is carried out; the answer is what it has led to so far.

        That is a job, or the ``resource_id`` with which it was taken: something an application keeps itself, recorded
        in the same transaction (``connection``). A key that was used for another request is refused.
        """
        Request(owner=owner, idempotency_key=idempotency_key, ip_address=ip_address)  # it has bounds
        key = Key.of(idempotency_key, fingerprint, owner=owner, guest=ip_address)
        used = self._write(connection, lambda one: take_key(one, key, resource_id=resource_id))
        return None if used is None else used.job_id or used.resource_id

    def import_job(self, kind: str, jobs: Iterable[PastJob]) -> int:
        """Bring jobs over that are over in another system; the answer is how many were not here yet.

        They keep their ids, times and results, have no items, and their history says where they came from.
        """
        known, most = self.kinds.get(kind), self.settings.max_payload_bytes

        def operation(some: list[PastJob], transaction: Transaction) -> int:
            return sum(import_job(transaction, known, past, most=most) for past in some)

        waiting = iter(jobs)
        adopted = 0
        while some := list(islice(waiting, _ADOPTED_AT_ONCE)):
            adopted += self.store.write(partial(operation, some))
        return adopted

    def release(self, job_id: UUID, *, by: Caller = SYSTEM, connection: CallersConnection | None = None) -> Job:
        """Let a job flow that was only recorded (``hold=True``)."""

        def operation(transaction: Transaction) -> Job:
            kind = self.kinds.get(read_jobs.get_job(transaction, job_id, by).kind)
            if not submit_created(transaction, kind, job_id, by):
                job = read_jobs.get_job(transaction, job_id, by)
                raise TransitionRefused(f"job {job_id} is {job.state.value}: it has been submitted already")
            return read_jobs.get_job(transaction, job_id, by)

        return self._write(connection, operation)

    def export(
        self, job_id: UUID, *, by: Caller = SYSTEM, statuses: Sequence[ItemStatus] | None = None
    ) -> tuple[tuple[str, ...], Iterator[list[Any]]]:
        """The headers of a job's grid, and its lines, read as they are asked for."""
        job = self.get(job_id, by=by)
        columns = self.kinds.get(job.kind).columns if job.kind in self.kinds else ()
        return grid.headers(columns), export_rows(self.store, job_id, columns, statuses)

    # Control ------------------------------------------------------------------------------------------------------

    def pause(self, job_id: UUID, *, by: Caller = SYSTEM, reason: str | None = None) -> Job:
        """No new item starts; claimed ones finish."""
        return self.store.write(lambda one: control.pause(one, job_id, by, reason))

    def resume(self, job_id: UUID, *, by: Caller = SYSTEM, reason: str | None = None) -> Job:
        """The flow of a paused job goes on."""
        return self.store.write(lambda one: control.resume(one, job_id, by, reason))

    def cancel(
        self,
        job_id: UUID,
        *,
        by: Caller = SYSTEM,
        reason: str | None = None,
        connection: CallersConnection | None = None,
    ) -> Job:
        """Stop a job for good; the history keeps who and why."""
        return self._write(connection, lambda one: control.cancel(one, job_id, by, reason))

    def commit(
        self,
        job_id: UUID,
        *,
        by: Caller = SYSTEM,
        reason: str | None = None,
        connection: CallersConnection | None = None,
    ) -> Job:
        """The owner used the result; with ``connection`` in the same transaction as what it was used for."""
        return self._write(connection, lambda one: control.commit(one, job_id, by, reason))

    def abandon(self, job_id: UUID, *, by: Caller = SYSTEM, reason: str | None = None) -> Job:
        """The owner does not want the result."""
        return self.store.write(lambda one: control.abandon(one, job_id, by, reason))

    def reprocess(
        self,
        job_id: UUID,
        *,
        by: Caller = SYSTEM,
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
            kind = self.kinds.get(read_jobs.get_job(transaction, job_id, by).kind)
            return reprocess(
                transaction,
                kind,
                job_id,
                by,
                statuses=statuses,
                item_ids=item_ids,
                error_codes=error_codes,
                reset_attempts=reset_attempts,
                permanent=permanent,
                reason=reason,
            )

        return self.store.write(operation)

    def _write(self, connection: CallersConnection | None, operation: Callable[[Transaction], Answer]) -> Answer:
        if connection is None:
            return self.store.write(operation)
        with self.store.joined(connection) as transaction:
            return operation(transaction)
