"""Submitting: recording what somebody asked for, and letting it flow.

A job, its first item and the first line of its history are one transaction: either all of it is there, or the caller
got an error and none is. With a ``unique_key`` one flowing job does the work, by a unique index: of two submissions at
the same instant one inserts, and the other finds the row and is answered with it (the same owner) or follows it
(another one). The rules are in docs/explanation/single-flight.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import islice
from typing import Unpack
from uuid import UUID

from uuid_utils.compat import uuid7

from penstock.errors import FileNotFound, InvalidInput, JobNotFound, PenstockError, TransitionRefused
from penstock.lifecycle.callers import SYSTEM, Caller
from penstock.lifecycle.generic import Input, Params, Result
from penstock.lifecycle.job import Job, Submission, SubmitOutcome
from penstock.lifecycle.kind import Kind
from penstock.lifecycle.payloads import JSON, decode, encode
from penstock.lifecycle.states import ErrorType
from penstock.lifecycle.transitions import FAIL, SUBMIT
from penstock.operations.control import let_flow, reschedule
from penstock.operations.deduplicate import answer_with_what_is_there, fresh_result, join_active_job
from penstock.operations.idempotency import Key, point_key, take_key
from penstock.operations.items import item_texts
from penstock.operations.new_jobs import job_as_recorded, record_beginnings, record_job, record_row_unless_taken
from penstock.operations.read_jobs import get_job
from penstock.operations.request import Request, SubmitOptions
from penstock.operations.single_flight import fail_followers
from penstock.store.callers_connection import CallersConnection
from penstock.store.host import Host
from penstock.store.job_changes import change, jobs_with_followers
from penstock.store.queries import submit as queries
from penstock.store.queries.control import fail_queued
from penstock.store.queries.delayed_jobs import set_run_at
from penstock.store.queries.files import hold_file
from penstock.store.queries.job_items import insert_items
from penstock.store.queries.submit import NewJob
from penstock.store.transaction import Transaction

_BATCH_SIZE = 5_000
_TRIES = 10


class Submitter:
    """Submits jobs in a caller's name."""

    caller: Caller
    """The caller."""

    def __init__(self, host: Host, caller: Caller) -> None:
        self._host = host
        self.caller = caller

    def submit(
        self,
        kind: str | Kind[Params, Input, Result],
        params: Params | None = None,
        *,
        items: Iterable[Input] | None = None,
        connection: CallersConnection | None = None,
        **options: Unpack[SubmitOptions],
    ) -> Submission:
        """Record a job for the workers; the answer has the job, and says whether it is new.

        ``items`` gives the job its items right away. With ``connection`` all happens inside the caller's own
        transaction.
        """
        registered_kind, request = self._kind_of(kind), Request.of(self.caller, options)
        operation = partial(
            submit,
            kind=registered_kind,
            params=params,
            request=request,
            items=None if items is None else list(items),
            max_bytes=self._host.settings.max_payload_bytes,
        )
        if connection is not None:
            with self._host.store.use_connection(connection) as transaction:
                return operation(transaction)
        is_single = items is None and is_one_statement(registered_kind, request)
        return self._host.store.write(operation, single_statement=is_single)

    def _kind_of(self, kind: str | Kind[Params, Input, Result]) -> Kind:
        return self._host.kinds.get(kind if isinstance(kind, str) else kind.name)


def submit(
    transaction: Transaction,
    kind: Kind,
    params: JSON,
    request: Request,
    *,
    items: Iterable[JSON] | None,
    max_bytes: int,
) -> Submission:
    """Record one job and let it flow, or answer with the one that already does the same."""
    if request.file_id is not None and not hold_file(transaction, request.file_id):
        raise FileNotFound(f"there is no file {request.file_id} any more: upload it again")
    new = NewJob(request.id or uuid7(), encode(params, max_bytes=max_bytes, at="params"))
    key, key_use = None, None
    if request.idempotency_key is not None:
        items = None if items is None else list(items)
        key = _idempotency_key(request.idempotency_key, kind, new, request, items, max_bytes)
        key_use = take_key(transaction, key, job_id=new.id)
        if key_use is not None and key_use.job_id is not None and queries.job_exists(transaction, key_use.job_id):
            return Submission(get_job(transaction, key_use.job_id, SYSTEM), SubmitOutcome.EXISTING)
    if request.id is not None and queries.job_exists(transaction, request.id):
        raise _id_taken(request.id)
    if request.unique_key is None:
        job = record_job(transaction, kind, new, request, with_items=items is not None)
        submission = Submission(_let_flow(transaction, kind, job, request, items, max_bytes), SubmitOutcome.NEW)
    else:
        submission = _submit_alone(transaction, kind, new, request, items, max_bytes)
    if key is not None and (key_use is not None or submission.job.id != new.id):
        point_key(transaction, key, submission.job.id)
    return submission


def _idempotency_key(
    idempotency_key: str, kind: Kind, new: NewJob, request: Request, items: list[JSON] | None, max_bytes: int
) -> Key:
    """The key, and what it stands for: the request as it is, unless the client says what it asked for."""
    fingerprint = request.fingerprint
    if fingerprint is None:
        texts = None if items is None else item_texts(items, max_bytes, 0)
        fingerprint = [kind.name, decode(new.params), texts, request.file_sha256, request.unique_key]
    return Key.of(idempotency_key, fingerprint, owner=request.owner, guest=request.ip_address)


def _id_taken(job_id: UUID) -> InvalidInput:
    return InvalidInput(
        f"there is a job {job_id} already; leave job_id out, or name another", field="job_id", code="JOB_ID_TAKEN"
    )


def submit_created(
    transaction: Transaction, kind: Kind, job_id: UUID, caller: Caller, *, reason: str | None = None
) -> bool:
    """SUBMIT for a job that was only recorded; False when it is not there to be submitted.

    While another job leads its key, it follows that one.
    """
    try:
        leads = let_flow(transaction, SUBMIT, job_id, caller, reason)
    except (JobNotFound, TransitionRefused):
        return False
    if leads:
        reschedule(transaction, job_id)
        if not _refused_by_bound(transaction, kind, job_id):
            transaction.wake(kind.name)
    return True


def is_one_statement(kind: Kind, request: Request) -> bool:
    """Is recording one job a single statement (on a database server), because nothing has to be looked up?"""
    looked_up = (
        request.unique_key, request.idempotency_key, request.id, request.file_id, kind.policy.queue_limit,
        request.run_at, request.delay,
    )  # fmt: skip
    return all(reason is None for reason in looked_up)


def _submit_alone(
    transaction: Transaction, kind: Kind, new: NewJob, request: Request, items: Iterable[JSON] | None, max_bytes: int
) -> Submission:
    """Record the one flowing job of a unique key, or answer with another."""
    for _ in range(_TRIES):
        answer = answer_with_what_is_there(transaction, kind, new, request)
        if answer is not None:
            return answer
        job = _take_unique_key(transaction, kind, new, request, with_items=items is not None)
        if job is not None:
            return Submission(_let_flow(transaction, kind, job, request, items, max_bytes), SubmitOutcome.NEW)
        answer = join_active_job(transaction, kind, new, request)
        if answer is not None:
            return answer
    raise PenstockError(
        f"the active {kind.name!r} job of key {request.unique_key!r} was replaced {_TRIES} times; submit again",
        code="BUSY",
    )


def _take_unique_key(
    transaction: Transaction, kind: Kind, new: NewJob, request: Request, *, with_items: bool
) -> Job | None:
    """Record a job that leads its key; None when the key is taken, or has got a young result meanwhile."""
    recorded_at = record_row_unless_taken(transaction, kind, new, request, with_items=with_items)
    if recorded_at is None:
        return None
    if fresh_result(transaction, kind, request) is not None:
        # Whoever led the key when we looked has ended since. From now on the key is ours, so this look is the last.
        queries.take_back_job(transaction, new.id)
        return None
    record_beginnings(transaction, kind, new, request, with_items=with_items)
    return job_as_recorded(kind, request, new, recorded_at)


def _let_flow(
    transaction: Transaction, kind: Kind, job: Job, request: Request, items: Iterable[JSON] | None, max_bytes: int
) -> Job:
    """Let a job that was just recorded flow, with the items that are given with it; workers hear of it."""
    if items is not None:
        _add_items(transaction, kind, job, items, max_bytes)
    if request.is_delayed:
        set_run_at(transaction, job.id, request.run_at, delay=request.delay)
    is_refused = not request.is_held and _refused_by_bound(transaction, kind, job.id)
    if not request.is_held and not is_refused:
        transaction.woke(kind.name)
    is_as_recorded = items is None and not is_refused and not request.is_delayed
    return job if is_as_recorded else get_job(transaction, job.id, SYSTEM)


def _add_items(transaction: Transaction, kind: Kind, job: Job, items: Iterable[JSON], max_bytes: int) -> None:
    total, waiting = 0, iter(items)
    while batch := list(islice(waiting, _BATCH_SIZE)):
        texts = item_texts(batch, max_bytes, total)
        total = insert_items(transaction, texts, after=total, job_id=job.id, user_id=job.user_id, kind=kind.name)
    queries.open_items(transaction, job.id, total)
    reschedule(transaction, job.id)


def _refused_by_bound(transaction: Transaction, kind: Kind, job_id: UUID) -> bool:
    """FAIL at once, as resource exhaustion, a job that waits and finds more waiting than its kind allows."""
    bound = kind.policy.queue_limit
    if bound is None:
        return False
    # One after the other: of two that count at the same time each would miss the other.
    transaction.take_turns(f"queue_limit of {kind.name}")
    if queries.count_queued(transaction, kind.name, limit=bound + 1) <= bound:
        return False
    reason = f"more than {bound:,} jobs of kind {kind.name!r} wait already; submit again later"
    fail = partial(fail_queued, job_id=job_id, error=reason, code="QUEUE_OVERLOAD", error_type=ErrorType.RETRYABLE)
    failed = change(transaction, FAIL, fail, SYSTEM, reason=reason)
    fail_followers(transaction, jobs_with_followers(failed), SYSTEM)
    return bool(failed)
