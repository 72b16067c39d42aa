"""The batches of a plan, by hand: under its lease, and claimed while the plan goes on."""

from __future__ import annotations

import pytest

from penstock import JobState
from penstock.errors import WorkerCrashed
from penstock.lifecycle import ItemRole, Phase, outcomes
from penstock.lifecycle.callers import SYSTEM
from penstock.lifecycle.outcomes import Outcome
from penstock.operations import control
from penstock.operations.items import item_texts
from penstock.operations.plan import add_planned
from penstock.store.transaction import Transaction
from penstock.testing.drive import LEASE, Workbench
from tests.conformance.steps import DONE, FAILED, items, write

pytestmark = pytest.mark.usefixtures("rows_are_true_in_the_end")


def test_planned_items_are_handed_out_while_the_plan_goes_on(bench: Workbench) -> None:
    job = bench.submit("planned", {"p": 1}).job
    [plan] = bench.claim("planned")
    assert (plan.role, plan.params, bench.job(job.id).phase) == (ItemRole.PLAN, {"p": 1}, Phase.BATCHING)
    assert bench.plan(plan, ["a", "b"]) == 2
    first = bench.claim("planned")
    assert [one.input for one in first] == ["a", "b"]
    assert bench.plan(plan, ["c"]) == 3
    bench.record(first, DONE)
    shown = bench.job(job.id)
    assert (shown.phase, shown.progress.processed, shown.progress.total) == (Phase.BATCHING, 2, 3)
    bench.record([plan], DONE)
    assert bench.job(job.id).phase is Phase.PROCESSING
    [last] = bench.claim("planned")
    assert last.input == "c"
    assert bench.claim("planned") == []


def test_a_job_is_not_over_before_its_plan_is(bench: Workbench) -> None:
    job = bench.submit("planned").job
    [plan] = bench.claim("planned")
    bench.plan(plan, ["a"])
    bench.record(bench.claim("planned"), DONE)
    assert bench.claim("planned") == [], "the finalize step was not waited for"
    assert bench.job(job.id).state is JobState.RUNNING
    bench.record([plan], DONE)
    assert [one.role for one in bench.claim("planned")] == [ItemRole.FINALIZE]


def test_a_plan_that_fails_takes_the_items_that_wait_with_it(bench: Workbench) -> None:
    job = bench.submit("planned").job
    [plan] = bench.claim("planned")
    bench.plan(plan, ["a", "b"])
    [item] = bench.claim("planned", size=1)
    bench.record([plan], FAILED)
    assert (bench.job(job.id).state, bench.job(job.id).failed_phase) == (JobState.FAILED, Phase.BATCHING)
    assert bench.claim("planned") == []
    bench.record([item], DONE)
    assert (bench.job(job.id).state, bench.job(job.id).progress.processed) == (JobState.FAILED, 1)


@pytest.mark.parametrize("outcome", [FAILED, outcomes.not_found("n", "N"), outcomes.skipped("s", "S")])
@pytest.mark.parametrize("while_paused", [True, False])
def test_a_plan_that_ends_before_its_job_runs_again_fails_it_all_the_same(
    bench: Workbench, outcome: Outcome, while_paused: bool
) -> None:
    """Resumed, the job waits with an item to hand out: what that comes to says nothing of the plan."""
    job = bench.submit("planned").job
    [plan] = bench.claim("planned")
    bench.plan(plan, ["a", "b"])
    write(bench, control.pause, job.id, SYSTEM)
    if while_paused:
        bench.record([plan], outcome)
    write(bench, control.resume, job.id, SYSTEM)
    if not while_paused:
        bench.record([plan], outcome)
    bench.record(bench.claim("planned", size=1), DONE)
    ended = bench.job(job.id)
    assert (ended.state, ended.failed_phase, ended.error_code) == (JobState.FAILED, Phase.BATCHING, outcome.code)
    assert bench.claim("planned") == []


def test_what_a_paused_jobs_plan_adds_waits_until_it_is_resumed(bench: Workbench) -> None:
    job = bench.submit("planned").job
    [plan] = bench.claim("planned")
    write(bench, control.pause, job.id, SYSTEM)
    bench.plan(plan, ["a"])
    bench.record([plan], DONE)
    assert bench.claim("planned") == []
    write(bench, control.resume, job.id, SYSTEM)
    assert [one.input for one in bench.claim("planned")] == ["a"]


def test_a_batch_wakes_the_workers(bench: Workbench) -> None:
    bench.submit("planned")
    [plan] = bench.claim("planned")
    kind, texts = bench.kinds.get("planned"), item_texts(["a"], 1000, 0)

    def notices(transaction: Transaction) -> frozenset[str]:
        add_planned(transaction, kind, plan, texts, after=0)
        return transaction.notices

    assert bench.store.write(notices) == {"planned"}


def test_a_plan_that_lost_its_lease_adds_nothing(bench: Workbench) -> None:
    job = bench.submit("planned").job
    [late] = bench.claim("planned")
    bench.plan(late, ["a"])
    bench.clock.advance(LEASE + 1)
    bench.sweep()
    with pytest.raises(WorkerCrashed, match="lost its lease"):
        bench.plan(late, ["b"])
    bench.clock.advance(6)
    [plan] = bench.claim("planned")
    assert bench.plan(plan, ["b"]) == 2
    bench.record([plan], DONE)
    assert [one.input for one in items(bench, job.id)] == ["a", "b"]


def test_a_plan_that_fails_fails_its_job(bench: Workbench) -> None:
    job = bench.submit("planned").job
    bench.record(bench.claim("planned"), FAILED)
    assert (bench.job(job.id).state, bench.job(job.id).failed_phase) == (JobState.FAILED, Phase.INIT)


def test_an_empty_plan_goes_to_finalize(bench: Workbench) -> None:
    bench.submit("planned")
    bench.record(bench.claim("planned"), DONE)
    assert [one.role for one in bench.claim("planned")] == [ItemRole.FINALIZE]
