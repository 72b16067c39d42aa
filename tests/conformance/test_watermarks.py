"""A lane that remembers where the line begins misses nobody: late commits, locks, new priorities, clocks set back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from uuid import UUID

import pytest
from sqlalchemy import Connection, select

from penstock.lifecycle import outcomes
from penstock.lifecycle.callers import SYSTEM
from penstock.operations import control
from penstock.operations.claim import Claim
from penstock.operations.request import Request
from penstock.operations.submit import submit
from penstock.operations.watermarks import look
from penstock.store.engine import Store
from penstock.store.tables import jobs
from penstock.testing.drive import MAX_BYTES, Workbench
from tests.conformance.databases import needs
from tests.conformance.lane_claims import KIND, Hand, sent_to

pytestmark = needs("claims_in_one_statement", "writes_beside_others")


@pytest.fixture
def hand(bench: Workbench) -> Hand:
    return Hand(bench)


@contextmanager
def open_transaction(store: Store) -> Iterator[Connection]:
    """Somebody's transaction; what it did is undone at the end, unless it was committed."""
    with store.engine.connect() as connection:
        yield connection
        connection.rollback()


def submit_in(connection: Connection, bench: Workbench) -> UUID:
    with bench.store.use_connection(connection) as transaction:
        return submit(transaction, bench.kinds.get(KIND), 1, Request(), items=None, max_bytes=MAX_BYTES).job.id


def since(hand: Hand) -> list[object]:
    return [moment for _, moment in hand.marks.claim_looks()]


def test_marks_move_with_what_was_served(hand: Hand) -> None:
    begun = hand.bench.clock.held()
    hand.move_on()
    assert since(hand) > [begun], "claims do not begin at the beginning any more"


def test_a_job_that_commits_late_is_served_at_once(hand: Hand) -> None:
    """Its turn is from before the ones that were served meanwhile, and claims have long gone past it."""
    with open_transaction(hand.bench.store) as connection:
        late = submit_in(connection, hand.bench)
        turn = hand.bench.clock.held()
        hand.move_on()
        assert since(hand) > [turn], "claims do not wait for a transaction that stays open"
        connection.commit()
    assert hand.serve() == {late}


def test_a_job_that_commits_a_little_late_is_served_by_the_next_claim(hand: Hand) -> None:
    """While its transaction is young, no claim goes past it: nobody has to look again."""
    hand.move_on()
    with open_transaction(hand.bench.store) as connection:
        late = submit_in(connection, hand.bench)
        hand.bench.clock.advance(0.9)
        for _ in range(3):
            look(hand.bench.store, KIND, hand.marks)
        connection.commit()
    with sent_to(hand.bench.store) as sent:
        assert hand.serve() == {late}
    assert len(sent) == 1


def test_a_job_that_was_locked_and_let_go_is_served(hand: Hand) -> None:
    """Passed over while somebody had it, and not forgotten."""
    locked = hand.bench.submit(KIND).job.id
    with open_transaction(hand.bench.store) as connection:
        connection.execute(select(jobs.c.id).where(jobs.c.id == locked).with_for_update())
        hand.move_on()
        assert hand.claim() == Claim((), 0.0), "it is due, nobody waits for its lock, and it is worth another try"
    assert hand.serve() == {locked}


@pytest.mark.parametrize("priority", [7, 1, -7])
def test_a_priority_nobody_has_heard_of_is_served(hand: Hand, priority: int) -> None:
    for known in (5, 0, -5):
        hand.bench.submit(KIND, priority=known)
    assert len(hand.serve()) == 3
    hand.move_on()
    job = hand.bench.submit(KIND, priority=priority).job.id
    assert hand.serve() == {job}


def test_a_higher_priority_comes_first_from_the_marks_on(hand: Hand) -> None:
    for priority in (0, 5):
        hand.bench.submit(KIND, priority=priority)
    hand.serve()
    hand.move_on()
    submitted = []
    for priority in (0, 5, 0, 5):
        submitted.append(hand.bench.submit(KIND, priority=priority).job.id)
        hand.bench.clock.advance(1)
    served = [hand.serve(size=1) for _ in range(4)]
    assert served == [{submitted[number]} for number in (1, 3, 0, 2)]


def test_a_clock_that_is_set_back_begins_again(hand: Hand) -> None:
    hand.move_on()
    hand.bench.clock.advance(-900)
    job = hand.bench.submit(KIND).job.id
    assert hand.serve() == {job}


def test_what_is_put_in_line_again_gets_a_turn_that_claims_look_at(hand: Hand) -> None:
    """Its item was ready long ago, while it was paused; its turn is now."""
    bench = hand.bench
    job = bench.submit(KIND).job.id
    held = bench.claim(KIND)
    bench.store.write(lambda one: control.pause(one, job, SYSTEM))
    bench.record(held, outcomes.released())
    hand.move_on()
    bench.store.write(lambda one: control.resume(one, job, SYSTEM))
    [turn] = bench.store.read(lambda one: one.values(datetime, select(jobs.c.next_claim_at).where(jobs.c.id == job)))
    assert turn == bench.clock.held()
    assert hand.serve() == {job}


def test_marks_of_one_lane_do_not_hide_what_another_leaves(hand: Hand) -> None:
    """A lane of another process dies after its claim: its item comes back, behind the marks of ours."""
    bench = hand.bench
    job = bench.submit(KIND).job.id
    assert len(bench.claim(KIND, "w2", lease=1)) == 1
    hand.move_on()
    bench.sweep()
    bench.clock.advance(60)
    assert hand.serve() == {job}
