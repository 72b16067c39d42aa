"""What a sweep notices: limits that were exceeded, results nobody used, and jobs that fell out of line."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import update

from penstock.errors import TransitionRefused
from penstock.lifecycle.callers import SYSTEM
from penstock.lifecycle.job import SubmitOutcome
from penstock.lifecycle.kind import Kind
from penstock.lifecycle.policy import Policy
from penstock.lifecycle.states import Actor, ErrorType, JobState, KilledBy
from penstock.lifecycle.transitions import SUBMIT
from penstock.operations import control, maintenance
from penstock.store.tables import jobs
from penstock.testing.drive import LEASE, Workbench
from tests.conformance.steps import DONE, history, write
from tests.properties.engine_kinds import process

pytestmark = pytest.mark.usefixtures("rows_are_true_in_the_end")
S = JobState


def test_who_waits_too_long_fails(bench: Workbench) -> None:
    job = bench.submit("limited").job
    bench.clock.advance(60)
    assert bench.sweep().waited_too_long == 0
    bench.clock.advance(0.001)
    assert bench.sweep().waited_too_long == 1
    failed = bench.job(job.id)
    assert (failed.state, failed.error_code, failed.error_type, failed.killed_by) == (
        S.FAILED, "QUEUE_WAIT_EXCEEDED", ErrorType.RETRYABLE, None,
    )  # fmt: skip
    assert bench.claim("limited") == []


def test_what_nobody_submits_is_canceled_by_the_system(bench: Workbench) -> None:
    forgotten, late = (bench.submit("limited", hold=True).job.id for _ in range(2))
    shared = bench.submit("limited", hold=True, unique_key="u").job.id
    bench.clock.advance(70)
    assert bench.sweep().never_submitted == 0
    assert write(bench, control.let_flow, SUBMIT, late, SYSTEM)
    bench.clock.advance(0.001)
    assert bench.sweep().never_submitted == 2
    assert bench.sweep().never_submitted == 0
    canceled = bench.job(forgotten)
    assert (canceled.state, canceled.killed_by, canceled.canceled_at) == (
        S.CANCELED, KilledBy.SYSTEM, bench.clock.held(),
    )  # fmt: skip
    assert canceled.killed_reason == "nobody submitted the job within 70 s of its creation; create it again"
    [created, ended] = history(bench, forgotten)
    assert (created.to_state, ended.to_state, ended.actor, ended.reason) == (
        S.CREATED, S.CANCELED, Actor.SYSTEM, canceled.killed_reason,
    )  # fmt: skip
    assert bench.job(late).state is S.QUEUED
    assert bench.job(shared).state is S.CANCELED
    assert bench.submit("limited", unique_key="u").answer is SubmitOutcome.NEW, "its key is free"
    with pytest.raises(TransitionRefused, match="is canceled: submit is possible only while it is created"):
        write(bench, control.let_flow, SUBMIT, forgotten, SYSTEM)


def test_who_runs_too_long_fails_and_is_said_to_be_killed(bench: Workbench) -> None:
    job = bench.submit("limited", items=[1, 2]).job
    held = bench.claim("limited", size=1, lease=1000)
    bench.clock.advance(120)
    assert bench.sweep().ran_too_long == 0
    bench.clock.advance(0.001)
    assert bench.sweep().ran_too_long == 1
    failed = bench.job(job.id)
    assert (failed.state, failed.error_code, failed.killed_by, failed.error_type) == (
        S.FAILED, "JOB_TIMEOUT", KilledBy.TIMEOUT, ErrorType.TERMINAL,
    )  # fmt: skip
    assert failed.killed_reason == failed.last_error == "the job ran longer than 120 s"
    bench.record(held, DONE)
    assert (bench.job(job.id).state, bench.job(job.id).progress.processed) == (S.FAILED, 1)


def test_a_result_nobody_used_is_abandoned_and_pruned(bench: Workbench) -> None:
    job = bench.submit("limited").job
    bench.drive_to_end()
    assert bench.job(job.id).result == {"ok": True}
    bench.clock.advance(200)
    assert bench.sweep().abandoned == 0
    bench.clock.advance(0.001)
    assert bench.sweep().abandoned == 1
    after = bench.job(job.id)
    assert (after.state, after.result, after.abandoned_at) == (S.ABANDONED, None, bench.clock.held())
    assert history(bench, job.id)[-1].actor is Actor.SYSTEM


def test_a_result_is_kept_where_the_kind_does_not_prune(bench: Workbench) -> None:
    bench.kinds.add(Kind.of("kept", process, Policy(abandon_after=10)))
    job = bench.submit("kept").job
    bench.drive_to_end()
    bench.clock.advance(11)
    bench.sweep()
    assert (bench.job(job.id).state, bench.job(job.id).result) == (S.ABANDONED, {"ok": True})


def test_a_used_result_is_left_alone(bench: Workbench) -> None:
    job = bench.submit("limited").job
    bench.drive_to_end()
    write(bench, control.commit, job.id, SYSTEM)
    bench.clock.advance(1000)
    assert bench.sweep().total == 0


def test_a_kind_nobody_knows_any_more_is_rescued_by_the_default_rules(bench: Workbench) -> None:
    bench.submit("bulk", items=[1])
    bench.claim("bulk")
    bench.clock.advance(LEASE + 1)
    assert Workbench(bench.store, bench.clock, []).sweep().leases_expired == 1


def test_what_fell_out_of_line_is_put_back(bench: Workbench) -> None:
    job = bench.submit("bulk", items=[1]).job
    bench.store.write(lambda one: one.execute(update(jobs).values(next_claim_at=None)))
    bench.clock.advance(99)
    assert bench.sweep(stale_seconds=100).stale == 0
    bench.clock.advance(2)
    assert bench.sweep(stale_seconds=100).stale == 1
    assert [one.job_id for one in bench.claim("bulk")] == [job.id]


def test_a_job_in_somebodys_hands_is_not_stale(bench: Workbench) -> None:
    bench.submit("bulk", items=[1])
    bench.claim("bulk", lease=1000)
    bench.clock.advance(500)
    assert bench.store.write(lambda one: maintenance.rescue_stuck(one, 100)) == 0


# Whose limits hold when programs differ: those of the program that sweeps, and only for kinds it knows.


def deployed(bench: Workbench, **policy: Any) -> Workbench:
    """A program on the same database that has the kind with these limits."""
    return Workbench(bench.store, bench.clock, [Kind.of("k", process, Policy(**policy))])


def test_a_deployment_that_changes_a_limit_changes_it_for_the_jobs_that_are_there(bench: Workbench) -> None:
    before = deployed(bench, wait_limit=60, run_limit=60, abandon_after=60)
    finished = before.submit("k").job
    before.record(before.claim("k"), DONE)
    running = before.submit("k").job
    before.claim("k", lease=1e6)
    waiting = before.submit("k").job
    bench.clock.advance(50)
    longer = deployed(bench, wait_limit=90, run_limit=90, abandon_after=90)
    bench.clock.advance(20)
    assert longer.sweep().total == 0, "a limit that was raised keeps what is there"
    shorter = deployed(bench, wait_limit=30, run_limit=30, abandon_after=30)
    assert shorter.sweep().total == 3
    states = [bench.job(one.id).state for one in (finished, running, waiting)]
    assert states == [JobState.ABANDONED, JobState.FAILED, JobState.FAILED]
    assert "30 s" in str(bench.job(running.id).last_error), "the limit in force is the one that is named"


def test_the_number_of_retries_is_the_jobs_own(bench: Workbench) -> None:
    job = deployed(bench, retries=7).submit("k").job
    assert (job.max_retries, deployed(bench, retries=0).claim("k")[0].max_retries) == (7, 7)


def test_a_program_that_does_not_know_a_kind_leaves_its_limits_alone(bench: Workbench) -> None:
    knowing = deployed(bench, wait_limit=60)
    waiting = knowing.submit("k").job
    bench.clock.advance(1e6)
    assert bench.sweep().total == 0
    assert bench.job(waiting.id).state is JobState.QUEUED
    assert knowing.sweep().waited_too_long == 1
