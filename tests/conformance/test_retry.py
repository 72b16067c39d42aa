"""What is tried again waits out its backoff, and keeps nobody else waiting."""

from __future__ import annotations

import pytest

from penstock.lifecycle import outcomes
from penstock.lifecycle.callers import owner
from penstock.lifecycle.states import JobState
from penstock.operations import control
from penstock.testing.drive import Workbench
from tests.conformance.steps import DONE, RETRIED, write

pytestmark = pytest.mark.usefixtures("rows_are_true_in_the_end")
S = JobState


def test_a_single_step_waits_out_its_backoff(bench: Workbench) -> None:
    job = bench.submit("single").job
    bench.record(bench.claim("single"), RETRIED)
    waiting = bench.job(job.id)
    assert (waiting.state, waiting.last_error, waiting.retries) == (S.RETRYING, "later", 1)
    bench.clock.advance(4.9)
    assert bench.claim("single") == []
    bench.clock.advance(0.1)
    [claimed] = bench.claim("single")
    assert claimed.attempt == 2
    bench.record([claimed], DONE)
    assert bench.states(job.id) == ["queued", "running", "retrying", "queued", "running", "succeeded"]
    assert (bench.job(job.id).last_error, bench.job(job.id).attempts) == (None, 2)


def test_the_sweep_requeues_what_no_worker_came_for(bench: Workbench) -> None:
    job = bench.submit("single").job
    bench.record(bench.claim("single"), RETRIED)
    bench.clock.advance(6)
    assert bench.sweep().retries_due == 1
    assert bench.job(job.id).state is S.QUEUED


def test_an_item_in_its_backoff_stays_behind_while_others_are_handed_out(bench: Workbench) -> None:
    bench.submit("bulk", items=[1, 2, 3])
    bench.record(bench.claim("bulk", size=1), RETRIED)
    bench.clock.advance(4.9)
    assert [one.position for one in bench.claim("bulk", size=1)] == [2]
    bench.clock.advance(0.1)
    assert bench.claim("bulk", size=1)[0].position == 1


def test_what_waits_for_its_backoff_is_not_hurried_by_the_sweep(bench: Workbench) -> None:
    bench.submit("bulk", items=[1])
    bench.record(bench.claim("bulk"), RETRIED)
    bench.submit("single")
    bench.record(bench.claim("single"), RETRIED)
    assert bench.sweep().total == 0
    assert bench.claim("bulk") + bench.claim("single") == []


def test_a_job_in_backoff_has_not_waited_for_a_worker(bench: Workbench) -> None:
    job = bench.submit("limited", owner="ann").job
    bench.record(bench.claim("limited"), outcomes.retried("later", "LATER", 600.0))
    write(bench, control.pause, job.id, owner("ann"))
    write(bench, control.resume, job.id, owner("ann"))
    assert bench.job(job.id).state is S.QUEUED
    bench.clock.advance(61)
    bench.sweep()
    assert bench.job(job.id).state is S.QUEUED
    bench.clock.advance(600)
    bench.sweep()
    assert bench.job(job.id).error_code == "QUEUE_WAIT_EXCEEDED"
