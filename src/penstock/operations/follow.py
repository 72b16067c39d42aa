"""Single flight: a job that asks for the same work as a running one follows it and ends with it.

The leader does the work. Its followers have no items; START, SUCCEED and FAIL of the leader happen to them in the same
transaction. When the leader is canceled, the follower that has waited longest takes the work over from the beginning.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from penstock.lifecycle.callers import Caller
from penstock.lifecycle.transitions import FAIL, START, SUCCEED
from penstock.operations.change import Changed, change
from penstock.store.engine import Transaction
from penstock.store.statements import control as statements
from penstock.store.statements.submit import mark_followed


def start_followers(transaction: Transaction, leaders: Sequence[UUID], caller: Caller) -> None:
    """START for the followers of jobs that just started."""
    if leaders:
        change(transaction, START, statements.start_followers(transaction.ways), {"the_leaders": leaders}, caller)


def succeed_followers(transaction: Transaction, leaders: Sequence[Changed], caller: Caller) -> None:
    """SUCCEED for the followers of jobs that just succeeded."""
    for leader in leaders:
        if leader.followed:
            named = {"the_leader_id": leader.id}
            change(transaction, SUCCEED, statements.succeed_followers(transaction.ways), named, caller)


def fail_followers(transaction: Transaction, leaders: Sequence[Changed], caller: Caller) -> None:
    """FAIL for the followers of jobs that just failed."""
    for leader in leaders:
        if leader.followed:
            named = {"the_leader_id": leader.id}
            change(transaction, FAIL, statements.fail_followers(transaction.ways), named, caller)


def hand_over(transaction: Transaction, leader_id: UUID) -> UUID | None:
    """Give a canceled leader's work to the follower that has waited longest, and answer which one that is."""
    ways = transaction.ways
    heir = transaction.run(statements.heir_of(ways), {"the_leader_id": leader_id}).one_or_none()
    if heir is None:
        return None
    names = {"the_heir_id": heir.id, "the_leader_id": leader_id}
    transaction.run(statements.crown(ways), names)
    transaction.run(statements.inherit_items(ways), names | {"the_user_id": heir.user_id})
    if transaction.run(statements.follow_heir(ways), names).rowcount:
        transaction.run(mark_followed(ways), {"the_job_id": heir.id})
    heir_id: UUID = heir.id
    return heir_id
