"""A leader is gone: who inherits its work, with what, and by which limits."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import select, update

from penstock.lifecycle.callers import owner
from penstock.lifecycle.job import Job
from penstock.lifecycle.planned_item import Planned
from penstock.lifecycle.states import ItemRole, JobState
from penstock.operations import control
from penstock.store.queries.files import NewFile, insert_file
from penstock.store.tables import job_items, jobs
from penstock.testing.drive import LEASE, Workbench
from penstock.testing.invariants import violations
from tests.conformance.steps import DONE, RETRIED, history, write

pytestmark = pytest.mark.usefixtures("rows_are_true_in_the_end")
S = JobState


def stored_file(bench: Workbench, number: int) -> UUID:
    """The record of a kept file."""
    new = NewFile(UUID(int=number), None, f"{number}.csv", None, 1, f"{number:064}")
    write(bench, insert_file, new)
    return new.id


def test_a_canceled_leader_hands_its_work_to_who_waited_longest(bench: Workbench) -> None:
    leader = bench.submit("bulk", owner="ann", unique_key="u", items=[1, 2, 3]).job
    successor = bench.submit("bulk", owner="bob", unique_key="u", items=[1, 2, 3]).job
    other = bench.submit("bulk", owner="cyd", unique_key="u", items=[1, 2, 3]).job
    held = bench.claim("bulk", size=2)
    write(bench, control.cancel, leader.id, owner("ann"))
    assert (bench.job(leader.id).state, bench.job(successor.id).leader_id) == (S.CANCELED, None)
    assert bench.job(other.id).leader_id == successor.id
    bench.record(held, DONE)
    assert bench.job(successor.id).progress.processed == 0
    assert [(one.job_id, one.input, one.user_id) for one in bench.claim("bulk")] == [
        (successor.id, number, "bob") for number in (1, 2, 3)
    ]
    bench.clock.advance(LEASE + 1)
    bench.drive_to_end()
    assert (bench.job(successor.id).state, bench.job(other.id).state) == (S.SUCCEEDED, S.SUCCEEDED)


def test_the_heir_of_a_planned_job_plans_anew(bench: Workbench) -> None:
    leader = bench.submit("planned", owner="ann", unique_key="u").job
    successor = bench.submit("planned", owner="bob", unique_key="u").job
    bench.plan(bench.claim("planned")[0], [1, 2])
    write(bench, control.cancel, leader.id, owner("ann"))
    [claimed] = bench.claim("planned")
    assert (claimed.job_id, claimed.role, bench.job(successor.id).progress.total) == (
        successor.id,
        ItemRole.PLAN,
        0,
    )


def test_the_heir_of_a_job_without_items_goes_straight_to_finalize(bench: Workbench) -> None:
    leader = bench.submit("bulk", owner="ann", unique_key="u", items=[]).job
    successor = bench.submit("bulk", owner="bob", unique_key="u", items=[]).job
    write(bench, control.cancel, leader.id, owner("ann"))
    assert [(one.job_id, one.role) for one in bench.claim("bulk")] == [(successor.id, ItemRole.FINALIZE)]


def test_the_heirs_history_does_not_name_another_owner(bench: Workbench) -> None:
    leader = bench.submit("bulk", owner="ann", unique_key="u", items=[]).job
    successor = bench.submit("bulk", owner="bob", caller=owner("bob"), unique_key="u", items=[]).job
    write(bench, control.cancel, leader.id, owner("ann"))
    assert bench.states(successor.id) == ["queued", "running"]
    assert [line.actor_id for line in history(bench, successor.id)] == ["bob", None]


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
        file_id = stored_file(bench, 7)
        rows = [Planned({"Art.Nr": "17"}, {"sku": "17"}), Planned({"Art.Nr": "18"}, {"sku": "18"})]
        ann = bench.submit("bulk", items=rows, owner="ann", unique_key="u", priority=5, file_id=file_id).job
        bob = bench.submit("bulk", items=rows, owner="bob", unique_key="u").job
        write(bench, control.cancel, ann.id, owner("ann"))
        claimed = bench.claim("bulk")
        assert [one.normalized for one in claimed] == [{"sku": "17"}, {"sku": "18"}]
        successor = bench.job(bob.id)
        assert (successor.priority, successor.file_id) == (5, file_id)

    def test_an_heirs_own_priority_and_file_are_kept(self, bench: Workbench) -> None:
        files = [stored_file(bench, number) for number in (7, 8)]
        ann = bench.submit("single", owner="ann", unique_key="u", priority=-5, file_id=files[0]).job
        bob = bench.submit("single", owner="bob", unique_key="u", file_id=files[1]).job
        write(bench, control.cancel, ann.id, owner("ann"))
        successor = bench.job(bob.id)
        assert (successor.priority, successor.file_id) == (0, files[1])


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
        from penstock.store.tables import job_events

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
