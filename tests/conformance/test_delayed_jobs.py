"""A job for later is recorded, and released by itself when its time has come."""

from __future__ import annotations

from datetime import timedelta

import pytest

from penstock.errors import InvalidInput
from penstock.lifecycle.callers import SYSTEM, owner
from penstock.lifecycle.job import SubmitOutcome
from penstock.lifecycle.states import JobState
from penstock.operations import control
from penstock.operations.delayed_jobs import release_due
from penstock.operations.submit import submit_created
from penstock.testing.drive import Workbench
from tests.conformance.databases import needs
from tests.conformance.steps import history, write

pytestmark = pytest.mark.usefixtures("rows_are_true_in_the_end")
S = JobState
HOUR = 3_600.0


def released(bench: Workbench) -> int:
    return release_due(bench.store, bench.kinds)


@pytest.mark.parametrize("how", ["run_at", "delay"])
def test_it_is_taken_when_its_time_has_come(bench: Workbench, how: str) -> None:
    moment = bench.clock.held() + timedelta(seconds=HOUR)
    job = bench.submit("single", {"n": 1}, **({"run_at": moment} if how == "run_at" else {"delay": HOUR})).job
    assert (job.state, job.run_at, job.queued_at) == (S.CREATED, moment, None)
    bench.clock.advance(HOUR - 1)
    assert (released(bench), bench.claim("single")) == (0, [])
    bench.clock.advance(1)
    assert (released(bench), released(bench)) == (1, 0)
    assert [item.input for item in bench.claim("single")] == [{"n": 1}]
    lines = history(bench, job.id)
    assert [(line.to_state, line.actor.value, line.reason) for line in lines[:2]] == [
        (S.CREATED, "system", None),
        (S.QUEUED, "system", "its time has come"),
    ]
    assert bench.job(job.id).run_at == moment


def test_one_whose_time_has_passed_comes_with_the_next_look(bench: Workbench) -> None:
    job = bench.submit("bulk", items=[1, 2], run_at=bench.clock.held() - timedelta(days=1)).job
    assert job.state is S.CREATED
    assert released(bench) == 1
    assert len(bench.claim("bulk")) == 2


def test_its_owner_may_release_it_before(bench: Workbench) -> None:
    job = bench.submit("single", delay=HOUR, owner="ann").job
    assert write(bench, submit_created, bench.kinds.get("single"), job.id, owner("ann")) is True
    assert len(bench.claim("single")) == 1
    bench.clock.advance(HOUR)
    assert released(bench) == 0


def test_a_canceled_one_is_not_released(bench: Workbench) -> None:
    job = bench.submit("single", delay=HOUR).job
    write(bench, control.cancel, job.id, SYSTEM)
    bench.clock.advance(HOUR)
    assert (released(bench), bench.job(job.id).state) == (0, S.CANCELED)


def test_nobody_waits_for_one_that_is_for_later(bench: Workbench) -> None:
    later = bench.submit("single", unique_key="k", owner="ann", delay=HOUR)
    again = bench.submit("single", unique_key="k", owner="ann")
    other = bench.submit("single", unique_key="k", owner="bob")
    assert (again.answer, again.job.id) == (SubmitOutcome.EXISTING, later.job.id)
    assert (other.answer, other.job.leader_id) == (SubmitOutcome.NEW, None)
    bench.clock.advance(HOUR)
    assert released(bench) == 1
    # By now another one does the work: it follows that.
    assert bench.job(later.job.id).leader_id == other.job.id
    bench.drive_to_end()
    assert {bench.job(job.id).state for job in (later.job, other.job)} == {S.SUCCEEDED}


def test_it_counts_against_the_bound_from_then_on(bench: Workbench) -> None:
    later = [bench.submit("limited", delay=HOUR).job for _ in range(2)]
    now = [bench.submit("limited").job for _ in range(3)]
    assert {bench.job(job.id).state for job in now} == {S.QUEUED}
    bench.clock.advance(HOUR)
    assert released(bench) == 2
    assert {bench.job(job.id).error_code for job in later} == {"QUEUE_OVERLOAD"}


def test_a_clock_that_is_set_back_releases_nothing_early(bench: Workbench) -> None:
    job = bench.submit("single", delay=HOUR).job
    bench.clock.advance(-2 * HOUR)
    bench.sweep()
    assert (released(bench), bench.job(job.id).state) == (0, S.CREATED)
    bench.clock.advance(3 * HOUR)
    assert released(bench) == 1


def test_the_same_key_gives_the_same_delayed_job(bench: Workbench) -> None:
    first = bench.submit("single", {"n": 1}, idempotency_key="key", delay=HOUR)
    second = bench.submit("single", {"n": 1}, idempotency_key="key", delay=HOUR)
    assert (second.answer, second.job.id, second.job.run_at) == (
        SubmitOutcome.EXISTING,
        first.job.id,
        first.job.run_at,
    )


def test_kinds_that_are_not_known_here_are_left_to_others(bench: Workbench) -> None:
    job = bench.submit("single", delay=HOUR).job
    bench.clock.advance(HOUR)
    assert release_due(bench.store, type(bench.kinds)()) == 0
    assert bench.job(job.id).state is S.CREATED
    assert released(bench) == 1


def test_two_times_and_one_without_a_zone_are_refused(bench: Workbench) -> None:
    now = bench.clock.held()
    with pytest.raises(InvalidInput, match="run_at and delay contradict"):
        bench.submit("single", run_at=now, delay=1.0)
    with pytest.raises(InvalidInput, match="hold and delay contradict"):
        bench.submit("single", hold=True, delay=1.0)
    with pytest.raises(InvalidInput, match="no time zone") as refused:
        bench.submit("single", run_at=now.replace(tzinfo=None))
    assert (refused.value.field, refused.value.code) == ("run_at", "TIME_ZONE_MISSING")


@needs("writes_beside_others")
def test_somebodys_open_transaction_keeps_no_other_waiting(bench: Workbench) -> None:
    leader = bench.submit("single", unique_key="k", owner="ann").job
    follower = bench.submit("single", unique_key="k", owner="bob", delay=HOUR).job
    other = bench.submit("single", delay=HOUR + 1).job
    bench.clock.advance(HOUR + 1)
    bench.store.lock_seconds = 0.05
    with bench.store.engine.connect() as connection, bench.store.use_connection(connection) as transaction:
        control.cancel(transaction, leader.id, owner("ann"))
        assert released(bench) == 1
        assert (bench.job(follower.id).state, bench.job(other.id).state) == (S.CREATED, S.QUEUED)
    assert released(bench) == 1
