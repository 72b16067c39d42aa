"""A paused job begins nothing; resumed, it goes on where it was."""

from __future__ import annotations

import pytest

from penstock.lifecycle import outcomes
from penstock.lifecycle.callers import SYSTEM, owner
from penstock.lifecycle.states import ItemRole, JobState
from penstock.operations import control
from penstock.testing.drive import Workbench
from tests.conformance.steps import DONE, FAILED, RETRIED, write

pytestmark = pytest.mark.usefixtures("rows_are_true_in_the_end")
S = JobState


def test_after_a_pause_nothing_starts_and_what_is_out_may_end(bench: Workbench) -> None:
    job = bench.submit("bulk", owner="ann", items=[1, 2, 3]).job
    held = bench.claim("bulk", size=1)
    assert write(bench, control.pause, job.id, owner("ann"), "lunch").state is S.PAUSED
    assert bench.claim("bulk") == []
    assert bench.record(held, DONE)
    assert (bench.job(job.id).state, bench.job(job.id).progress.processed) == (S.PAUSED, 1)
    assert write(bench, control.resume, job.id, owner("ann")).state is S.QUEUED
    assert [one.position for one in bench.claim("bulk")] == [2, 3]


def test_what_comes_back_in_the_pause_waits_for_the_resume(bench: Workbench) -> None:
    job = bench.submit("bulk", items=[1]).job
    held = bench.claim("bulk")
    write(bench, control.pause, job.id, SYSTEM)
    bench.record(held, RETRIED)
    bench.clock.advance(6)
    assert bench.claim("bulk") == []
    write(bench, control.resume, job.id, SYSTEM)
    assert [one.attempt for one in bench.claim("bulk")] == [2]


def test_a_job_whose_work_ended_in_the_pause_goes_on_when_resumed(bench: Workbench) -> None:
    job = bench.submit("bulk", items=[1]).job
    held = bench.claim("bulk")
    write(bench, control.pause, job.id, SYSTEM)
    bench.record(held, DONE)
    assert write(bench, control.resume, job.id, SYSTEM).state is S.RUNNING
    assert [one.role for one in bench.claim("bulk")] == [ItemRole.FINALIZE]


@pytest.mark.parametrize(
    ("outcome", "state"), [(DONE, S.SUCCEEDED), (FAILED, S.FAILED), (outcomes.skipped("s", "S"), S.SUCCEEDED)]
)
def test_a_single_step_that_ended_in_the_pause_ends_when_resumed(
    bench: Workbench, outcome: outcomes.Outcome, state: JobState
) -> None:
    job = bench.submit("single").job
    held = bench.claim("single")
    write(bench, control.pause, job.id, SYSTEM)
    bench.record(held, outcome)
    resumed = write(bench, control.resume, job.id, SYSTEM)
    assert (resumed.state, resumed.result) == (state, {"ok": True} if outcome is DONE else None)


def test_a_paused_backoff_is_waited_out_after_the_resume(bench: Workbench) -> None:
    job = bench.submit("single").job
    bench.record(bench.claim("single"), RETRIED)
    write(bench, control.pause, job.id, SYSTEM)
    bench.clock.advance(1)
    write(bench, control.resume, job.id, SYSTEM)
    assert bench.claim("single") == []
    bench.clock.advance(4)
    assert len(bench.claim("single")) == 1
