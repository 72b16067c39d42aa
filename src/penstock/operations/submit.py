"""Submitting: recording what somebody asked for, and letting it flow.

A job, its first item and the first line of its history are one transaction: either all of it is there, or the caller
got an error and none is. With a ``unique_key`` one flowing job does the work, by a unique index: of two submissions at
the same instant one inserts, and the other finds the row and is answered with it (the same owner) or follows it
(another one). The rules are in docs/explanation/single-flight.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from penstock.errors import InvalidInput, JobNotFound, PenstockError, TransitionRefused
from penstock.lifecycle import bounds
from penstock.lifecycle.callers import SYSTEM, Caller
from penstock.lifecycle.job import Job, Progress, Submission, SubmitOutcome
from penstock.lifecycle.kind import Kind
from penstock.lifecycle.payloads import JSON, decode, encode, encode_each, storable_text
from penstock.lifecycle.states import ErrorType, ItemRole, JobState, Phase
from penstock.lifecycle.transitions import FAIL, START, SUBMIT, SUCCEED
from penstock.operations.change import change
from penstock.operations.control import let_flow, reschedule
from penstock.operations.idempotency import Key, point_key, take_key
from penstock.operations.items import insert_items, item_texts
from penstock.operations.read_jobs import get_job
from penstock.operations.single_flight import fail_followers, join
from penstock.store.engine import Transaction
from penstock.store.statements import submit as statements
from penstock.store.statements.control import fail_one

ITEMS_AT_ONCE = 5_000
JOBS_AT_ONCE = 5_000
_TRIES = 10
_NOT_SHOWN = re.compile("[\x00-\x1f\x7f-\x9f]+")


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for, apart from the payloads."""

    owner: str | None = None
    caller: Caller = SYSTEM
    unique_key: str | None = None
    fresh_for: float | None = None
    idempotency_key: str | None = None
    fingerprint: JSON = None
    """What the idempotency key stands for, where it is not simply the kind, the params, the items and the file."""
    priority: int | None = None
    file_id: UUID | None = None
    file_sha256: str | None = None
    ip_address: str | None = None
    hold: bool = False
    """Record it, but do not let it flow until ``submit_created``."""
    id: UUID | None = None
    """What it is called, where somebody knows it by that name already."""
    title: str | None = None
    """What people know it by: the name of a file, an address."""

    def __post_init__(self) -> None:
        for bound in (bounds.OWNER, bounds.UNIQUE_KEY, bounds.IDEMPOTENCY_KEY, bounds.IP_ADDRESS):
            value = getattr(self, bound.field)
            if value is not None:
                bound.require(value)
        if self.priority is not None:
            bounds.PRIORITY.require(self.priority)
        if self.fresh_for is not None and self.unique_key is None:
            raise InvalidInput("fresh_for needs a unique_key: it says which results are the same", field="fresh_for")

    @property
    def kept_title(self) -> str | None:
        """The title as it is kept: one line, and not a long one; a name is no reason to refuse a job."""
        if self.title is None:
            return None
        line = storable_text(_NOT_SHOWN.sub(" ", self.title)).strip()
        return (line if len(line) <= bounds.LONGEST_TITLE else f"{line[: bounds.LONGEST_TITLE - 1]}…") or None


def submit(
    transaction: Transaction, kind: Kind, params: JSON, request: Request, *, items: Iterable[JSON] | None, most: int
) -> Submission:
    """Record one job and let it flow, or answer with the one that already does the same."""
    encoded = encode(params, most=most, at="params")
    job_id: UUID = request.id or uuid7()
    if request.idempotency_key is None:
        return _submit(transaction, kind, encoded, request, items, most, job_id)
    fingerprint = request.fingerprint
    if fingerprint is None:
        items = None if items is None else list(items)
        texts = None if items is None else item_texts(items, most, 0)
        fingerprint = [kind.name, decode(encoded), texts, request.file_sha256, request.unique_key]
    key = Key.of(request.idempotency_key, fingerprint, owner=request.owner, guest=request.ip_address)
    used = take_key(transaction, key, job_id=job_id)
    if used is not None and used.job_id is not None and _exists(transaction, used.job_id):
        return Submission(get_job(transaction, used.job_id, SYSTEM), SubmitOutcome.EXISTING)
    submission = _submit(transaction, kind, encoded, request, items, most, job_id)
    if used is not None or submission.job.id != job_id:
        point_key(transaction, key, submission.job.id)
    return submission


def _submit(
    transaction: Transaction,
    kind: Kind,
    encoded: str,
    request: Request,
    items: Iterable[JSON] | None,
    most: int,
    job_id: UUID,
) -> Submission:
    """Record one job under the id, or answer with another."""
    if request.id is not None and _exists(transaction, request.id):
        raise InvalidInput(
            f"there is a job {request.id} already; leave job_id out, or name another",
            field="job_id",
            code="JOB_ID_TAKEN",
        )
    for _ in range(_TRIES):
        answer = _answer(transaction, kind, encoded, request, job_id)
        if answer is not None:
            return answer
        job = _insert(transaction, kind, encoded, request, items, most, job_id)
        if job is not None:
            return Submission(_let_flow(transaction, kind, job, request), SubmitOutcome.NEW)
        answer = _join(transaction, kind, encoded, request, job_id)
        if answer is not None:
            return answer
    raise PenstockError(
        f"the active {kind.name!r} job of key {request.unique_key!r} changed hands {_TRIES} times; submit again",
        code="BUSY",
    )


def _exists(transaction: Transaction, job_id: UUID) -> bool:
    return transaction.run(statements.job_exists(transaction.dialect), {"the_job_id": job_id}).scalar() is not None


def is_one_statement(kind: Kind, request: Request) -> bool:
    """Is recording one job a single statement (on a database server), because nothing has to be looked up?"""
    looked_up = (request.unique_key, request.idempotency_key, request.id, kind.policy.queue_limit)
    return all(one is None for one in looked_up)


def submit_many(
    transaction: Transaction, kind: Kind, params: Iterable[JSON], request: Request, *, most: int
) -> list[UUID]:
    """Record one job for each of ``params``, all alike but for that; the answer is their ids in order."""
    for name in ("unique_key", "idempotency_key", "fresh_for"):
        if getattr(request, name) is not None:
            raise InvalidInput(f"{name} names one job: submit those that have one singly", field=name)
    if kind.policy.queue_limit is not None:
        # Each of them has to find its place below the bound.
        return [submit(transaction, kind, one, request, items=None, most=most).job.id for one in params]
    ids: list[UUID] = []
    waiting = iter(params)
    while chunk := list(islice(waiting, JOBS_AT_ONCE)):
        encoded = encode_each(chunk, most=most)
        if encoded is None:
            encoded = [encode(one, most=most, at=f"params[{index}]") for index, one in enumerate(chunk, len(ids))]
        ids += _insert_chunk(transaction, kind, encoded, request)
    if ids and not request.hold:
        transaction.wake(kind.name)
    return ids


def submit_created(transaction: Transaction, kind: Kind, job_id: UUID, caller: Caller) -> bool:
    """SUBMIT for a job that was only recorded; False when it is not there to be submitted.

    While another job leads its key, it follows that one.
    """
    try:
        leads = let_flow(transaction, SUBMIT, job_id, caller)
    except (JobNotFound, TransitionRefused):
        return False
    if leads:
        reschedule(transaction, job_id)
        if not _refused_by_bound(transaction, kind, job_id):
            transaction.wake(kind.name)
    return True


def _shape(kind: Kind, *, with_items: bool) -> dict[str, Any]:
    """How the job's items are handed out: its plan first, its only step, or items given with it."""
    planned = with_items or kind.plan is None
    single = kind.single_step and not with_items
    return {
        "the_single_step": single,
        "the_planned": planned,
        "the_has_finalizer": kind.finalize is not None,
        "the_total_items": 0 if with_items or not planned else 1,
        "the_last_claimed": 0 if planned else -1,
        "the_last_claimable": 1 if planned and not with_items else 0,
    }


def _shared(kind: Kind, request: Request) -> dict[str, Any]:
    return {
        "the_kind": kind.name,
        "the_user_id": request.owner,
        "the_state": JobState.CREATED.value if request.hold else JobState.QUEUED.value,
        "the_priority": kind.policy.priority if request.priority is None else request.priority,
        "the_unique_key": request.unique_key,
        "the_leader_id": None,
        "the_max_retries": kind.policy.retries,
        "the_file_id": request.file_id,
        "the_ip_address": request.ip_address,
        "the_title": request.kept_title,
    }


def _insert_chunk(transaction: Transaction, kind: Kind, encoded: Sequence[str], request: Request) -> list[UUID]:
    """Many jobs, their first items and the first lines of their history, in three statements."""
    dialect = transaction.dialect
    ids: list[UUID] = [uuid7() for _ in encoded]
    rows = dialect.parameters("new_jobs", statements.NEW_JOBS, list(zip(ids, encoded, strict=True)))
    first = _beginnings(transaction, kind, request, with_items=False)
    parameters = rows | _shared(kind, request) | _shape(kind, with_items=False) | first.parameters
    transaction.run_together(first.statements, statements.insert_jobs(dialect), parameters)
    return ids


def _insert(
    transaction: Transaction,
    kind: Kind,
    encoded: str,
    request: Request,
    items: Iterable[JSON] | None,
    most: int,
    job_id: UUID,
) -> Job | None:
    """One job with all that belongs to it; None when its key is taken, or has got a young result meanwhile."""
    dialect = transaction.dialect
    rows = dialect.parameters("new_jobs", statements.NEW_JOBS, [(job_id, encoded)])
    first = _beginnings(transaction, kind, request, with_items=items is not None)
    parameters = rows | _shared(kind, request) | _shape(kind, with_items=items is not None) | first.parameters
    if request.unique_key is None:
        inserted = transaction.run_together(first.statements, statements.insert_job(dialect), parameters).one()
    else:
        taken = transaction.run(statements.insert_job(dialect), parameters).one_or_none()
        if taken is None:
            return None
        if _fresh_result(transaction, kind, request) is not None:
            # Whoever led the key when we looked has ended since. From now on the key is ours, so this look is the last.
            transaction.run(statements.take_back_job(dialect), {"the_job_id": job_id})
            return None
        inserted = taken
        transaction.run_together(first.statements[:-1], first.statements[-1], parameters)
    if items is None:
        return _new_job(kind, request, job_id, decode(encoded), inserted.created_at)
    total, waiting = 0, iter(items)
    while some := list(islice(waiting, ITEMS_AT_ONCE)):
        texts = item_texts(some, most, total)
        total = insert_items(transaction, kind, job_id, request.owner, texts, after=total)
    transaction.run(statements.open_items(dialect), {"the_job_id": job_id, "the_count": total})
    reschedule(transaction, job_id)
    return get_job(transaction, job_id, SYSTEM)


def _new_job(kind: Kind, request: Request, job_id: UUID, params: JSON, now: datetime) -> Job:
    """The job as it was just recorded; reading it back would be one more way to the database."""
    return Job(
        id=job_id,
        kind=kind.name,
        title=request.kept_title,
        user_id=request.owner,
        state=JobState.CREATED if request.hold else JobState.QUEUED,
        phase=Phase.INIT,
        run=1,
        priority=kind.policy.priority if request.priority is None else request.priority,
        params=params,
        result=None,
        unique_key=request.unique_key,
        leader_id=None,
        progress=Progress(total=1 if kind.plan is None else 0, processed=0, failed=0, not_found=0, skipped=0),
        attempts=0,
        retries=0,
        deaths=0,
        max_retries=kind.policy.retries,
        last_error=None,
        error_code=None,
        error_type=None,
        failed_phase=None,
        killed_by=None,
        killed_reason=None,
        message=None,
        file_id=request.file_id,
        ip_address=request.ip_address,
        last_heartbeat=None,
        created_at=now,
        queued_at=None if request.hold else now,
        started_at=None,
        completed_at=None,
        committed_at=None,
        abandoned_at=None,
        canceled_at=None,
        updated_at=now,
    )


@dataclass(frozen=True, slots=True)
class _Beginnings:
    """What is written with every new job, and the parameters that takes."""

    statements: tuple[Any, ...]
    parameters: dict[str, Any]


def _beginnings(transaction: Transaction, kind: Kind, request: Request, *, with_items: bool) -> _Beginnings:
    """The first item of each job, unless items are given with it, and the first line of its history."""
    dialect = transaction.dialect
    role, position = (ItemRole.ITEM, 1) if kind.plan is None else (ItemRole.PLAN, 0)
    parameters = {
        "the_role": role.value,
        "the_position": position,
        # A single step reads its job's params where they are, and so does a plan; an item beside others has an input.
        "the_own_input": kind.plan is None and not kind.single_step,
        "the_actor": request.caller.actor.value,
        "the_actor_id": request.caller.id,
    }
    if with_items:
        return _Beginnings((statements.insert_first_events(dialect),), parameters)
    return _Beginnings((statements.insert_first_items(dialect), statements.insert_first_events(dialect)), parameters)


def _let_flow(transaction: Transaction, kind: Kind, job: Job, request: Request) -> Job:
    if request.hold:
        return job
    if _refused_by_bound(transaction, kind, job.id):
        return get_job(transaction, job.id, SYSTEM)
    transaction.woke(kind.name)
    return job


def _refused_by_bound(transaction: Transaction, kind: Kind, job_id: UUID) -> bool:
    """FAIL at once, as resource exhaustion, a job that waits and finds more waiting than its kind allows."""
    bound = kind.policy.queue_limit
    if bound is None:
        return False
    dialect = transaction.dialect
    # One after the other: of two that count at the same time each would miss the other.
    transaction.take_turns(f"queue_limit of {kind.name}")
    limit = {"the_kind": kind.name, "the_limit": bound + 1}
    if transaction.run(statements.count_queued(dialect), limit).scalar() <= bound:
        return False
    parameters = {
        "the_job_id": job_id,
        "the_error": f"more than {bound:,} jobs of kind {kind.name!r} wait already; submit again later",
        "the_code": "QUEUE_OVERLOAD",
        "the_error_type": ErrorType.RETRYABLE.value,
    }
    failed = change(transaction, FAIL, fail_one(dialect), parameters, SYSTEM, reason=str(parameters["the_error"]))
    fail_followers(transaction, failed, SYSTEM)
    return bool(failed)


def _fresh_result(transaction: Transaction, kind: Kind, request: Request) -> Any:
    """The result of the same key that is young enough, if that will do."""
    if request.fresh_for is None:
        return None
    asked = {
        "the_kind": kind.name,
        "the_unique_key": request.unique_key,
        "the_user_id": request.owner,
        "the_seconds_ago": -request.fresh_for,
    }
    return transaction.run(statements.fresh_result(transaction.dialect), asked).one_or_none()


def _answer(transaction: Transaction, kind: Kind, encoded: str, request: Request, job_id: UUID) -> Submission | None:
    """What is there already: a young result (the owner's own job, or a new one that ends at once with a copy) or, for
    a job that is to be held, the one the owner follows in.
    """
    dialect = transaction.dialect
    row = _fresh_result(transaction, kind, request)
    if row is not None:
        if row.waits:
            return Submission(get_job(transaction, row.id, SYSTEM), SubmitOutcome.CACHED)
        _without_items(transaction, kind, encoded, request, job_id, leader_id=row.id)
        named = {"the_job_id": job_id}
        change(transaction, START, statements.start_follower(dialect), named, SYSTEM)
        statement = statements.succeed_as_leader(dialect)
        change(transaction, SUCCEED, statement, named, SYSTEM, reason="a fresh result was there")
        return Submission(get_job(transaction, job_id, SYSTEM), SubmitOutcome.CACHED)
    if request.hold and request.unique_key is not None:
        leader = _leader(transaction, kind, request)
        mine = None if leader is None else _own_follower(transaction, request, leader.id)
        if mine is not None:
            return Submission(get_job(transaction, mine, SYSTEM), SubmitOutcome.EXISTING)
    return None


def _join(transaction: Transaction, kind: Kind, encoded: str, request: Request, job_id: UUID) -> Submission | None:
    """Answer with the owner's active job of the key, or follow the one that leads it; None when it ended meanwhile."""
    dialect = transaction.dialect
    leader = _leader(transaction, kind, request)
    asked = {"the_kind": kind.name, "the_unique_key": request.unique_key, "the_user_id": request.owner}
    mine = transaction.run(statements.own_job(dialect, guest=request.owner is None), asked).scalar()
    if mine is None and leader is not None:
        mine = _own_follower(transaction, request, leader.id)
    if mine is not None:
        return Submission(get_job(transaction, mine, SYSTEM), SubmitOutcome.EXISTING)
    if leader is None or request.hold:
        return None
    _without_items(transaction, kind, encoded, request, job_id, leader_id=leader.id)
    join(transaction, job_id, leader.id, leader.state)
    return Submission(get_job(transaction, job_id, SYSTEM), SubmitOutcome.FOLLOWING)


def _leader(transaction: Transaction, kind: Kind, request: Request) -> Any:
    asked = {"the_kind": kind.name, "the_unique_key": request.unique_key}
    return transaction.run(statements.leading_job(transaction.dialect), asked).one_or_none()


def _own_follower(transaction: Transaction, request: Request, leader_id: UUID) -> UUID | None:
    named = {"the_leader_id": leader_id, "the_user_id": request.owner}
    found: UUID | None = transaction.run(statements.followers_job(transaction.dialect), named).scalar()
    return found


def _without_items(
    transaction: Transaction, kind: Kind, encoded: str, request: Request, job_id: UUID, *, leader_id: UUID
) -> None:
    """A job that has no items of its own, because another one does the work, or has done it."""
    dialect = transaction.dialect
    # A result that is there already is not held back.
    request = replace(request, hold=False)
    shape = _shape(kind, with_items=True) | {"the_leader_id": leader_id}
    rows = dialect.parameters("new_jobs", statements.NEW_JOBS, [(job_id, encoded)])
    first = _beginnings(transaction, kind, request, with_items=True)
    parameters = rows | _shared(kind, request) | shape | first.parameters
    transaction.run_together(first.statements, statements.insert_jobs(dialect), parameters)
