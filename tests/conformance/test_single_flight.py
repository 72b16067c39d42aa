"""Several owners, one piece of work: who leads, who follows, and how they end."""

from __future__ import annotations

import pytest

from penstock.errors import TransitionRefused
from penstock.lifecycle import outcomes
from penstock.lifecycle.callers import owner
from penstock.lifecycle.job import Job, SubmitOutcome
from penstock.lifecycle.states import JobState, KilledBy
from penstock.operations import control
from penstock.operations.submit import submit_created
from penstock.testing.drive import Workbench
from tests.conformance.steps import DONE, RETRIED, items, write

pytestmark = pytest.mark.usefixtures("rows_are_true_in_the_end")
S = JobState


def test_the_same_owner_gets_the_same_job(bench: Workbench) -> None:
    first = bench.submit("single", owner="ann", unique_key="u")
    again = bench.submit("single", owner="ann", unique_key="u")
    assert (again.answer, again.job.id) == (SubmitOutcome.EXISTING, first.job.id)


def test_another_kind_is_other_work(bench: Workbench) -> None:
    bench.submit("single", owner="ann", unique_key="u")
    assert bench.submit("again", owner="ann", unique_key="u").answer is SubmitOutcome.NEW


def test_another_owner_follows_and_ends_with_the_leader(bench: Workbench) -> None:
    leader = bench.submit("single", owner="ann", unique_key="u").job
    follower = bench.submit("single", owner="bob", unique_key="u")
    assert (follower.answer, follower.job.state, follower.job.leader_id) == (
        SubmitOutcome.FOLLOWING,
        S.QUEUED,
        leader.id,
    )
    assert bench.submit("single", owner="bob", unique_key="u").job.id == follower.job.id
    held = bench.claim("single")
    assert [one.job_id for one in held] == [leader.id]
    assert bench.job(follower.job.id).state is S.RUNNING
    late = bench.submit("single", owner="cyd", unique_key="u").job
    assert late.state is S.RUNNING
    bench.record(held, DONE)
    for job_id in (follower.job.id, late.id):
        assert (bench.job(job_id).state, bench.job(job_id).result) == (S.SUCCEEDED, {"ok": True})
        assert bench.states(job_id) == ["queued", "running", "succeeded"]


def test_a_guest_follows_once(bench: Workbench) -> None:
    bench.submit("single", owner="ann", unique_key="u")
    first = bench.submit("single", unique_key="u")
    again = bench.submit("single", unique_key="u")
    assert (first.answer, again.answer, again.job.id) == (
        SubmitOutcome.FOLLOWING,
        SubmitOutcome.EXISTING,
        first.job.id,
    )


def test_followers_fail_with_the_leader_and_for_its_reason(bench: Workbench) -> None:
    bench.submit("single", owner="ann", unique_key="u")
    follower = bench.submit("single", owner="bob", unique_key="u").job
    bench.record(bench.claim("single"), outcomes.failed("boom", "BOOM", killed_by=KilledBy.OOM))
    failed = bench.job(follower.id)
    assert (failed.state, failed.last_error, failed.error_code, failed.killed_by) == (
        S.FAILED, "boom", "BOOM", KilledBy.OOM,
    )  # fmt: skip


def test_a_retry_of_the_leader_leaves_followers_running(bench: Workbench) -> None:
    leader = bench.submit("single", owner="ann", unique_key="u").job
    follower = bench.submit("single", owner="bob", unique_key="u").job
    bench.record(bench.claim("single"), RETRIED)
    assert (bench.job(leader.id).state, bench.job(follower.id).state) == (S.RETRYING, S.RUNNING)
    bench.clock.advance(6)
    bench.record(bench.claim("single"), DONE)
    assert bench.states(follower.id) == ["queued", "running", "succeeded"]


def test_a_canceled_follower_leaves_the_leader_alone(bench: Workbench) -> None:
    leader = bench.submit("single", owner="ann", unique_key="u").job
    follower = bench.submit("single", owner="bob", unique_key="u").job
    write(bench, control.cancel, follower.id, owner("bob"))
    bench.drive_to_end()
    assert (bench.job(leader.id).state, bench.job(follower.id).state) == (S.SUCCEEDED, S.CANCELED)


@pytest.mark.parametrize(("who", "why"), [("ann", "others wait for the same work"), ("bob", "another job does")])
def test_shared_work_is_not_paused(bench: Workbench, who: str, why: str) -> None:
    ids = {name: bench.submit("single", owner=name, unique_key="u").job.id for name in ("ann", "bob")}
    with pytest.raises(TransitionRefused, match=why) as refused:
        write(bench, control.pause, ids[who], owner(who))
    assert refused.value.code == "JOB_SHARED"


def test_a_key_is_free_again_when_its_job_is_over(bench: Workbench) -> None:
    first = bench.submit("single", owner="ann", unique_key="u").job
    bench.drive_to_end()
    second = bench.submit("single", owner="ann", unique_key="u")
    assert (second.answer, second.job.id != first.id) == (SubmitOutcome.NEW, True)


def release(bench: Workbench, job: Job) -> bool:
    return bool(write(bench, submit_created, bench.kinds.get(job.kind), job.id, owner(job.user_id)))


class TestHeldAndPaused:
    @pytest.mark.parametrize("how", ["held", "paused"])
    def test_somebody_elses_is_not_waited_for(self, bench: Workbench, how: str) -> None:
        ann = bench.submit("single", owner="ann", unique_key="u", hold=how == "held").job
        if how == "paused":
            write(bench, control.pause, ann.id, owner("ann"))
        bob = bench.submit("single", owner="bob", unique_key="u")
        assert (bob.answer, bob.job.leader_id) == (SubmitOutcome.NEW, None)
        bench.drain("single")
        assert bench.job(bob.job.id).state is S.SUCCEEDED

    @pytest.mark.parametrize("who", ["ann", None])
    @pytest.mark.parametrize("how", ["held", "paused"])
    def test_ones_own_is_the_answer(self, bench: Workbench, how: str, who: str | None) -> None:
        first = bench.submit("single", owner=who, unique_key="u", hold=how == "held").job
        if how == "paused":
            write(bench, control.pause, first.id, owner(who))
        for hold in (False, True):
            again = bench.submit("single", owner=who, unique_key="u", hold=hold)
            assert (again.answer, again.job.id) == (SubmitOutcome.EXISTING, first.id)
        bench.submit("single", owner="bob", unique_key="u")
        again = bench.submit("single", owner=who, unique_key="u")
        assert (again.answer, again.job.id) == (SubmitOutcome.EXISTING, first.id)

    def test_who_follows_and_asks_for_a_held_one_is_answered_with_what_they_have(self, bench: Workbench) -> None:
        bench.submit("single", owner="ann", unique_key="u")
        following = bench.submit("single", owner="bob", unique_key="u").job
        again = bench.submit("single", owner="bob", unique_key="u", hold=True)
        assert (again.answer, again.job.id) == (SubmitOutcome.EXISTING, following.id)

    def test_a_held_job_follows_nobody_and_inherits_nothing_unreleased(self, bench: Workbench) -> None:
        ann = bench.submit("single", owner="ann", unique_key="u").job
        bob = bench.submit("single", owner="bob", unique_key="u", hold=True)
        assert (bob.answer, bob.job.state, bob.job.leader_id) == (SubmitOutcome.NEW, S.CREATED, None)
        write(bench, control.cancel, ann.id, owner("ann"))
        assert bench.claim("single") == []
        assert bench.job(bob.job.id).state is S.CREATED

    @pytest.mark.parametrize("kind", ["single", "planned", "bulk"])
    @pytest.mark.parametrize("started", [False, True])
    def test_released_while_another_leads_it_follows(self, bench: Workbench, kind: str, started: bool) -> None:
        given = [1, 2] if kind == "bulk" else None
        ann = bench.submit(kind, owner="ann", unique_key="u", items=given, hold=True).job
        bob = bench.submit(kind, owner="bob", unique_key="u", items=given).job
        if started:
            bench.claim(kind, size=1)
        assert release(bench, ann)
        job = bench.job(ann.id)
        assert (job.leader_id, job.state) == (bob.id, S.RUNNING if started else S.QUEUED)
        assert items(bench, ann.id) == []
        bench.clock.advance(31)
        bench.drive_to_end()
        assert (bench.job(ann.id).state, bench.job(ann.id).result) == (S.SUCCEEDED, bench.job(bob.id).result)

    def test_resumed_while_another_leads_it_follows_if_it_never_started(self, bench: Workbench) -> None:
        ann = bench.submit("single", owner="ann", unique_key="u").job
        write(bench, control.pause, ann.id, owner("ann"))
        bob = bench.submit("single", owner="bob", unique_key="u").job
        assert write(bench, control.resume, ann.id, owner("ann")).leader_id == bob.id
        write(bench, control.cancel, bob.id, owner("bob"))
        assert [one.job_id for one in bench.claim("single")] == [ann.id]

    def test_what_has_started_keeps_its_own_and_waits_for_the_other(self, bench: Workbench) -> None:
        ann = bench.submit("bulk", owner="ann", unique_key="u", items=[1, 2]).job
        bench.record(bench.claim("bulk", size=1), DONE)
        write(bench, control.pause, ann.id, owner("ann"))
        bob = bench.submit("bulk", owner="bob", unique_key="u", items=[1, 2]).job
        with pytest.raises(TransitionRefused, match="wait for that one") as refused:
            write(bench, control.resume, ann.id, owner("ann"))
        assert refused.value.code == "UNIQUE_KEY_IN_USE"
        write(bench, control.cancel, bob.id, owner("bob"))
        assert write(bench, control.resume, ann.id, owner("ann")).progress.processed == 1
        assert [one.job_id for one in bench.claim("bulk")] == [ann.id]


def test_when_the_last_follower_has_left_the_leader_can_be_paused(bench: Workbench) -> None:
    ann = bench.submit("single", owner="ann", unique_key="u").job
    followers = [bench.submit("single", owner=who, unique_key="u").job for who in ("bob", "cid")]
    for follower in followers:
        with pytest.raises(TransitionRefused, match="others wait"):
            write(bench, control.pause, ann.id, owner("ann"))
        write(bench, control.cancel, follower.id, owner(follower.user_id))
    assert write(bench, control.pause, ann.id, owner("ann")).state is S.PAUSED
