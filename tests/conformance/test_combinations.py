"""Features together: a suspect that others follow, and an item that was ended from outside and its next run."""

from __future__ import annotations

from uuid import UUID

import pytest

from penstock.errors import TransitionRefused
from penstock.lifecycle import outcomes
from penstock.lifecycle.callers import SYSTEM
from penstock.lifecycle.states import JobState, KilledBy
from penstock.operations import control
from penstock.operations.heartbeat import note_alone
from penstock.operations.maintenance import rescue_from
from penstock.operations.reprocess import reprocess
from penstock.testing.drive import SUSPECT_DEATHS, Workbench
from tests.conformance.steps import DONE, write

pytestmark = pytest.mark.usefixtures("rows_are_true_in_the_end")
S = JobState
BACKOFF = 5.0


def lead_and_follow(bench: Workbench) -> tuple[UUID, UUID]:
    """A job of one owner, and another owner's job that follows it."""
    leader = bench.submit("single", {"page": 1}, unique_key="page", owner="ann").job
    follower = bench.submit("single", {"page": 1}, unique_key="page", owner="bob").job
    assert follower.leader_id == leader.id
    return leader.id, follower.id


def die_until_suspect(bench: Workbench) -> None:
    """Let workers die with the one item in hand until it is a suspect."""
    for _ in range(SUSPECT_DEATHS):
        assert len(bench.claim("single")) == 1
        rescue_from(bench.store, bench.kinds, "w1", SUSPECT_DEATHS)
        bench.clock.advance(BACKOFF)


def test_a_suspect_that_is_blamed_fails_for_all_who_follow_it(bench: Workbench) -> None:
    jobs = lead_and_follow(bench)
    die_until_suspect(bench)
    for _ in range(2):  # a death under the lease with which it runs alone is blamed the second time
        [held] = bench.claim("single")
        write(bench, note_alone, held)
        rescue_from(bench.store, bench.kinds, "w1", SUSPECT_DEATHS)
        bench.clock.advance(BACKOFF)
    ended = [bench.job(job_id) for job_id in jobs]
    assert [(job.state, job.error_code) for job in ended] == [(S.FAILED, "WORKER_CRASH")] * 2


def test_a_suspect_that_answers_after_all_answers_all_who_follow_it(bench: Workbench) -> None:
    jobs = lead_and_follow(bench)
    die_until_suspect(bench)
    bench.record(bench.claim("single"), DONE)
    ended = [bench.job(job_id) for job_id in jobs]
    assert [(job.state, job.result) for job in ended] == [(S.SUCCEEDED, {"ok": True})] * 2


def test_who_follows_a_suspect_inherits_its_work_when_the_leader_is_canceled(bench: Workbench) -> None:
    leader, follower = lead_and_follow(bench)
    die_until_suspect(bench)
    [held] = bench.claim("single")
    write(bench, control.cancel, leader, SYSTEM)
    bench.record([held], DONE)
    assert bench.job(follower).state is not S.SUCCEEDED, "the try was the canceled job's"
    bench.clock.advance(BACKOFF)
    [again] = bench.claim("single")
    assert (again.job_id, again.attempt) == (follower, 1)
    bench.record([again], DONE)
    assert (bench.job(leader).state, bench.job(follower).state) == (S.CANCELED, S.SUCCEEDED)


def test_a_late_answer_of_an_item_that_was_ended_from_outside_does_not_reach_its_next_run(bench: Workbench) -> None:
    """The watchdog ends a call that hangs; the job fails and is run again; then the call comes back."""
    job = bench.submit("again", items=[1]).job
    [hung] = bench.claim("again")
    overrun = outcomes.failed("it took too long", "TIME_LIMIT", killed_by=KilledBy.TIMEOUT)
    assert bench.record([hung], overrun) == {hung.item_id}
    write(bench, reprocess, bench.kinds.get("again"), job.id, SYSTEM)
    [fresh] = bench.claim("again")
    assert fresh.item_id == hung.item_id
    assert bench.record([hung], DONE) == set()
    assert bench.job(job.id).state is S.RUNNING
    assert bench.record([fresh], DONE) == {fresh.item_id}
    assert (bench.job(job.id).state, bench.job(job.id).run) == (S.SUCCEEDED, 2)


def test_a_leader_cannot_be_paused_and_a_follower_cannot_keep_others_waiting(bench: Workbench) -> None:
    leader, follower = lead_and_follow(bench)
    for job_id in (leader, follower):
        with pytest.raises(TransitionRefused):
            write(bench, control.pause, job_id, SYSTEM)
    bench.record(bench.claim("single"), DONE)
    assert (bench.job(leader).state, bench.job(follower).state) == (S.SUCCEEDED, S.SUCCEEDED)
