"""The work of a job that is over, submitted again."""

from __future__ import annotations

from uuid import uuid4

import pytest

from penstock.errors import JobNotFound, KindUnknown, TransitionRefused
from penstock.lifecycle.callers import SYSTEM, Caller, admin, owner
from penstock.lifecycle.job import Job
from penstock.lifecycle.kind import Kinds
from penstock.lifecycle.states import ItemRole, JobState
from penstock.operations import control
from penstock.operations.rerun import rerun
from penstock.testing.drive import Workbench
from tests.conformance.steps import DONE, FAILED, history, items, write

pytestmark = pytest.mark.usefixtures("rows_are_true_in_the_end")
S = JobState


def run_again(bench: Workbench, job: Job, by: Caller = SYSTEM) -> Job:
    again: Job = write(bench, rerun, bench.kinds, job.id, by, max_bytes=1_000)
    return again


def test_a_single_step_has_the_same_params_owner_title_and_priority(bench: Workbench) -> None:
    job = bench.submit("single", {"n": 1}, owner="ann", title="one", priority=7).job
    bench.record(bench.claim("single"), FAILED)
    again = run_again(bench, job, owner("ann"))
    assert again.id != job.id
    assert (again.state, again.params, again.user_id, again.title, again.priority) == (
        S.QUEUED, {"n": 1}, "ann", "one", 7,
    )  # fmt: skip
    assert [line.actor_id for line in history(bench, again.id)] == ["ann"]
    assert bench.job(job.id).state is S.FAILED, "the first stays as it is"
    bench.record(bench.claim("single"), DONE)
    assert bench.job(again.id).state is S.SUCCEEDED


def test_items_that_were_given_are_given_again(bench: Workbench) -> None:
    job = bench.submit("bulk", {"p": 1}, items=list(range(2_500))).job
    write(bench, control.cancel, job.id, SYSTEM)
    again = run_again(bench, job)
    assert again.progress.total == 2_500
    assert [item.input for item in items(bench, again.id)][:3] == [0, 1, 2]
    write(bench, control.cancel, again.id, SYSTEM)


def test_a_plan_is_made_anew(bench: Workbench) -> None:
    job = bench.submit("planned", {"p": 1}).job
    [plan] = bench.claim("planned")
    bench.plan(plan, [1, 2, 3])
    bench.record([plan], DONE)
    write(bench, control.cancel, job.id, SYSTEM)
    again = run_again(bench, job)
    assert again.progress.total == 0
    assert [item.role for item in bench.claim("planned")] == [ItemRole.PLAN]


def test_who_followed_is_given_the_work_of_the_leader(bench: Workbench) -> None:
    leader = bench.submit("bulk", owner="ann", unique_key="k", items=[1, 2]).job
    follower = bench.submit("bulk", owner="bob", unique_key="k", items=[1, 2]).job
    bench.drive_to_end()
    assert bench.job(follower.id).state is S.SUCCEEDED
    again = run_again(bench, follower, owner("bob"))
    assert (again.leader_id, again.progress.total) == (None, 2)
    assert run_again(bench, leader, owner("ann")).leader_id == again.id, "the same work is done once"


def test_a_job_that_is_not_over_or_not_ones_own_is_refused(bench: Workbench) -> None:
    job = bench.submit("single", owner="ann").job
    with pytest.raises(TransitionRefused, match="wait until it is over, or cancel it first"):
        run_again(bench, job, owner("ann"))
    write(bench, control.cancel, job.id, SYSTEM)
    with pytest.raises(JobNotFound):
        run_again(bench, job, owner("bob"))
    with pytest.raises(JobNotFound):
        write(bench, rerun, bench.kinds, uuid4(), SYSTEM, max_bytes=1_000)
    with pytest.raises(KindUnknown):
        write(bench, rerun, Kinds(), job.id, SYSTEM, max_bytes=1_000)
    assert run_again(bench, job, admin("root")).user_id == "ann"
