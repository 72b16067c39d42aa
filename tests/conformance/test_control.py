"""What people do to a job is refused where it is not possible, in words, and where it is not theirs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from penstock.errors import JobNotFound, TransitionRefused
from penstock.lifecycle.callers import SYSTEM, owner
from penstock.lifecycle.states import JobState
from penstock.operations import control, read_jobs
from penstock.operations.reprocess import reprocess
from penstock.operations.submit import submit_created
from penstock.testing.drive import Workbench
from tests.conformance.steps import FAILED, history, write

pytestmark = pytest.mark.usefixtures("rows_are_true_in_the_end")
S = JobState


def test_commit_and_abandon_exclude_each_other(bench: Workbench) -> None:
    job = bench.submit("single").job
    bench.drive_to_end()
    assert write(bench, control.commit, job.id, SYSTEM).state is S.COMMITTED
    with pytest.raises(TransitionRefused) as refused:
        write(bench, control.abandon, job.id, SYSTEM)
    assert str(refused.value) == f"job {job.id} is committed: abandon is possible only while it is succeeded"


@pytest.mark.parametrize(
    ("verb", "allowed"),
    [
        (control.pause, "queued or retrying or running"),
        (control.resume, "paused"),
        (control.cancel, "created or paused or queued or retrying or running"),
        (control.commit, "succeeded"),
        (control.abandon, "succeeded"),
    ],
)
def test_a_refusal_says_the_state_and_what_is_allowed(bench: Workbench, verb: Callable[..., Any], allowed: str) -> None:
    job = bench.submit("single").job
    bench.record(bench.claim("single"), FAILED)
    before = (bench.job(job.id), history(bench, job.id))
    with pytest.raises(TransitionRefused) as refused:
        write(bench, verb, job.id, SYSTEM)
    name = verb.__name__
    assert str(refused.value) == f"job {job.id} is failed: {name} is possible only while it is {allowed}"
    assert (bench.job(job.id), history(bench, job.id)) == before


VERBS: list[Callable[..., Any]] = [control.pause, control.resume, control.cancel, control.commit, control.abandon]


@pytest.mark.parametrize("caller", [owner("bob"), owner(None)], ids=["another", "a guest"])
def test_anothers_job_is_not_found(bench: Workbench, caller: Any) -> None:
    kind = bench.kinds.get("again")
    job = bench.submit("again", owner="ann").job
    words = f"there is no job {job.id}"
    for verb in VERBS:
        with pytest.raises(JobNotFound, match=words):
            write(bench, verb, job.id, caller)
    with pytest.raises(JobNotFound, match=words):
        bench.job(job.id, caller)
    with pytest.raises(JobNotFound, match=words):
        write(bench, reprocess, kind, job.id, caller)
    assert write(bench, submit_created, kind, bench.submit("again", owner="ann", hold=True).job.id, caller) is False
    assert bench.store.read(lambda one: read_jobs.list_jobs(one, caller)) == []
    assert bench.states(job.id) == ["queued"]


def test_no_job_at_all_is_told_in_the_same_words(bench: Workbench) -> None:
    nowhere = uuid4()
    for verb in VERBS:
        with pytest.raises(JobNotFound, match=f"there is no job {nowhere}"):
            write(bench, verb, nowhere, SYSTEM)


def test_each_owner_does_not_cost_a_statement(bench: Workbench) -> None:
    """Statements are kept for ever: one for each owner would be a leak."""
    from penstock.store.queries import control as control_queries
    from penstock.store.queries import list_jobs
    from penstock.store.queries import read_jobs as queries

    def kept() -> int:
        built: list[Any] = [
            queries._job_by_id,
            list_jobs._list_jobs,
            control_queries._change_job,
        ]
        return sum(one.cache_info().currsize for one in built)

    def visit(who: str) -> None:
        job = bench.submit("single", owner=who, caller=owner(who)).job
        bench.store.read(lambda one: read_jobs.list_jobs(one, owner(who)))
        write(bench, control.cancel, job.id, owner(who))

    visit("first")
    before = kept()
    for number in range(20):
        visit(f"user {number}")
    assert kept() == before
