"""Items of a finished job run again, in a new run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import update

from penstock.errors import InvalidInput, TransitionRefused
from penstock.lifecycle import outcomes
from penstock.lifecycle.callers import SYSTEM, owner
from penstock.lifecycle.kind import Kind
from penstock.lifecycle.policy import Policy
from penstock.lifecycle.states import ErrorType, ItemRole, ItemStatus, JobState
from penstock.operations import control
from penstock.operations.reprocess import reprocess
from penstock.store.tables import job_items
from penstock.testing.drive import Workbench
from penstock.testing.invariants import violations
from tests.conformance.steps import DONE, FAILED, RETRIED, history, items, write
from tests.properties.engine_kinds import PlanProcessFinalize

pytestmark = pytest.mark.usefixtures("rows_are_true_in_the_end")
S = JobState


def failed_job(bench: Workbench) -> Any:
    """A planned job of four items: done, failed for good, lost to retries, not found."""
    job = bench.submit("planned", owner="ann").job
    plan = bench.claim("planned")
    bench.plan(plan[0], [1, 2, 3, 4])
    bench.record(plan, DONE)
    held = bench.claim("planned")
    retryable = outcomes.failed("x", "X", error_type=ErrorType.RETRYABLE)
    bench.hand_in(list(zip(held, [DONE, FAILED, retryable, outcomes.not_found("n", "N")], strict=True)))
    bench.record(bench.claim("planned"), DONE)
    return bench.job(job.id)


def test_what_failed_runs_again_in_a_new_run(bench: Workbench) -> None:
    job = failed_job(bench)
    assert job.state is S.SUCCEEDED
    after = write(bench, reprocess, bench.kinds.get("planned"), job.id, owner("ann"), reason="fixed")
    assert (after.state, after.run, after.progress.processed, after.result) == (S.QUEUED, 2, 1, None)
    line = history(bench, job.id)[-1]
    assert (line.from_state, line.to_state, line.run, line.reason) == (S.SUCCEEDED, S.QUEUED, 2, "fixed")
    held = bench.claim("planned")
    assert [(one.position, one.attempt, one.run) for one in held] == [(2, 1, 2), (3, 1, 2), (4, 1, 2)]
    bench.record(held, DONE)
    [finalize] = bench.claim("planned")
    assert (finalize.role, finalize.run) == (ItemRole.FINALIZE, 2)
    bench.record([finalize], DONE)
    ended = bench.job(job.id)
    assert (ended.state, ended.progress.done, ended.progress.failed) == (S.SUCCEEDED, 4, 0)


def test_without_the_permanent_failures(bench: Workbench) -> None:
    job = failed_job(bench)
    write(bench, reprocess, bench.kinds.get("planned"), job.id, SYSTEM, permanent=False)
    assert [one.position for one in bench.claim("planned")] == [3, 4]


@pytest.mark.parametrize(
    ("codes", "statuses", "positions"),
    [
        (["NO"], [ItemStatus.ERROR, ItemStatus.NOT_FOUND], [2]),
        (["NO", "N", "none such", "\0"], [ItemStatus.ERROR, ItemStatus.NOT_FOUND], [2, 4]),
        (["NO", "N"], [ItemStatus.NOT_FOUND], [4]),
        ([None], [ItemStatus.DONE, ItemStatus.ERROR], [1]),
        (["X", None], [ItemStatus.DONE, ItemStatus.ERROR], [1, 3]),
    ],
)
def test_only_those_with_a_code(
    bench: Workbench, codes: list[str | None], statuses: list[ItemStatus], positions: list[int]
) -> None:
    job = failed_job(bench)
    write(bench, reprocess, bench.kinds.get("planned"), job.id, SYSTEM, statuses=statuses, error_codes=codes)
    assert [one.position for one in bench.claim("planned")] == positions


def test_codes_nothing_ended_with_are_told(bench: Workbench) -> None:
    job, kind = failed_job(bench), bench.kinds.get("planned")
    with pytest.raises(InvalidInput, match="1 to 100 error codes"):
        write(bench, reprocess, kind, job.id, SYSTEM, error_codes=[])
    with pytest.raises(InvalidInput, match="1 to 100 error codes"):
        write(bench, reprocess, kind, job.id, SYSTEM, error_codes=["NO"] * 101)
    with pytest.raises(TransitionRefused, match="no item to reprocess"):
        write(bench, reprocess, kind, job.id, SYSTEM, error_codes=["NO SUCH", None])
    assert bench.job(job.id).state is S.SUCCEEDED


def test_without_new_tries_only_those_that_have_some_left(bench: Workbench) -> None:
    job = failed_job(bench)
    second = job.progress.total - 2
    bench.store.write(
        lambda one: one.execute(
            update(job_items)
            .where(job_items.c.job_id == job.id, job_items.c.position == second)
            .values(attempts=3)
        )
    )  # fmt: skip
    write(bench, reprocess, bench.kinds.get("planned"), job.id, SYSTEM, reset_attempts=False)
    # What was not found has one try with this kind, and has used it.
    assert [(one.position, one.attempt) for one in bench.claim("planned")] == [(3, 2)]


def test_without_new_tries_each_status_has_its_own_bound(bench: Workbench) -> None:
    """Three tries may fail, and two find nothing; an outage before it leaves what is not found its second try."""
    patient = Kind.of("patient", PlanProcessFinalize, Policy(reprocess=True, retries=2, not_found_retries=1))
    bench.kinds.add(patient)
    job = bench.submit("patient", items=[1, 2, 3]).job
    nothing, nothing_yet = outcomes.not_found("n", "N"), outcomes.not_found_yet("n", "N", 1.0)
    for ends in ([RETRIED, nothing_yet, RETRIED], [nothing, nothing, nothing_yet], [FAILED]):
        held = bench.claim("patient")
        bench.hand_in(list(zip(held, ends, strict=True)))
        bench.clock.advance(6)
    bench.record(bench.claim("patient"), DONE)
    shown = [(one.status.value, one.attempts) for one in items(bench, job.id)]
    assert shown == [("NOT_FOUND", 2), ("NOT_FOUND", 2), ("ERROR", 3)]
    write(bench, reprocess, patient, job.id, SYSTEM, reset_attempts=False)
    again = bench.claim("patient")
    assert [(one.position, one.attempt, one.not_found_attempts) for one in again] == [(1, 3, 1), (3, 4, 1)]


def test_new_tries_do_not_forget_how_often_it_was_not_found(bench: Workbench) -> None:
    """Who asks another way each time goes on with the next one."""
    patient = Kind.of("patient", PlanProcessFinalize, Policy(reprocess=True, not_found_retries=1))
    bench.kinds.add(patient)
    job = bench.submit("patient", items=[1]).job
    bench.record(bench.claim("patient"), outcomes.not_found_yet("n", "N", 1.0))
    bench.clock.advance(6)
    bench.record(bench.claim("patient"), outcomes.not_found("n", "N"))
    bench.record(bench.claim("patient"), DONE)
    write(bench, reprocess, patient, job.id, SYSTEM)
    [again] = bench.claim("patient")
    assert (again.attempt, again.not_found_attempts, again.earlier_not_found) == (1, 0, 2)


def test_only_the_named_items(bench: Workbench) -> None:
    job = failed_job(bench)
    chosen = [one.id for one in items(bench, job.id) if one.position in (1, 3)]
    write(bench, reprocess, bench.kinds.get("planned"), job.id, SYSTEM, item_ids=chosen)
    assert [one.position for one in bench.claim("planned")] == [3]


def test_another_jobs_items_are_not_touched(bench: Workbench) -> None:
    job, other = failed_job(bench), failed_job(bench)
    theirs = [one.id for one in items(bench, other.id)]
    write(bench, reprocess, bench.kinds.get("planned"), job.id, SYSTEM, item_ids=theirs)
    assert [one.role for one in bench.claim("planned")] == [ItemRole.FINALIZE]
    assert bench.job(other.id) == other


def test_a_kind_that_is_final_refuses(bench: Workbench) -> None:
    job = bench.submit("single").job
    bench.record(bench.claim("single"), FAILED)
    with pytest.raises(TransitionRefused, match="what they ended as is final") as refused:
        write(bench, reprocess, bench.kinds.get("single"), job.id, SYSTEM)
    assert refused.value.code == "REPROCESS_NOT_ALLOWED"


@pytest.mark.parametrize("end", [control.commit, control.abandon])
def test_what_was_used_or_given_up_is_final(bench: Workbench, end: Callable[..., Any]) -> None:
    job = failed_job(bench)
    write(bench, end, job.id, SYSTEM)
    with pytest.raises(TransitionRefused, match="only a succeeded or failed job is reprocessed"):
        write(bench, reprocess, bench.kinds.get("planned"), job.id, SYSTEM)


def test_nothing_to_run_again_is_refused_and_changes_nothing(bench: Workbench) -> None:
    job = bench.submit("again").job
    bench.drive_to_end()
    before = bench.job(job.id)
    with pytest.raises(TransitionRefused) as refused:
        write(bench, reprocess, bench.kinds.get("again"), job.id, SYSTEM)
    assert (refused.value.code, bench.job(job.id)) == ("NOTHING_TO_REPROCESS", before)


def test_a_key_in_use_is_refused(bench: Workbench) -> None:
    job = bench.submit("again", unique_key="u").job
    bench.record(bench.claim("again"), FAILED)
    bench.submit("again", unique_key="u")
    with pytest.raises(TransitionRefused, match="another 'again' job of key 'u' is active") as refused:
        write(bench, reprocess, bench.kinds.get("again"), job.id, SYSTEM)
    assert refused.value.code == "UNIQUE_KEY_IN_USE"


@pytest.mark.parametrize("ending", [outcomes.not_found("gone", "GONE"), outcomes.skipped("same", "SAME"), FAILED])
def test_a_plan_that_made_nothing_runs_again(bench: Workbench, ending: Any) -> None:
    job = bench.submit("planned").job
    bench.record(bench.claim("planned"), ending)
    assert bench.job(job.id).state is S.FAILED
    write(bench, reprocess, bench.kinds.get("planned"), job.id, SYSTEM)
    [plan] = bench.claim("planned")
    assert (plan.role, plan.run, bench.plan(plan, [1, 2])) == (ItemRole.PLAN, 2, 2)


def test_a_follower_has_nothing_of_its_own_to_run(bench: Workbench) -> None:
    bench.submit("again", owner="ann", unique_key="u")
    follower = bench.submit("again", owner="bob", unique_key="u").job
    bench.record(bench.claim("again"), FAILED)
    with pytest.raises(TransitionRefused, match="has no items of its own"):
        write(bench, reprocess, bench.kinds.get("again"), follower.id, owner("bob"))


def test_a_plan_that_failed_is_planned_on(bench: Workbench) -> None:
    job = bench.submit("planned").job
    for _ in range(2):
        bench.record(bench.claim("planned"), RETRIED)
        bench.clock.advance(6)
    [plan] = bench.claim("planned")
    bench.plan(plan, ["a"])
    bench.record([plan], FAILED)
    write(bench, reprocess, bench.kinds.get("planned"), job.id, SYSTEM, reset_attempts=False)
    [again, item] = bench.claim("planned")
    assert (again.role, again.attempt, again.run, bench.plan(again, ["b"])) == (ItemRole.PLAN, 1, 2, 2)
    assert (item.role, item.input) == (ItemRole.ITEM, "a")


def test_a_plan_that_never_ran_runs(bench: Workbench) -> None:
    impatient = Kind.of("impatient", PlanProcessFinalize, Policy(reprocess=True, wait_limit=10))
    bench.kinds.add(impatient)
    job = bench.submit("impatient").job
    bench.clock.advance(11)
    bench.sweep()
    assert bench.job(job.id).state is S.FAILED
    write(bench, reprocess, impatient, job.id, SYSTEM)
    assert [one.role for one in bench.claim("impatient")] == [ItemRole.PLAN]


@pytest.mark.parametrize("returned", [False, True], ids=["in hands", "returned"])
def test_a_finalize_of_the_run_before_cannot_end_the_new_one(bench: Workbench, returned: bool) -> None:
    job = bench.submit("limited", items=[1]).job
    bench.record(bench.claim("limited"), FAILED)
    old = bench.claim("limited", lease=1000)
    if returned:
        bench.record(old, RETRIED)
    bench.clock.advance(121)
    bench.sweep()
    assert bench.job(job.id).error_code == "JOB_TIMEOUT"
    write(bench, reprocess, bench.kinds.get("limited"), job.id, SYSTEM)
    assert bench.record(old, DONE) == frozenset()
    assert violations(bench.store) == []
    assert bench.drive_to_end() == []
    assert (bench.job(job.id).state, bench.job(job.id).run) == (S.SUCCEEDED, 2)


@pytest.mark.parametrize("statuses", [[ItemStatus.PENDING], [ItemStatus.PROCESSING, ItemStatus.DONE]])
def test_only_what_ended_can_run_again(bench: Workbench, statuses: list[ItemStatus]) -> None:
    job = failed_job(bench)
    with pytest.raises(InvalidInput, match="only items that ended") as refused:
        write(bench, reprocess, bench.kinds.get("planned"), job.id, SYSTEM, statuses=statuses)
    assert refused.value.field == "statuses"


def test_the_number_of_named_items_is_bounded(bench: Workbench) -> None:
    for ids in ([], list(range(10_001))):
        with pytest.raises(InvalidInput, match="name 1 to 10,000 items"):
            write(bench, reprocess, bench.kinds.get("planned"), failed_job(bench).id, SYSTEM, item_ids=ids)
