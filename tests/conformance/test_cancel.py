"""A canceled job ends at once, and says by whom and why."""

from __future__ import annotations

import pytest

from penstock.lifecycle.callers import SYSTEM, owner
from penstock.lifecycle.states import Actor, JobState, KilledBy
from penstock.operations import control
from penstock.testing.drive import Workbench
from tests.conformance.steps import DONE, history, write

pytestmark = pytest.mark.usefixtures("rows_are_true_in_the_end")
S = JobState


def test_cancel_says_who_and_why(bench: Workbench) -> None:
    job = bench.submit("bulk", owner="ann", items=[1, 2]).job
    held = bench.claim("bulk", size=1)
    canceled = write(bench, control.cancel, job.id, owner("ann"), "a\0b")
    assert (canceled.state, canceled.killed_by, canceled.killed_reason) == (S.CANCELED, KilledBy.USER, "a\ufffdb")
    assert canceled.canceled_at == bench.clock.held()
    line = history(bench, job.id)[-1]
    assert (line.from_state, line.to_state, line.actor, line.actor_id, line.reason) == (
        S.RUNNING, S.CANCELED, Actor.OWNER, "ann", "a\ufffdb",
    )  # fmt: skip
    assert bench.claim("bulk") == []
    bench.record(held, DONE)
    assert (bench.job(job.id).state, bench.job(job.id).progress.processed) == (S.CANCELED, 1)


def test_the_system_cancels_as_the_system(bench: Workbench) -> None:
    job = bench.submit("single").job
    assert write(bench, control.cancel, job.id, SYSTEM).killed_by is KilledBy.SYSTEM
