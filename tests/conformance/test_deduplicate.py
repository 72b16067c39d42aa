"""A submission is answered with a result that is young enough: one's own job, or a copy of another's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from penstock.lifecycle.callers import SYSTEM, owner
from penstock.lifecycle.job import SubmitOutcome
from penstock.lifecycle.states import JobState
from penstock.operations import control
from penstock.testing.drive import Workbench
from tests.conformance.steps import FAILED, write

pytestmark = pytest.mark.usefixtures("rows_are_true_in_the_end")
S = JobState


def test_the_owner_gets_their_own_job_back(bench: Workbench) -> None:
    first = bench.submit("single", owner="ann", unique_key="u").job
    bench.drain("single")
    again = bench.submit("single", owner="ann", unique_key="u", fresh_for=60)
    assert (again.answer, again.job.id) == (SubmitOutcome.CACHED, first.id)


def test_another_gets_a_job_with_a_copy(bench: Workbench) -> None:
    bench.submit("single", owner="ann", unique_key="u")
    bench.drain("single")
    copy = bench.submit("single", {"n": 2}, owner="bob", unique_key="u", fresh_for=60)
    assert (copy.answer, copy.job.user_id, copy.job.result) == (SubmitOutcome.CACHED, "bob", {"ok": True})
    assert copy.job.progress.processed == copy.job.progress.total == 1
    assert bench.states(copy.job.id) == ["queued", "running", "succeeded"]
    assert write(bench, control.commit, copy.job.id, owner("bob")).state is S.COMMITTED


def test_a_held_request_is_answered_too(bench: Workbench) -> None:
    bench.submit("single", owner="ann", unique_key="u")
    bench.drain("single")
    copy = bench.submit("single", owner="bob", unique_key="u", fresh_for=60, hold=True)
    assert (copy.answer, copy.job.state) == (SubmitOutcome.CACHED, S.SUCCEEDED)


@pytest.mark.parametrize(("age", "answer"), [(60, SubmitOutcome.CACHED), (60.001, SubmitOutcome.NEW)])
def test_up_to_the_age_asked_for(bench: Workbench, age: float, answer: SubmitOutcome) -> None:
    bench.submit("single", owner="ann", unique_key="u")
    bench.drain("single")
    bench.clock.advance(age)
    assert bench.submit("single", owner="bob", unique_key="u", fresh_for=60).answer is answer


def test_a_failure_is_not_a_result(bench: Workbench) -> None:
    bench.submit("single", owner="ann", unique_key="u")
    bench.record(bench.claim("single"), FAILED)
    assert bench.submit("single", owner="bob", unique_key="u", fresh_for=60).answer is SubmitOutcome.NEW


def test_an_active_job_is_followed_when_nothing_is_fresh(bench: Workbench) -> None:
    bench.submit("single", owner="ann", unique_key="u")
    assert bench.submit("single", owner="bob", unique_key="u", fresh_for=60).answer is SubmitOutcome.FOLLOWING


def test_a_copy_is_as_old_as_its_source_and_no_source_itself(bench: Workbench) -> None:
    bench.submit("single", owner="u0", unique_key="k")
    bench.drain("single")
    answers = []
    for number in range(1, 4):
        bench.clock.advance(25)
        answers.append(bench.submit("single", owner=f"u{number}", unique_key="k", fresh_for=60).answer)
    assert answers == [SubmitOutcome.CACHED, SubmitOutcome.CACHED, SubmitOutcome.NEW]


def test_ones_own_copy_grows_old_with_its_source(bench: Workbench) -> None:
    bench.submit("single", owner="ann", unique_key="k")
    bench.drain("single")
    bench.clock.advance(50)
    copy = bench.submit("single", owner="bob", unique_key="k", fresh_for=60)
    bench.clock.advance(5)
    again = bench.submit("single", owner="bob", unique_key="k", fresh_for=60)
    assert (copy.answer, again.answer, again.job.id) == (SubmitOutcome.CACHED, SubmitOutcome.CACHED, copy.job.id)
    bench.clock.advance(6)
    assert bench.submit("single", owner="bob", unique_key="k", fresh_for=60).answer is SubmitOutcome.NEW


@pytest.mark.parametrize("verb", [control.commit, control.abandon])
def test_who_has_decided_about_theirs_gets_a_new_one(bench: Workbench, verb: Callable[..., Any]) -> None:
    first = bench.submit("single", owner="ann", unique_key="k").job
    bench.drain("single")
    write(bench, verb, first.id, owner("ann"))
    again = bench.submit("single", owner="ann", unique_key="k", fresh_for=60)
    assert (again.answer, again.job.id != first.id, again.job.state) == (SubmitOutcome.CACHED, True, S.SUCCEEDED)
    assert write(bench, control.commit, again.job.id, owner("ann")).state is S.COMMITTED


def test_a_paused_owner_gets_a_young_result_all_the_same(bench: Workbench) -> None:
    bench.submit("single", owner="bob", unique_key="k")
    bench.drain("single")
    ann = bench.submit("single", owner="ann", unique_key="k").job
    write(bench, control.pause, ann.id, SYSTEM)
    assert bench.submit("single", owner="ann", unique_key="k", fresh_for=60).answer is SubmitOutcome.CACHED
