"""The scheduler can be believed: what it is given to find it finds, and what it did can be repeated."""

from __future__ import annotations

from math import comb
from typing import Any

import pytest
from sqlalchemy import bindparam, select, update

from penstock.errors import StoreUnavailable
from penstock.store.tables import jobs
from penstock.store.transaction import Transaction
from penstock.testing.fault_points import StoppedDead
from tests.interleavings.explorer import Explorer
from tests.interleavings.schedule import Fault, Harm, Schedule
from tests.interleavings.scheduler import Operation, Scheduler, follow, one_after_the_other

PRIORITY = select(jobs.c.priority)
RAISE = update(jobs).values(priority=bindparam("the_priority"))
OF_TITLE = update(jobs).where(jobs.c.title == bindparam("the_title")).values(priority=jobs.c.priority + 1)


@pytest.fixture
def scheduler(on_postgresql: Explorer) -> Scheduler:
    on_postgresql.enter("two_running")
    on_postgresql.database.restore()
    return on_postgresql.scheduler


def in_write(explorer: Explorer, name: str, part: Any, *, by_worker: bool = False) -> Operation:
    return Operation(name, lambda _slot: explorer.database.store.write(part), by_worker)


def add_one(transaction: Transaction) -> int:
    """Reads, adds in the program and writes: what is called a lost update when two do it at once."""
    priority = max(transaction.values(int, PRIORITY))
    transaction.execute(RAISE, {"the_priority": priority + 1})
    return priority + 1


def raise_in_order(*titles: str) -> Any:
    def part(transaction: Transaction) -> None:
        for title in titles:
            transaction.execute(OF_TITLE, {"the_title": title})

    return part


def test_a_lost_update_is_seen_in_the_order_that_loses_it(on_postgresql: Explorer, scheduler: Scheduler) -> None:
    both = [in_write(on_postgresql, "one", add_one), in_write(on_postgresql, "two", add_one)]
    ran = scheduler.run(both, one_after_the_other([1, 0]))
    assert [task.answer for task in ran.tasks] == [2, 1]
    on_postgresql.database.restore()
    ran = scheduler.run(both, follow([0, 1, 0, 0, 1, 1]))
    assert [task.answer for task in ran.tasks] == [1, 1]
    assert [step.name for step in ran.steps] == [*["unnamed"] * 3, "before COMMIT", "unnamed", "before COMMIT"]


def test_who_waits_for_a_lock_is_known_to_wait(on_postgresql: Explorer, scheduler: Scheduler) -> None:
    both = [
        in_write(on_postgresql, "person", raise_in_order("L")),
        in_write(on_postgresql, "worker", raise_in_order("L"), by_worker=True),
    ]
    ran = scheduler.run(both, follow([0, 1]))
    assert ran.choices == (0, 1, 0, 1)
    [wait] = ran.waits
    assert (wait.operation, wait.statement, wait.bounded) == ("worker", "unnamed", False)


def test_a_deadlock_is_broken_and_told(on_postgresql: Explorer, scheduler: Scheduler) -> None:
    both = [
        in_write(on_postgresql, "one", raise_in_order("L", "M")),
        in_write(on_postgresql, "two", raise_in_order("M", "L")),
    ]
    ran = scheduler.run(both, follow([0, 1, 0, 1]))
    assert [error for _, _, error in ran.errors] == ["40P01"]
    assert [task.error for task in ran.tasks] == [None, None]


def test_one_that_dies_leaves_the_others_to_go_on(on_postgresql: Explorer, scheduler: Scheduler) -> None:
    both = [
        in_write(on_postgresql, "dies", raise_in_order("L", "M")),
        in_write(on_postgresql, "lives", raise_in_order("L", "M")),
    ]
    ran = scheduler.run(both, follow([0, 0, 1]), Fault(0, 3, Harm.DIES))
    dead, alive = ran.tasks
    assert isinstance(dead.error, StoppedDead)
    assert alive.error is None


def test_one_whose_session_is_ended_tries_again_or_says_so(on_postgresql: Explorer, scheduler: Scheduler) -> None:
    one = [in_write(on_postgresql, "one", raise_in_order("L"))]
    for point, error in ((1, None), (2, StoreUnavailable)):
        on_postgresql.database.restore()
        [task] = scheduler.run(one, follow([]), Fault(0, point, Harm.IS_CUT)).tasks
        assert type(task.error) is (type(None) if error is None else error)


def test_a_schedule_is_repeated_to_the_letter(on_postgresql: Explorer) -> None:
    schedule = Schedule("lead_running", ("cancel L", "done h1"), (0, 1, 0, 1))
    first = on_postgresql.replay(schedule)
    assert first is not None
    again = on_postgresql.replay(Schedule("lead_running", ("cancel L", "done h1"), first.choices))
    assert again is not None
    assert [(step.slot, step.name) for step in again.steps] == [(step.slot, step.name) for step in first.steps]


def test_every_interleaving_of_two_is_tried_once(on_postgresql: Explorer) -> None:
    """Three steps each that have nothing to do with each other: as many as there are ways to mix them."""
    on_postgresql.enter("two_running")
    before = on_postgresql.schedules
    assert on_postgresql.explore(("cancel L", "cancel M"), 1000)
    one_by_one = 2
    assert on_postgresql.schedules - before == comb(6, 3) + one_by_one
