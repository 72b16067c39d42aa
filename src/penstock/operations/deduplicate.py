"""Answering a submission with a job that does the same work already, or has done it.

Within a ``unique_key`` one flowing job does the work. Who asks for the same meanwhile is answered with that job (the
same owner), or with one of their own that follows it (another one); who takes a result that is young enough, with that.
The rules are in docs/explanation/single-flight.md.
"""

from __future__ import annotations

from functools import partial
from uuid import UUID

from penstock.lifecycle.callers import SYSTEM
from penstock.lifecycle.job import Submission, SubmitOutcome
from penstock.lifecycle.kind import Kind
from penstock.lifecycle.transitions import START, SUCCEED
from penstock.operations.new_jobs import record_follower
from penstock.operations.read_jobs import get_job
from penstock.operations.request import Request
from penstock.operations.single_flight import join
from penstock.store.job_changes import change
from penstock.store.queries import unique_keys as queries
from penstock.store.queries.single_flight import start_follower, succeed_as_leader
from penstock.store.queries.submit import NewJob
from penstock.store.queries.unique_keys import FreshResult, Leader
from penstock.store.transaction import Transaction


def fresh_result(transaction: Transaction, kind: Kind, request: Request) -> FreshResult | None:
    """The result of the same key that is young enough, if that will do."""
    if request.fresh_for is None or request.unique_key is None:
        return None
    return queries.fresh_result(transaction, kind.name, request.unique_key, request.owner, seconds=request.fresh_for)


def answer_with_what_is_there(transaction: Transaction, kind: Kind, new: NewJob, request: Request) -> Submission | None:
    """A young result: the owner's own job, or a new one that ends at once with a copy. For a job that is to be held
    also the one that the owner follows in.
    """
    result = fresh_result(transaction, kind, request)
    if result is not None and not result.waits:
        # One after the other: of two that ask for the same owner, the second is answered with the first one's copy.
        transaction.take_turns(f"copy for {request.owner!r} of {kind.name} {request.unique_key}")
        result = fresh_result(transaction, kind, request)
    if result is not None:
        if result.waits:
            return _submission(transaction, result.id, SubmitOutcome.CACHED)
        _copy_result(transaction, kind, new, request, result.id)
        return _submission(transaction, new.id, SubmitOutcome.CACHED)
    if request.is_held:
        leader = _leader(transaction, kind, request)
        own = None if leader is None else queries.followers_job(transaction, leader.id, request.owner)
        if own is not None:
            return _submission(transaction, own, SubmitOutcome.EXISTING)
    return None


def join_active_job(transaction: Transaction, kind: Kind, new: NewJob, request: Request) -> Submission | None:
    """Answer with the owner's active job of the key, or follow the one that leads it; None when it ended meanwhile."""
    if request.unique_key is None:
        return None
    leader = _leader(transaction, kind, request)
    own = queries.own_job(transaction, kind.name, request.unique_key, request.owner)
    if own is None and leader is not None:
        own = queries.followers_job(transaction, leader.id, request.owner)
    if own is not None:
        return _submission(transaction, own, SubmitOutcome.EXISTING)
    if leader is None or request.is_held:
        return None
    record_follower(transaction, kind, new, request, leader_id=leader.id)
    join(transaction, new.id, leader.id, leader.state)
    return _submission(transaction, new.id, SubmitOutcome.FOLLOWING)


def _leader(transaction: Transaction, kind: Kind, request: Request) -> Leader | None:
    return None if request.unique_key is None else queries.leading_job(transaction, kind.name, request.unique_key)


def _copy_result(transaction: Transaction, kind: Kind, new: NewJob, request: Request, source_id: UUID) -> None:
    """A job that ends immediately with another one's result; a result that is there is not held back."""
    record_follower(transaction, kind, new, request, leader_id=source_id)
    change(transaction, START, partial(start_follower, job_id=new.id), SYSTEM)
    succeed = partial(succeed_as_leader, job_id=new.id)
    change(transaction, SUCCEED, succeed, SYSTEM, reason="a fresh result was there")


def _submission(transaction: Transaction, job_id: UUID, outcome: SubmitOutcome) -> Submission:
    return Submission(get_job(transaction, job_id, SYSTEM), outcome)
