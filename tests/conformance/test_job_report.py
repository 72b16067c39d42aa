"""All that is told of a job, of one moment: how it ended, and which of its items failed."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest

from penstock.errors import JobNotFound
from penstock.lifecycle import outcomes
from penstock.lifecycle.callers import SYSTEM, Caller, owner
from penstock.operations import control
from penstock.operations.job_report import ItemFailure, JobReport, get_report
from penstock.testing.drive import Workbench
from tests.conformance.steps import DONE, write

pytestmark = pytest.mark.usefixtures("rows_are_true_in_the_end")


def report(bench: Workbench, job_id: UUID, caller: Caller = SYSTEM, *, with_trace: bool = False) -> JobReport:
    return bench.store.read(lambda one: get_report(one, job_id, caller, with_trace=with_trace))


def test_of_one_that_goes_on_there_is_the_job_alone(bench: Workbench) -> None:
    job = bench.submit("bulk", items=[1, 2]).job
    bench.record(bench.claim("bulk", size=1), outcomes.failed("it broke", "BROKEN"))
    assert report(bench, job.id) == JobReport(bench.job(job.id))


def test_the_failed_items_of_one_that_is_over_are_named_in_order(bench: Workbench) -> None:
    job = bench.submit("bulk", items=[1, 2, 3]).job
    first, second, third = bench.claim("bulk")
    broken = outcomes.failed("it broke", "BROKEN")
    bench.hand_in([(third, broken), (second, DONE), (first, broken)])
    bench.drive_to_end()
    found = report(bench, job.id)
    assert found.failures == [ItemFailure(position, "it broke", "BROKEN", 1, 0) for position in (1, 3)]


def test_when_and_how_far_one_was_that_was_stopped(bench: Workbench) -> None:
    job = bench.submit("bulk", items=[1, 2, 3], owner="ann").job
    bench.record(bench.claim("bulk", size=1), DONE)
    bench.clock.advance(7)
    write(bench, control.cancel, job.id, owner("ann"))
    stopped_at = bench.clock.held()
    bench.clock.advance(7)
    found = report(bench, job.id)
    assert (found.ended_at, found.ending_data) == (stopped_at, {"processed": 1, "total": 3})


def test_where_it_failed_is_told_to_those_who_ask(bench: Workbench) -> None:
    job = bench.submit("single").job
    bench.record(bench.claim("single"), outcomes.failed("it broke", "BROKEN", traceback="line 7"))
    assert report(bench, job.id).stack_trace is None
    assert report(bench, job.id, with_trace=True).stack_trace == "line 7"


def test_anothers_is_not_there(bench: Workbench) -> None:
    job = bench.submit("single", owner="ann").job
    assert report(bench, job.id, owner("ann")).job.id == job.id
    for job_id in (job.id, uuid4()):
        with pytest.raises(JobNotFound, match=f"there is no job {job_id}"):
            report(bench, job_id, owner("bob"))
