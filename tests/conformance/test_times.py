"""How long a job has taken, and how long the rest will take: right through pauses, deaths, kills and new runs."""

from __future__ import annotations

from uuid import UUID

import pytest

from penstock.lifecycle import outcomes
from penstock.lifecycle.callers import SYSTEM, owner
from penstock.lifecycle.job import Job
from penstock.lifecycle.states import JobState
from penstock.operations import control
from penstock.operations.maintenance import rescue_from
from penstock.operations.reprocess import reprocess
from penstock.testing.drive import SUSPECT_DEATHS, Workbench
from tests.conformance.steps import DONE, FAILED, RETRIED, write

pytestmark = pytest.mark.usefixtures("rows_are_true_in_the_end")


def taken(bench: Workbench, job_id: UUID) -> tuple[float, float, float]:
    """How long it has waited, worked and been paused."""
    times = bench.job(job_id).times_at(bench.clock.held())
    assert times.total == pytest.approx(times.waiting + times.active + times.paused)
    return times.waiting, times.active, times.paused


def left(bench: Workbench, job: Job) -> float | None:
    return bench.job(job.id).seconds_left(bench.clock.held())


def work(bench: Workbench, items: int, *, seconds: float, at_once: int = 1, kind: str = "bulk") -> None:
    """So many items, ``at_once`` of which take so many seconds."""
    for _ in range(items // at_once):
        held = bench.claim(kind, size=at_once)
        assert held
        bench.clock.advance(seconds)
        assert bench.record(held, DONE)


def test_waiting_working_and_pauses_are_kept_apart(bench: Workbench) -> None:
    job = bench.submit("bulk", items=[1, 2]).job
    bench.clock.advance(3)
    assert taken(bench, job.id) == (3, 0, 0)
    work(bench, 1, seconds=10)
    assert taken(bench, job.id) == (3, 10, 0)
    write(bench, control.pause, job.id, SYSTEM)
    bench.clock.advance(100)
    assert taken(bench, job.id) == (3, 10, 100), "while it is paused, nothing else passes"
    write(bench, control.resume, job.id, SYSTEM)
    bench.clock.advance(2)
    work(bench, 1, seconds=5)
    assert taken(bench, job.id) == (5, 15, 100), "a resume begins nothing anew"
    bench.record(bench.claim("bulk"), DONE)
    bench.clock.advance(1000)
    assert bench.job(job.id).state is JobState.SUCCEEDED
    assert taken(bench, job.id) == (5, 15, 100), "what comes after the end is not counted"


def test_a_new_run_goes_on_from_what_the_runs_before_have_taken(bench: Workbench) -> None:
    job = bench.submit("limited", items=[1]).job
    bench.clock.advance(1)
    held = bench.claim("limited")
    bench.clock.advance(10)
    bench.record(held, FAILED)
    bench.record(bench.claim("limited"), DONE)
    bench.clock.advance(86_400)
    write(bench, reprocess, bench.kinds.get("limited"), job.id, SYSTEM)
    assert taken(bench, job.id) == (1, 10, 0), "the day between the runs is nobody's"
    bench.clock.advance(4)
    work(bench, 1, seconds=20, kind="limited")
    assert taken(bench, job.id) == (5, 30, 0)


@pytest.mark.parametrize("is_paused", [False, True])
def test_a_kill_ends_all_times(bench: Workbench, is_paused: bool) -> None:
    job = bench.submit("bulk", owner="ann", items=[1, 2]).job
    bench.claim("bulk", size=1)
    bench.clock.advance(7)
    if is_paused:
        write(bench, control.pause, job.id, owner("ann"))
        bench.clock.advance(5)
    write(bench, control.cancel, job.id, owner("ann"))
    bench.clock.advance(1000)
    assert taken(bench, job.id) == (0, 7, 5 if is_paused else 0)
    assert left(bench, job) is None


def test_a_backoff_is_waiting_and_not_working(bench: Workbench) -> None:
    job = bench.submit("single").job
    held = bench.claim("single")
    bench.clock.advance(2)
    bench.record(held, RETRIED)
    bench.clock.advance(6)
    held = bench.claim("single")
    bench.clock.advance(3)
    bench.record(held, DONE)
    assert taken(bench, job.id) == (6, 5, 0)


def test_a_follower_works_while_its_leader_does(bench: Workbench) -> None:
    bench.submit("single", owner="ann", unique_key="k")
    follower = bench.submit("single", owner="bob", unique_key="k").job
    bench.clock.advance(2)
    held = bench.claim("single")
    bench.clock.advance(9)
    bench.record(held, DONE)
    assert bench.job(follower.id).state is JobState.SUCCEEDED
    assert taken(bench, follower.id) == (2, 9, 0)


# What is left -----------------------------------------------------------------------------------------------------


def test_nothing_is_said_until_it_is_known(bench: Workbench) -> None:
    job = bench.submit("bulk", items=list(range(1000))).job
    assert left(bench, job) is None
    work(bench, 1, seconds=19)
    assert left(bench, job) is None, "one item says nothing of a thousand"
    work(bench, 40, seconds=0.01, at_once=20)
    assert left(bench, job) is not None


def test_what_is_left_follows_the_recent_past(bench: Workbench) -> None:
    job = bench.submit("bulk", items=list(range(2000))).job
    work(bench, 100, seconds=1, at_once=10)
    assert left(bench, job) == pytest.approx(190)
    work(bench, 100, seconds=10, at_once=10)
    slow = left(bench, job)
    assert slow == pytest.approx(1800, rel=0.15), "it has become ten times as slow"
    work(bench, 1000, seconds=1, at_once=10)
    assert left(bench, job) == pytest.approx(80, rel=0.15), "and is as fast as before"


def test_items_that_take_minutes_have_a_pace_too(bench: Workbench) -> None:
    job = bench.submit("bulk", items=list(range(10))).job
    work(bench, 2, seconds=300)
    assert left(bench, job) is None
    work(bench, 1, seconds=300)
    assert left(bench, job) == pytest.approx(7 * 300)
    bench.clock.advance(299)
    assert left(bench, job) == pytest.approx(7 * 300), "it does not waver while the next one runs"


def test_a_plan_is_no_part_of_the_pace(bench: Workbench) -> None:
    job = bench.submit("planned").job
    [plan] = bench.claim("planned")
    bench.plan(plan, list(range(1000)))
    bench.clock.advance(195)
    assert left(bench, job) is None, "what there is to do is not known yet"
    bench.record([plan], DONE)
    work(bench, 100, seconds=1, at_once=10, kind="planned")
    assert left(bench, job) == pytest.approx(90)


def test_after_a_pause_the_pace_is_not_known_until_it_is_measured_again(bench: Workbench) -> None:
    job = bench.submit("bulk", items=list(range(1000))).job
    work(bench, 500, seconds=1, at_once=10)
    assert left(bench, job) == pytest.approx(50)
    write(bench, control.pause, job.id, SYSTEM)
    bench.clock.advance(600)
    assert left(bench, job) is None
    write(bench, control.resume, job.id, SYSTEM)
    assert left(bench, job) is None
    work(bench, 4, seconds=1, at_once=2)
    assert left(bench, job) is None, "two seconds are too little to know"
    work(bench, 8, seconds=1, at_once=2)
    assert left(bench, job) == pytest.approx(488 / 2)


def test_a_new_run_has_a_pace_of_its_own(bench: Workbench) -> None:
    job = bench.submit("limited", items=list(range(100))).job
    for _ in range(10):
        held = bench.claim("limited", size=10)
        bench.clock.advance(1)
        bench.record(held, FAILED)
    bench.record(bench.claim("limited"), DONE)
    bench.clock.advance(3600)
    write(bench, reprocess, bench.kinds.get("limited"), job.id, SYSTEM)
    assert left(bench, job) is None
    work(bench, 2, seconds=20, kind="limited")
    assert left(bench, job) is None, "how fast it failed says nothing"
    work(bench, 68, seconds=20, kind="limited")
    assert left(bench, job) == pytest.approx(30 * 20)


def test_a_worker_that_dies_does_not_change_the_pace(bench: Workbench) -> None:
    job = bench.submit("bulk", items=list(range(1000))).job
    work(bench, 300, seconds=1, at_once=10)
    before = left(bench, job)
    assert before is not None
    assert before == pytest.approx(70)
    bench.claim("bulk", "w9", size=10)
    bench.clock.advance(300)
    silent = left(bench, job)
    assert silent is not None
    assert silent > 4 * before, "nothing has ended for five minutes"
    rescue_from(bench.store, bench.kinds, "w9", SUSPECT_DEATHS)
    assert left(bench, job) == pytest.approx(before), "what it held in vain says nothing of the others"
    held = bench.claim("bulk", size=10)
    bench.clock.advance(1)
    bench.record(held, DONE)
    assert left(bench, job) == pytest.approx(69)


def test_after_hours_without_workers_the_pace_is_soon_right_again(bench: Workbench) -> None:
    job = bench.submit("bulk", items=list(range(3000))).job
    work(bench, 300, seconds=1, at_once=10)
    held = bench.claim("bulk", size=10)
    bench.record(held, outcomes.released())
    bench.clock.advance(36_000)
    work(bench, 600, seconds=1, at_once=10)
    assert left(bench, job) == pytest.approx(210, rel=0.3)


def test_who_finalizes_says_nothing_of_what_is_left(bench: Workbench) -> None:
    job = bench.submit("bulk", items=list(range(20))).job
    work(bench, 20, seconds=1)
    assert bench.job(job.id).state is JobState.RUNNING
    assert left(bench, job) is None
