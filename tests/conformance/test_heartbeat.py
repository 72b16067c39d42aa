"""A worker's sign of life: it keeps what it holds, and hears what was stopped."""

from __future__ import annotations

import pytest

from penstock.lifecycle.callers import SYSTEM
from penstock.operations import control, heartbeat
from penstock.testing.drive import LEASE, Workbench
from tests.conformance.steps import DONE, write

pytestmark = pytest.mark.usefixtures("rows_are_true_in_the_end")


def test_a_heartbeat_keeps_what_is_ours_and_names_what_is_not(bench: Workbench) -> None:
    bench.submit("bulk", items=[1, 2])
    held = bench.claim("bulk")
    bench.record(held[:1], DONE)
    bench.clock.advance(20)
    assert write(bench, heartbeat.extend, held, LEASE) == heartbeat.NotExtended(lost=frozenset({held[0].item_id}))
    bench.clock.advance(20)
    assert bench.sweep().leases_expired == 0
    assert bench.record(held[1:], DONE)


def test_a_worker_hears_of_stopped_jobs(bench: Workbench) -> None:
    stopped, running, paused = (bench.submit("bulk", items=[1]).job.id for _ in range(3))
    bench.claim("bulk")
    write(bench, control.cancel, stopped, SYSTEM)
    write(bench, control.pause, paused, SYSTEM)
    assert write(bench, heartbeat.find_stopped_jobs, [stopped, running, paused]) == {stopped}


def test_a_message_is_shown_while_the_job_runs(bench: Workbench) -> None:
    job = bench.submit("bulk", items=[1]).job
    bench.claim("bulk")
    write(bench, heartbeat.say, job.id, "half\0way")
    assert bench.job(job.id).message == "half\ufffdway"
