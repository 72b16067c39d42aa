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
from uuid import UUID

from penstock.lifecycle.callers import SYSTEM, Caller
from penstock.lifecycle.states import JobState
from penstock.lifecycle.transitions import FAIL, START, SUCCEED
from penstock.operations.change import Changed, change
from penstock.store.statements import control as statements
from penstock.store.statements.submit import mark_followed, start_follower
from penstock.store.transaction import Transaction

_STARTED = (JobState.RUNNING, JobState.RETRYING)


def join(transaction: Transaction, follower_id: UUID, leader_id: UUID, leader_state: str) -> None:
    """Let a queued job that follows be known to its leader, which is locked, and start if that has."""
    transaction.run(mark_followed(transaction.dialect), {"the_job_id": leader_id})
    if leader_state in _STARTED:
        change(transaction, START, start_follower(transaction.dialect), {"the_job_id": follower_id}, SYSTEM)


def start_followers(transaction: Transaction, leaders: Sequence[UUID], caller: Caller) -> None:
    """START for the followers of jobs that just started, those that are free."""
    if leaders:
        change(transaction, START, statements.start_followers(transaction.dialect), {"the_leaders": leaders}, caller)


def succeed_followers(transaction: Transaction, leaders: Sequence[Changed], caller: Caller) -> int:
    """SUCCEED for the followers of jobs that just succeeded, those that are free; the answer is how many."""
    followed = [leader.id for leader in leaders if leader.has_followers]
    # Whoever joined while the leader waited for its next try has not started yet.
    start_followers(transaction, followed, caller)
    statement = statements.succeed_followers(transaction.dialect)
    return sum(len(change(transaction, SUCCEED, statement, {"the_leader_id": one}, caller)) for one in followed)


def fail_followers(transaction: Transaction, leaders: Sequence[Changed], caller: Caller) -> int:
    """FAIL for the followers of jobs that just failed, those that are free; the answer is how many."""
    followed = [leader.id for leader in leaders if leader.has_followers]
    statement = statements.fail_followers(transaction.dialect)
    return sum(len(change(transaction, FAIL, statement, {"the_leader_id": one}, caller)) for one in followed)


def hand_over(transaction: Transaction, leader_id: UUID) -> UUID | None:
    """Give the work of a leader that is locked to the follower that has waited longest; the answer is which one."""
    dialect = transaction.dialect
    found = transaction.run(statements.lock_followers(dialect), {"the_leader_id": leader_id}).all()
    if not found:
        return None
    successor = found[0]
    names = {"the_successor_id": successor.id, "the_leader_id": leader_id}
    transaction.run(statements.promote(dialect), names)
    transaction.run(statements.inherit_items(dialect), names | {"the_user_id": successor.user_id})
    if len(found) > 1:
        transaction.run(statements.follow_heir(dialect), names)
        transaction.run(mark_followed(dialect), {"the_job_id": successor.id})
        if successor.state == JobState.RUNNING:
            # It will not pass START again, which would have started the others.
            start_followers(transaction, [successor.id], SYSTEM)
    successor_id: UUID = successor.id
    return successor_id
