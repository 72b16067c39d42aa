"""Submitting: recording what somebody asked for, and letting it flow.

A job, its first item and the first line of its history are one transaction: either all of it is there, or the caller
got an error and none is. With a ``unique_key`` at most one active job does the work, by a unique index: of two
submissions at the same instant one inserts, and the other finds the row and is answered with it (the same owner) or
follows it (another one).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from itertools import islice
from typing import Any
from uuid import UUID

import orjson
from uuid_utils.compat import uuid7

from penstock.errors import InvalidInput, PenstockError
from penstock.lifecycle.callers import SYSTEM, Caller
from penstock.lifecycle.job import Answer, Job, Progress, Submission
from penstock.lifecycle.kind import Kind
from penstock.lifecycle.payloads import JSON, decode, encode, encode_each, require_storable, storable_text
from penstock.lifecycle.states import ErrorType, ItemRole, JobState, Phase
from penstock.lifecycle.transitions import FAIL, START, SUBMIT, SUCCEED
from penstock.operations.change import change
from penstock.operations.control import go_on
from penstock.operations.follow import fail_followers
from penstock.operations.inspect import get_job
from penstock.operations.items import insert_items, item_texts
from penstock.store.engine import Transaction
from penstock.store.statements import submit as statements
from penstock.store.statements.control import change_one, fail_one

ITEMS_AT_ONCE = 5_000
JOBS_AT_ONCE = 5_000
_LONGEST_KEY = 255
_LONGEST_TITLE = 255
_NOT_SHOWN = re.compile("[\x00-\x1f\x7f-\x9f]+")


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for, apart from the payloads."""

    owner: str | None = None
    caller: Caller = SYSTEM
    unique_key: str | None = None
    fresh_for: float | None = None
    idempotency_key: str | None = None
    priority: int | None = None
    file_id: UUID | None = None
    ip_address: str | None = None
    hold: bool = False
    """Record it, but do not let it flow until ``submit_created``."""
    id: UUID | None = None
    """What it is called, where somebody knows it by that name already."""
    title: str | None = None
    """What people know it by: the name of a file, an address."""

    def __post_init__(self) -> None:
        for name in ("owner", "unique_key", "idempotency_key"):
            value = getattr(self, name)
            if value is not None and not 0 < len(value) <= _LONGEST_KEY:
                raise InvalidInput(f"{name} must have 1 to {_LONGEST_KEY} characters, not {len(value)}", field=name)
            if value is not None:
                require_storable(value, name)
        if self.ip_address is not None:
            require_storable(self.ip_address, "ip_address")
        if self.fresh_for is not None and self.unique_key is None:
            raise InvalidInput("fresh_for needs a unique_key: it says which results are the same", field="fresh_for")

    @property
    def idempotency_digest(self) -> str | None:
        """The key as it is kept: each owner has keys of their own, and a guest's are a guest's."""
        if self.idempotency_key is None:
            return None
        return sha256(orjson.dumps([self.owner, self.idempotency_key])).hexdigest()

    @property
    def kept_title(self) -> str | None:
        """The title as it is kept: one line, and not a long one; a name is no reason to refuse a job."""
        if self.title is None:
            return None
        line = storable_text(_NOT_SHOWN.sub(" ", self.title)).strip()
        return (line if len(line) <= _LONGEST_TITLE else f"{line[: _LONGEST_TITLE - 1]}…") or None


def submit(
    transaction: Transaction, kind: Kind, params: JSON, request: Request, *, items: Iterable[JSON] | None, most: int
) -> Submission:
    """Record one job and let it flow, or answer with the one that already does the same."""
    if request.idempotency_key is not None:
        earlier = _earlier(transaction, kind, request)
        if earlier is not None:
            return Submission(earlier, Answer.EXISTING)
    if request.fresh_for is not None:
        cached = _cached(transaction, kind, params, request, most)
        if cached is not None:
            return cached
    encoded = encode(params, most=most, at="params")
    for _ in range(10):
        job = _insert(transaction, kind, encoded, request, items, most)
        if job is not None:
            return Submission(_let_flow(transaction, kind, job, request), Answer.NEW)
        answer = _join(transaction, kind, encoded, request)
        if answer is not None:
            return answer
    raise PenstockError(
        f"the active {kind.name!r} job of key {request.unique_key!r} changed hands ten times; submit again", code="BUSY"
    )


def is_one_statement(kind: Kind, request: Request) -> bool:
    """Is recording one job a single statement (on a database server), because nothing has to be looked up?"""
    looked_up = (request.unique_key, request.idempotency_key, kind.policy.queue_limit)
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
    """SUBMIT for a job that was only recorded; False when it is not there to be submitted."""
    if not _submit(transaction, job_id, caller):
        return False
    if not _refused_by_bound(transaction, kind, job_id):
        transaction.wake(kind.name)
    return True


def _submit(transaction: Transaction, job_id: UUID, caller: Caller) -> bool:
    statement = change_one(transaction.ways, SUBMIT, caller.sight)
    if not change(transaction, SUBMIT, statement, {"the_job_id": job_id, "the_caller_id": caller.id}, caller):
        return False
    go_on(transaction, job_id)
    return True


def _shape(kind: Kind, *, with_items: bool) -> dict[str, Any]:
    """How the job's items are handed out: its plan first, its only step, or items given with it."""
    planned = with_items or kind.plan is None
    single = kind.single_step and not with_items
    return {
        "the_single_step": single,
        "the_planned": planned,
        "the_finalizes": kind.finalize is not None,
        "the_total_items": 0 if with_items or not planned else 1,
        "the_claimed_to": 0 if planned else -1,
        "the_open_to": 1 if planned and not with_items else 0,
    }


def _shared(kind: Kind, request: Request) -> dict[str, Any]:
    return {
        "the_kind": kind.name,
        "the_user_id": request.owner,
        "the_state": JobState.CREATED.value if request.hold else JobState.QUEUED.value,
        "the_priority": kind.policy.priority if request.priority is None else request.priority,
        "the_unique_key": request.unique_key,
        "the_idempotency_key": request.idempotency_digest,
        "the_leader_id": None,
        "the_max_retries": kind.policy.retries,
        "the_file_id": request.file_id,
        "the_ip_address": request.ip_address,
        "the_title": request.kept_title,
    }


def _insert_chunk(transaction: Transaction, kind: Kind, encoded: Sequence[str], request: Request) -> list[UUID]:
    """Many jobs, their first items and the first lines of their history, in three statements."""
    ways = transaction.ways
    ids: list[UUID] = [uuid7() for _ in encoded]
    rows = ways.parameters("new_jobs", statements.NEW_JOBS, list(zip(ids, encoded, strict=True)))
    first = _beginnings(transaction, kind, request, with_items=False)
    parameters = rows | _shared(kind, request) | _shape(kind, with_items=False) | first.parameters
    transaction.run_together(first.statements, statements.insert_jobs(ways), parameters)
    return ids


def _insert(
    transaction: Transaction,
    kind: Kind,
    encoded: str,
    request: Request,
    items: Iterable[JSON] | None,
    most: int,
) -> Job | None:
    """One job with all that belongs to it; None when its key is taken."""
    ways = transaction.ways
    job_id: UUID = request.id or uuid7()
    # Recorded as created until its items are all there.
    held = request if items is None else replace(request, hold=True)
    rows = ways.parameters("new_jobs", statements.NEW_JOBS, [(job_id, encoded)])
    first = _beginnings(transaction, kind, held, with_items=items is not None)
    parameters = rows | _shared(kind, held) | _shape(kind, with_items=items is not None) | first.parameters
    if request.unique_key is None and request.idempotency_key is None:
        inserted = transaction.run_together(first.statements, statements.insert_job(ways), parameters).one()
    else:
        taken = transaction.run(statements.insert_job(ways), parameters).one_or_none()
        if taken is None:
            return None
        inserted = taken
        transaction.run_together(first.statements[:-1], first.statements[-1], parameters)
    if items is None:
        return _new_job(kind, request, job_id, decode(encoded), inserted.created_at)
    total, waiting = 0, iter(items)
    while some := list(islice(waiting, ITEMS_AT_ONCE)):
        texts = item_texts(some, most, total)
        total = insert_items(transaction, kind, job_id, request.owner, texts, after=total)
    transaction.run(statements.open_items(ways), {"the_job_id": job_id, "the_count": total})
    if not request.hold:
        _submit(transaction, job_id, request.caller)
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
    ways = transaction.ways
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
        return _Beginnings((statements.insert_first_events(ways),), parameters)
    return _Beginnings((statements.insert_first_items(ways), statements.insert_first_events(ways)), parameters)


def _let_flow(transaction: Transaction, kind: Kind, job: Job, request: Request) -> Job:
    if request.hold:
        return job
    if _refused_by_bound(transaction, kind, job.id):
        return get_job(transaction, job.id, SYSTEM)
    transaction.woke(kind.name)
    return job


def _refused_by_bound(transaction: Transaction, kind: Kind, job_id: UUID) -> bool:
    """FAIL at once, as resource exhaustion, a job that finds more waiting than its kind allows."""
    bound = kind.policy.queue_limit
    if bound is None:
        return False
    ways = transaction.ways
    limit = {"the_kind": kind.name, "the_limit": bound + 1}
    if transaction.run(statements.count_queued(ways), limit).scalar() <= bound:
        return False
    parameters = {
        "the_job_id": job_id,
        "the_error": f"more than {bound:,} jobs of kind {kind.name!r} wait already; submit again later",
        "the_code": "QUEUE_OVERLOAD",
        "the_error_type": ErrorType.RETRYABLE.value,
    }
    failed = change(transaction, FAIL, fail_one(ways), parameters, SYSTEM, reason=str(parameters["the_error"]))
    fail_followers(transaction, failed, SYSTEM)
    return True


def _earlier(transaction: Transaction, kind: Kind, request: Request) -> Job | None:
    named = {"the_idempotency_key": request.idempotency_digest}
    row = transaction.run(statements.by_idempotency_key(transaction.ways), named).one_or_none()
    if row is None:
        return None
    if row.kind != kind.name:
        raise InvalidInput(
            f"idempotency key {request.idempotency_key!r} was used for a {row.kind!r} job already",
            field="idempotency_key",
            code="IDEMPOTENCY_KEY_REUSED",
        )
    return get_job(transaction, row.id, SYSTEM)


def _cached(transaction: Transaction, kind: Kind, params: JSON, request: Request, most: int) -> Submission | None:
    """A fresh result: the owner's own job, or one of their own that ends at once with a copy."""
    asked = {
        "the_kind": kind.name,
        "the_unique_key": request.unique_key,
        "the_user_id": request.owner,
        "the_seconds_ago": -(request.fresh_for or 0.0),
    }
    row = transaction.run(statements.fresh_result(transaction.ways), asked).one_or_none()
    if row is None:
        return None
    if row.user_id == request.owner:
        return Submission(get_job(transaction, row.id, SYSTEM), Answer.CACHED)
    job_id = _without_items(transaction, kind, encode(params, most=most, at="params"), request, leader_id=row.id)
    ways, named = transaction.ways, {"the_job_id": job_id}
    change(transaction, START, statements.start_follower(ways), named, SYSTEM)
    change(transaction, SUCCEED, statements.succeed_as_leader(ways), named, SYSTEM, reason="a fresh result was there")
    return Submission(get_job(transaction, job_id, SYSTEM), Answer.CACHED)


def _join(transaction: Transaction, kind: Kind, encoded: str, request: Request) -> Submission | None:
    """Answer with the active job of the key, or follow it; None when it ended meanwhile."""
    if request.idempotency_key is not None:
        earlier = _earlier(transaction, kind, request)
        if earlier is not None:
            return Submission(earlier, Answer.EXISTING)
    ways = transaction.ways
    asked = {"the_kind": kind.name, "the_unique_key": request.unique_key}
    leader = transaction.run(statements.active_job(ways), asked).one_or_none()
    if leader is None:
        return None
    if leader.user_id == request.owner:
        return Submission(get_job(transaction, leader.id, SYSTEM), Answer.EXISTING)
    named = {"the_leader_id": leader.id, "the_user_id": request.owner}
    mine = transaction.run(statements.followers_job(ways), named).scalar()
    if mine is not None:
        return Submission(get_job(transaction, mine, SYSTEM), Answer.EXISTING)
    job_id = _without_items(transaction, kind, encoded, request, leader_id=leader.id)
    transaction.run(statements.mark_followed(ways), {"the_job_id": leader.id})
    if leader.state in (JobState.RUNNING, JobState.RETRYING):
        change(transaction, START, statements.start_follower(ways), {"the_job_id": job_id}, SYSTEM)
    return Submission(get_job(transaction, job_id, SYSTEM), Answer.FOLLOWING)


def _without_items(transaction: Transaction, kind: Kind, encoded: str, request: Request, *, leader_id: UUID) -> UUID:
    """A job that has no items of its own, because another one does the work."""
    ways = transaction.ways
    job_id: UUID = uuid7()
    # Never held: there is nothing of its own to wait for, and it ends with its leader.
    request = replace(request, hold=False)
    shape = _shape(kind, with_items=True) | {"the_leader_id": leader_id}
    rows = ways.parameters("new_jobs", statements.NEW_JOBS, [(job_id, encoded)])
    first = _beginnings(transaction, kind, request, with_items=True)
    parameters = rows | _shared(kind, request) | shape | first.parameters
    transaction.run_together(first.statements, statements.insert_jobs(ways), parameters)
    return job_id
