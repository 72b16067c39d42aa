"""Several owners, one piece of work: who leads, who follows, who inherits, and how old a result may be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import select, update

from penstock.errors import TransitionRefused
from penstock.lifecycle import outcomes
from penstock.lifecycle.callers import SYSTEM, owner
from penstock.lifecycle.job import Job, SubmitOutcome
from penstock.lifecycle.planned_item import Planned
from penstock.lifecycle.states import JobState
from penstock.operations import control, read_jobs
from penstock.operations.submit import submit_created
from penstock.store.tables import jobs
from penstock.testing.drive import Workbench
from penstock.testing.invariants import violations

S = JobState
DONE = outcomes.done('{"ok":true}')
RETRIED = outcomes.retried("later", "LATER", 5.0)


@pytest.fixture(autouse=True)
def rows_are_true_in_the_end(bench: Workbench) -> Any:
    yield
    assert violations(bench.store) == []


def write(bench: Workbench, verb: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    return bench.store.write(lambda one: verb(one, *arguments, **named))


def release(bench: Workbench, job: Job) -> bool:
    return bool(write(bench, submit_created, bench.kinds.get(job.kind), job.id, owner(job.user_id)))


def items(bench: Workbench, job_id: UUID) -> list[Any]:
    return bench.store.read(lambda one: read_jobs.items(one, job_id))


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


class TestInheriting:
    def test_who_joined_between_two_tries_ends_with_the_heir(self, bench: Workbench) -> None:
        ann = bench.submit("single", owner="ann", unique_key="u").job
        held = bench.claim("single")
        bob = bench.submit("single", owner="bob", unique_key="u").job
        bench.record(held, RETRIED)
        bench.clock.advance(6)
        bench.sweep()
        cid = bench.submit("single", owner="cid", unique_key="u").job
        assert (bench.job(ann.id).state, bench.job(bob.id).state, cid.state) == (S.QUEUED, S.RUNNING, S.QUEUED)
        write(bench, control.cancel, ann.id, owner("ann"))
        assert violations(bench.store) == []
        bench.drain("single")
        assert [bench.job(one.id).state for one in (bob, cid)] == [S.SUCCEEDED, S.SUCCEEDED]

    def test_normalized_rows_the_file_and_the_higher_priority(self, bench: Workbench) -> None:
        file_id = UUID(int=7)
        rows = [Planned({"Art.Nr": "17"}, {"sku": "17"}), Planned({"Art.Nr": "18"}, {"sku": "18"})]
        ann = bench.submit("bulk", items=rows, owner="ann", unique_key="u", priority=5, file_id=file_id).job
        bob = bench.submit("bulk", items=rows, owner="bob", unique_key="u").job
        write(bench, control.cancel, ann.id, owner("ann"))
        claimed = bench.claim("bulk")
        assert [one.normalized for one in claimed] == [{"sku": "17"}, {"sku": "18"}]
        successor = bench.job(bob.id)
        assert (successor.priority, successor.file_id) == (5, file_id)

    def test_an_heirs_own_priority_and_file_are_kept(self, bench: Workbench) -> None:
        ann = bench.submit("single", owner="ann", unique_key="u", priority=-5, file_id=UUID(int=7)).job
        bob = bench.submit("single", owner="bob", unique_key="u", file_id=UUID(int=8)).job
        write(bench, control.cancel, ann.id, owner("ann"))
        successor = bench.job(bob.id)
        assert (successor.priority, successor.file_id) == (0, UUID(int=8))


class TestLimits:
    def test_a_follower_is_not_judged_by_its_own_start(self, bench: Workbench) -> None:
        """The leader's next try begins its time anew; a follower's started_at is that of the first."""
        bench.submit("limited", owner="ann", unique_key="u", items=[1])
        held = bench.claim("limited")
        bob = bench.submit("limited", owner="bob", unique_key="u", items=[1]).job
        bench.store.write(
            lambda one: one.connection.execute(
                update(jobs).where(jobs.c.id == bob.id).values(started_at=jobs.c.created_at)
            )
        )
        bench.clock.advance(25)
        # The leader's time is not over: as if a retry had started it later.
        bench.store.write(
            lambda one: one.connection.execute(
                update(jobs).where(jobs.c.id == bob.id).values(started_at=bench.clock.held().replace(year=2020))
            )
        )
        assert bench.sweep().ran_too_long == 0
        assert bench.job(bob.id).state is S.RUNNING
        bench.record(held, DONE)
        bench.drive_to_end()
        assert bench.job(bob.id).state is S.SUCCEEDED

    def test_a_leader_that_ran_too_long_takes_its_followers_along(self, bench: Workbench) -> None:
        ann = bench.submit("limited", owner="ann", unique_key="u", items=[1]).job
        bench.claim("limited", lease=1000)
        bob = bench.submit("limited", owner="bob", unique_key="u", items=[1]).job
        bench.clock.advance(121)
        bench.sweep()
        for one in (ann, bob):
            assert (bench.job(one.id).state, bench.job(one.id).error_code) == (S.FAILED, "JOB_TIMEOUT")

    def test_an_heirs_time_begins_when_it_inherits(self, bench: Workbench) -> None:
        ann = bench.submit("limited", owner="ann", unique_key="u", items=[1]).job
        bench.claim("limited", lease=1000)
        bob = bench.submit("limited", owner="bob", unique_key="u", items=[1]).job
        bench.clock.advance(119)
        write(bench, control.cancel, ann.id, owner("ann"))
        bench.claim("limited", lease=1000)
        bench.clock.advance(119)
        bench.sweep()
        assert bench.job(bob.id).state is S.RUNNING
        bench.clock.advance(2)
        bench.sweep()
        assert bench.job(bob.id).error_code == "JOB_TIMEOUT"

    def test_a_job_in_backoff_has_not_waited_for_a_worker(self, bench: Workbench) -> None:
        job = bench.submit("limited", owner="ann").job
        bench.record(bench.claim("limited"), outcomes.retried("later", "LATER", 600.0))
        write(bench, control.pause, job.id, owner("ann"))
        write(bench, control.resume, job.id, owner("ann"))
        assert bench.job(job.id).state is S.QUEUED
        bench.clock.advance(61)
        bench.sweep()
        assert bench.job(job.id).state is S.QUEUED
        bench.clock.advance(600)
        bench.sweep()
        assert bench.job(job.id).error_code == "QUEUE_WAIT_EXCEEDED"


class TestPausing:
    def test_when_the_last_follower_has_left_the_leader_can_be_paused(self, bench: Workbench) -> None:
        ann = bench.submit("single", owner="ann", unique_key="u").job
        followers = [bench.submit("single", owner=who, unique_key="u").job for who in ("bob", "cid")]
        for follower in followers:
            with pytest.raises(TransitionRefused, match="others wait"):
                write(bench, control.pause, ann.id, owner("ann"))
            write(bench, control.cancel, follower.id, owner(follower.user_id))
        assert write(bench, control.pause, ann.id, owner("ann")).state is S.PAUSED


class TestLeftBehind:
    """What no operation of ours leaves behind, but a program of the version before may."""

    def end(self, bench: Workbench, job: Job, **values: Any) -> None:
        bench.store.write(
            lambda one: one.connection.execute(
                update(jobs).where(jobs.c.id == job.id).values(next_claim_at=None, **values)
            )
        )

    def shared(self, bench: Workbench) -> tuple[Job, Job, Job]:
        ann = bench.submit("single", owner="ann", unique_key="u").job
        return ann, *(bench.submit("single", owner=who, unique_key="u").job for who in ("bob", "cid"))  # type: ignore[return-value]

    @pytest.mark.parametrize("state", ["succeeded", "committed", "abandoned"])
    def test_followers_of_a_good_end_succeed(self, bench: Workbench, state: str) -> None:
        ann, bob, cid = self.shared(bench)
        now = bench.clock.held()
        self.end(bench, ann, state=state, result={"n": 1}, completed_at=now, started_at=now)
        assert bench.sweep().left_behind == 2
        assert [(bench.job(one.id).state, bench.job(one.id).result) for one in (bob, cid)] == [
            (S.SUCCEEDED, {"n": 1})
        ] * 2
        assert bench.sweep().left_behind == 0
        self.forget(bench)

    def test_followers_of_a_failure_fail(self, bench: Workbench) -> None:
        ann, bob, cid = self.shared(bench)
        now = bench.clock.held()
        self.end(bench, ann, state="failed", last_error="no", error_code="NO", error_type="TERMINAL", completed_at=now)
        bench.sweep()
        assert [(bench.job(one.id).state, bench.job(one.id).error_code) for one in (bob, cid)] == [(S.FAILED, "NO")] * 2
        self.forget(bench)

    @pytest.mark.parametrize("state", ["canceled", "paused", "created"])
    def test_otherwise_one_of_them_inherits(self, bench: Workbench, state: str) -> None:
        ann, bob, cid = self.shared(bench)
        self.end(bench, ann, state=state)
        assert bench.sweep().left_behind == 1
        assert [one.job_id for one in bench.claim("single")] == [bob.id]
        assert bench.job(cid.id).leader_id == bob.id
        self.forget(bench)

    def forget(self, bench: Workbench) -> None:
        """The leader's row was changed by hand, so its history does not fit: it is no part of what is checked."""
        from penstock.store.tables import job_events, job_items

        hand_made = [
            row.id
            for row in bench.store.read(lambda one: one.connection.execute(select(jobs.c.id, jobs.c.user_id)).all())
            if row.user_id == "ann"
        ]
        with bench.store.engine.begin() as connection:
            connection.execute(jobs.delete())
            connection.execute(job_items.delete())
            connection.execute(job_events.delete())
        assert hand_made


class TestYoungResults:
    def test_a_copy_is_as_old_as_its_source_and_no_source_itself(self, bench: Workbench) -> None:
        bench.submit("single", owner="u0", unique_key="k")
        bench.drain("single")
        answers = []
        for number in range(1, 4):
            bench.clock.advance(25)
            answers.append(bench.submit("single", owner=f"u{number}", unique_key="k", fresh_for=60).answer)
        assert answers == [SubmitOutcome.CACHED, SubmitOutcome.CACHED, SubmitOutcome.NEW]

    def test_ones_own_copy_grows_old_with_its_source(self, bench: Workbench) -> None:
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
    def test_who_has_decided_about_theirs_gets_a_new_one(self, bench: Workbench, verb: Callable[..., Any]) -> None:
        first = bench.submit("single", owner="ann", unique_key="k").job
        bench.drain("single")
        write(bench, verb, first.id, owner("ann"))
        again = bench.submit("single", owner="ann", unique_key="k", fresh_for=60)
        assert (again.answer, again.job.id != first.id, again.job.state) == (SubmitOutcome.CACHED, True, S.SUCCEEDED)
        assert write(bench, control.commit, again.job.id, owner("ann")).state is S.COMMITTED

    def test_a_paused_owner_gets_a_young_result_all_the_same(self, bench: Workbench) -> None:
        bench.submit("single", owner="bob", unique_key="k")
        bench.drain("single")
        ann = bench.submit("single", owner="ann", unique_key="k").job
        write(bench, control.pause, ann.id, SYSTEM)
        assert bench.submit("single", owner="ann", unique_key="k", fresh_for=60).answer is SubmitOutcome.CACHED
