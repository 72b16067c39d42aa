"""Single flight: a job that asks for the same work as a flowing one follows it and ends with it.

The leader does the work. Its followers have no items; START, SUCCEED and FAIL of the leader happen to them in the same
transaction. When the leader is canceled, the follower that has waited longest inherits the work and does it from the
beginning. The rules are in docs/explanation/single-flight.md.

Who joins a leader locks its row first, so whoever has it locked knows all its followers. Leaders are locked before
followers, and these in the order of their ids.

A follower that is locked by somebody else, in a transaction that may stay open for long, is passed over: its leader and
the other followers go on. START comes with the leader's next step, and what ended without it is settled by the sweep.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from uuid import UUID

from penstock.lifecycle.callers import SYSTEM, Caller
from penstock.lifecycle.states import JobState
from penstock.lifecycle.transitions import FAIL, START, SUCCEED
from penstock.store.job_changes import change
from penstock.store.queries import single_flight as queries
from penstock.store.queries.unique_keys import mark_followed
from penstock.store.transaction import Transaction

_STARTED_STATES = (JobState.RUNNING, JobState.RETRYING)


def join(transaction: Transaction, follower_id: UUID, leader_id: UUID, leader_state: str) -> None:
    """Let a queued job that follows be known to its leader, which is locked, and start if that has."""
    mark_followed(transaction, leader_id)
    if leader_state in _STARTED_STATES:
        change(transaction, START, partial(queries.start_follower, job_id=follower_id), SYSTEM)


def start_followers(transaction: Transaction, leader_ids: Sequence[UUID], caller: Caller) -> None:
    """START for the followers of jobs that just started, those that are free."""
    if leader_ids:
        change(transaction, START, partial(queries.start_followers, leader_ids=leader_ids), caller)


def succeed_followers(transaction: Transaction, leader_ids: Sequence[UUID], caller: Caller) -> int:
    """SUCCEED for the followers of jobs that just succeeded, those that are free; the answer is how many."""
    # Whoever joined while the leader waited for its next try has not started yet.
    start_followers(transaction, leader_ids, caller)
    return sum(
        len(change(transaction, SUCCEED, partial(queries.succeed_followers, leader_id=leader_id), caller))
        for leader_id in leader_ids
    )


def fail_followers(transaction: Transaction, leader_ids: Sequence[UUID], caller: Caller) -> int:
    """FAIL for the followers of jobs that just failed, those that are free; the answer is how many."""
    return sum(
        len(change(transaction, FAIL, partial(queries.fail_followers, leader_id=leader_id), caller))
        for leader_id in leader_ids
    )


def hand_over(transaction: Transaction, leader_id: UUID) -> UUID | None:
    """Give the work of a leader that is locked to the follower that has waited longest; the answer is which one."""
    followers = queries.lock_followers(transaction, leader_id)
    if not followers:
        return None
    successor = followers[0]
    queries.promote(transaction, successor.id, leader_id)
    queries.inherit_items(transaction, successor.id, leader_id, user_id=successor.user_id)
    if len(followers) > 1:
        queries.follow_successor(transaction, successor.id, leader_id)
        mark_followed(transaction, successor.id)
        if successor.state == JobState.RUNNING:
            # It will not pass START again, which would have started the others.
            start_followers(transaction, [successor.id], SYSTEM)
    return successor.id
