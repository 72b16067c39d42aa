"""A job is recorded with what was asked for, and flows, waits or is refused."""

from __future__ import annotations

import pytest

from penstock.lifecycle.callers import SYSTEM
from penstock.lifecycle.job import SubmitOutcome
from penstock.lifecycle.states import ErrorType, ItemRole, JobState, Phase
from penstock.operations.submit import submit_created
from penstock.testing.drive import Workbench
from tests.conformance.steps import write

pytestmark = pytest.mark.usefixtures("rows_are_true_in_the_end")
S = JobState


def test_a_single_step_gets_its_params_as_input(bench: Workbench) -> None:
    submission = bench.submit("single", {"n": 1}, owner="ann", ip_address="10.0.0.1", priority=3)
    job = submission.job
    assert (submission.answer, job.state, job.user_id, job.priority) == (SubmitOutcome.NEW, S.QUEUED, "ann", 3)
    assert (job.run, job.attempts, job.progress.total, job.ip_address) == (1, 0, 1, "10.0.0.1")
    assert job.created_at == job.queued_at == bench.clock.held()
    [claimed] = bench.claim("single")
    assert (claimed.input, claimed.params, claimed.role) == ({"n": 1}, {"n": 1}, ItemRole.ITEM)
    assert (claimed.position, claimed.attempt, claimed.user_id) == (1, 1, "ann")


def test_the_only_item_of_a_job_that_is_finalized_has_the_params_too(bench: Workbench) -> None:
    bench.submit("bulk", {"n": 1})
    assert [one.input for one in bench.claim("bulk")] == [{"n": 1}]


def test_items_keep_their_order(bench: Workbench) -> None:
    job = bench.submit("bulk", {"p": 1}, items=[f"row {n}" for n in range(12_000)]).job
    assert (job.state, job.progress.total) == (S.QUEUED, 12_000)
    claimed = bench.claim("bulk", size=12_000)
    assert [one.input for one in claimed] == [f"row {n}" for n in range(12_000)]
    assert {str(one.params) for one in claimed} == {"{'p': 1}"}


def test_no_items_at_all_go_straight_to_finalize(bench: Workbench) -> None:
    job = bench.submit("bulk", items=[]).job
    assert (job.state, job.phase) == (S.RUNNING, Phase.FINALIZING)
    assert [one.role for one in bench.claim("bulk")] == [ItemRole.FINALIZE]


def test_no_items_and_nothing_to_finalize_is_done_at_once(bench: Workbench) -> None:
    assert bench.submit("single", items=[]).job.state is S.SUCCEEDED


def test_a_held_job_waits_until_it_is_submitted(bench: Workbench) -> None:
    job = bench.submit("bulk", items=[1, 2], hold=True).job
    assert (job.state, job.queued_at, bench.claim("bulk")) == (S.CREATED, None, [])
    assert write(bench, submit_created, bench.kinds.get("bulk"), job.id, SYSTEM) is True
    assert write(bench, submit_created, bench.kinds.get("bulk"), job.id, SYSTEM) is False
    assert len(bench.claim("bulk")) == 2


def test_beyond_the_bound_a_job_fails_at_once(bench: Workbench) -> None:
    for _ in range(3):
        assert bench.submit("limited").job.state is S.QUEUED
    refused = bench.submit("limited").job
    assert (refused.state, refused.error_code, refused.error_type) == (
        S.FAILED,
        "QUEUE_OVERLOAD",
        ErrorType.RETRYABLE,
    )
    bench.claim("limited", size=1)
    assert bench.submit("limited").job.state is S.QUEUED


def test_a_held_job_beyond_the_bound_fails_when_it_is_submitted(bench: Workbench) -> None:
    held = bench.submit("limited", owner="ann", hold=True).job
    for _ in range(3):
        bench.submit("limited")
    write(bench, submit_created, bench.kinds.get("limited"), held.id, SYSTEM)
    assert bench.job(held.id).state is S.FAILED


def test_who_follows_when_it_is_submitted_does_not_wait_for_room(bench: Workbench) -> None:
    held = bench.submit("limited", owner="ann", unique_key="u", hold=True).job
    bench.submit("limited", owner="bob", unique_key="u")
    for _ in range(2):
        bench.submit("limited")
    write(bench, submit_created, bench.kinds.get("limited"), held.id, SYSTEM)
    assert bench.job(held.id).state is S.QUEUED
