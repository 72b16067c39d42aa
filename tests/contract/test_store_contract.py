"""What each operation promises, by example, on every database."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import insert, select, update

from penstock import Penstock
from penstock.errors import InvalidInput, JobNotFound, TransitionRefused, WorkerCrashed
from penstock.lifecycle import outcomes
from penstock.lifecycle.callers import SYSTEM, admin, owner, worker
from penstock.lifecycle.job import SubmitOutcome
from penstock.lifecycle.kind import Kind
from penstock.lifecycle.policy import Policy
from penstock.lifecycle.states import (
    Actor,
    ErrorType,
    ItemRole,
    ItemStatus,
    JobState,
    KilledBy,
    Phase,
)
from penstock.operations import control, heartbeat, maintenance, read_jobs
from penstock.operations.claim import claim
from penstock.operations.record import LeaseLost, record
from penstock.operations.reprocess import reprocess
from penstock.operations.request import Request
from penstock.operations.submit import submit, submit_created
from penstock.operations.submit_many import submit_many
from penstock.store.engine import open_store
from penstock.store.tables import job_items, jobs, metadata
from penstock.testing.drive import LEASE, MAX_BYTES, Workbench, item_result
from penstock.testing.invariants import violations
from tests.properties.engine_kinds import PlanProcessFinalize, process

S = JobState
DONE = outcomes.done('{"ok":true}')
FAILED = outcomes.failed("no", "NO")
RETRIED = outcomes.retried("later", "LATER", 5.0)


@pytest.fixture(autouse=True)
def rows_are_true_in_the_end(bench: Workbench) -> Any:
    """Whatever a test did, the rows are true afterwards."""
    yield
    assert violations(bench.store) == []


def write(bench: Workbench, verb: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    return bench.store.write(lambda one: verb(one, *arguments, **named))


def history(bench: Workbench, job_id: UUID) -> list[Any]:
    return bench.store.read(lambda one: read_jobs.history(one, job_id))


def items(bench: Workbench, job_id: UUID) -> list[Any]:
    return bench.store.read(lambda one: read_jobs.items(one, job_id))


# Submitting ----------------------------------------------------------------------------------------------------------


class TestSubmitting:
    def test_a_single_step_gets_its_params_as_input(self, bench: Workbench) -> None:
        submission = bench.submit("single", {"n": 1}, owner="ann", ip_address="10.0.0.1", priority=3)
        job = submission.job
        assert (submission.answer, job.state, job.user_id, job.priority) == (SubmitOutcome.NEW, S.QUEUED, "ann", 3)
        assert (job.run, job.attempts, job.progress.total, job.ip_address) == (1, 0, 1, "10.0.0.1")
        assert job.created_at == job.queued_at == bench.clock.held()
        [claimed] = bench.claim("single")
        assert (claimed.input, claimed.params, claimed.role) == ({"n": 1}, {"n": 1}, ItemRole.ITEM)
        assert (claimed.position, claimed.attempt, claimed.user_id) == (1, 1, "ann")

    def test_the_only_item_of_a_job_that_is_finalized_has_the_params_too(self, bench: Workbench) -> None:
        bench.submit("bulk", {"n": 1})
        assert [one.input for one in bench.claim("bulk")] == [{"n": 1}]

    def test_several_of_them_at_once_as_well(self, bench: Workbench) -> None:
        write(bench, submit_many, bench.kinds.get("bulk"), [{"n": 1}, {"n": 2}], Request(), max_bytes=MAX_BYTES)
        assert [one.input for one in bench.claim("bulk")] == [{"n": 1}, {"n": 2}]

    def test_items_keep_their_order(self, bench: Workbench) -> None:
        job = bench.submit("bulk", {"p": 1}, items=[f"row {n}" for n in range(12_000)]).job
        assert (job.state, job.progress.total) == (S.QUEUED, 12_000)
        claimed = bench.claim("bulk", size=12_000)
        assert [one.input for one in claimed] == [f"row {n}" for n in range(12_000)]
        assert {str(one.params) for one in claimed} == {"{'p': 1}"}

    def test_no_items_at_all_go_straight_to_finalize(self, bench: Workbench) -> None:
        job = bench.submit("bulk", items=[]).job
        assert (job.state, job.phase) == (S.RUNNING, Phase.FINALIZING)
        assert [one.role for one in bench.claim("bulk")] == [ItemRole.FINALIZE]

    def test_no_items_and_nothing_to_finalize_is_done_at_once(self, bench: Workbench) -> None:
        assert bench.submit("single", items=[]).job.state is S.SUCCEEDED

    def test_a_held_job_waits_until_it_is_submitted(self, bench: Workbench) -> None:
        job = bench.submit("bulk", items=[1, 2], hold=True).job
        assert (job.state, job.queued_at, bench.claim("bulk")) == (S.CREATED, None, [])
        assert write(bench, submit_created, bench.kinds.get("bulk"), job.id, SYSTEM) is True
        assert write(bench, submit_created, bench.kinds.get("bulk"), job.id, SYSTEM) is False
        assert len(bench.claim("bulk")) == 2

    def test_submit_many_answers_in_order(self, bench: Workbench) -> None:
        ids = write(
            bench, submit_many, bench.kinds.get("single"), [10, 20, 30], Request(owner="ann"), max_bytes=MAX_BYTES
        )
        assert [bench.job(one).params for one in ids] == [10, 20, 30]
        assert {one.job_id for one in bench.claim("single")} == set(ids)

    @pytest.mark.parametrize("request_", [{"unique_key": "u"}, {"idempotency_key": "i"}])
    def test_submit_many_has_no_key(self, bench: Workbench, request_: dict[str, Any]) -> None:
        with pytest.raises(InvalidInput, match="submit those that have one singly"):
            write(bench, submit_many, bench.kinds.get("single"), [1, 2], Request(**request_), max_bytes=MAX_BYTES)
        assert bench.jobs() == []

    @pytest.mark.parametrize("field", ["owner", "unique_key", "idempotency_key"])
    @pytest.mark.parametrize("value", ["", "x" * 256, "a\0b", "a\ud800"])
    def test_a_key_that_cannot_be_kept_is_refused(self, bench: Workbench, field: str, value: str) -> None:
        with pytest.raises(InvalidInput) as refused:
            bench.submit("single", **{field: value})
        assert refused.value.field == field

    def test_fresh_for_needs_a_key(self, bench: Workbench) -> None:
        with pytest.raises(InvalidInput, match="needs a unique_key"):
            bench.submit("single", fresh_for=60)

    def test_beyond_the_bound_a_job_fails_at_once(self, bench: Workbench) -> None:
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

    def test_a_held_job_beyond_the_bound_fails_when_it_is_submitted(self, bench: Workbench) -> None:
        held = bench.submit("limited", owner="ann", hold=True).job
        for _ in range(3):
            bench.submit("limited")
        write(bench, submit_created, bench.kinds.get("limited"), held.id, SYSTEM)
        assert bench.job(held.id).state is S.FAILED

    def test_who_follows_when_it_is_submitted_does_not_wait_for_room(self, bench: Workbench) -> None:
        held = bench.submit("limited", owner="ann", unique_key="u", hold=True).job
        bench.submit("limited", owner="bob", unique_key="u")
        for _ in range(2):
            bench.submit("limited")
        write(bench, submit_created, bench.kinds.get("limited"), held.id, SYSTEM)
        assert bench.job(held.id).state is S.QUEUED


class TestIdempotency:
    def test_the_same_key_is_the_same_job(self, bench: Workbench) -> None:
        first = bench.submit("single", {"n": 1}, owner="ann", idempotency_key="i")
        again = bench.submit("single", {"n": 1}, owner="ann", idempotency_key="i")
        assert (again.job.id, again.answer) == (first.job.id, SubmitOutcome.EXISTING)
        bench.drive_to_end()
        assert bench.submit("single", {"n": 1}, owner="ann", idempotency_key="i").job.id == first.job.id
        assert len(bench.jobs()) == 1

    def test_each_owner_has_keys_of_their_own(self, bench: Workbench) -> None:
        ids = {bench.submit("single", owner=who, idempotency_key="i").job.id for who in ("ann", "bob", None)}
        assert len(ids) == 3

    def test_the_key_of_another_kind_is_refused(self, bench: Workbench) -> None:
        bench.submit("single", owner="ann", idempotency_key="i")
        with pytest.raises(InvalidInput, match="was used for another request") as refused:
            bench.submit("bulk", owner="ann", idempotency_key="i", items=[1])
        assert refused.value.code == "IDEMPOTENCY_KEY_REUSED"

    def test_a_follower_is_found_again(self, bench: Workbench) -> None:
        bench.submit("single", owner="ann", unique_key="u")
        first = bench.submit("single", owner="bob", unique_key="u", idempotency_key="i")
        bench.drive_to_end()
        again = bench.submit("single", owner="bob", unique_key="u", idempotency_key="i")
        assert (first.answer, again.answer, again.job.id) == (
            SubmitOutcome.FOLLOWING,
            SubmitOutcome.EXISTING,
            first.job.id,
        )


class TestSingleFlight:
    def test_the_same_owner_gets_the_same_job(self, bench: Workbench) -> None:
        first = bench.submit("single", owner="ann", unique_key="u")
        again = bench.submit("single", owner="ann", unique_key="u")
        assert (again.answer, again.job.id) == (SubmitOutcome.EXISTING, first.job.id)

    def test_another_kind_is_other_work(self, bench: Workbench) -> None:
        bench.submit("single", owner="ann", unique_key="u")
        assert bench.submit("again", owner="ann", unique_key="u").answer is SubmitOutcome.NEW

    def test_another_owner_follows_and_ends_with_the_leader(self, bench: Workbench) -> None:
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

    def test_a_guest_follows_once(self, bench: Workbench) -> None:
        bench.submit("single", owner="ann", unique_key="u")
        first = bench.submit("single", unique_key="u")
        again = bench.submit("single", unique_key="u")
        assert (first.answer, again.answer, again.job.id) == (
            SubmitOutcome.FOLLOWING,
            SubmitOutcome.EXISTING,
            first.job.id,
        )

    def test_followers_fail_with_the_leader_and_for_its_reason(self, bench: Workbench) -> None:
        bench.submit("single", owner="ann", unique_key="u")
        follower = bench.submit("single", owner="bob", unique_key="u").job
        bench.record(bench.claim("single"), outcomes.failed("boom", "BOOM", killed_by=KilledBy.OOM))
        failed = bench.job(follower.id)
        assert (failed.state, failed.last_error, failed.error_code, failed.killed_by) == (
            S.FAILED, "boom", "BOOM", KilledBy.OOM,
        )  # fmt: skip

    def test_a_retry_of_the_leader_leaves_followers_running(self, bench: Workbench) -> None:
        leader = bench.submit("single", owner="ann", unique_key="u").job
        follower = bench.submit("single", owner="bob", unique_key="u").job
        bench.record(bench.claim("single"), RETRIED)
        assert (bench.job(leader.id).state, bench.job(follower.id).state) == (S.RETRYING, S.RUNNING)
        bench.clock.advance(6)
        bench.record(bench.claim("single"), DONE)
        assert bench.states(follower.id) == ["queued", "running", "succeeded"]

    def test_a_canceled_leader_hands_its_work_to_who_waited_longest(self, bench: Workbench) -> None:
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

    def test_the_heir_of_a_planned_job_plans_anew(self, bench: Workbench) -> None:
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

    def test_the_heir_of_a_job_without_items_goes_straight_to_finalize(self, bench: Workbench) -> None:
        leader = bench.submit("bulk", owner="ann", unique_key="u", items=[]).job
        successor = bench.submit("bulk", owner="bob", unique_key="u", items=[]).job
        write(bench, control.cancel, leader.id, owner("ann"))
        assert [(one.job_id, one.role) for one in bench.claim("bulk")] == [(successor.id, ItemRole.FINALIZE)]

    def test_the_heirs_history_does_not_name_another_owner(self, bench: Workbench) -> None:
        leader = bench.submit("bulk", owner="ann", unique_key="u", items=[]).job
        successor = bench.submit("bulk", owner="bob", caller=owner("bob"), unique_key="u", items=[]).job
        write(bench, control.cancel, leader.id, owner("ann"))
        assert bench.states(successor.id) == ["queued", "running"]
        assert [line.actor_id for line in history(bench, successor.id)] == ["bob", None]

    def test_a_canceled_follower_leaves_the_leader_alone(self, bench: Workbench) -> None:
        leader = bench.submit("single", owner="ann", unique_key="u").job
        follower = bench.submit("single", owner="bob", unique_key="u").job
        write(bench, control.cancel, follower.id, owner("bob"))
        bench.drive_to_end()
        assert (bench.job(leader.id).state, bench.job(follower.id).state) == (S.SUCCEEDED, S.CANCELED)

    @pytest.mark.parametrize(("who", "why"), [("ann", "others wait for the same work"), ("bob", "another job does")])
    def test_shared_work_is_not_paused(self, bench: Workbench, who: str, why: str) -> None:
        ids = {name: bench.submit("single", owner=name, unique_key="u").job.id for name in ("ann", "bob")}
        with pytest.raises(TransitionRefused, match=why) as refused:
            write(bench, control.pause, ids[who], owner(who))
        assert refused.value.code == "JOB_SHARED"

    def test_a_key_is_free_again_when_its_job_is_over(self, bench: Workbench) -> None:
        first = bench.submit("single", owner="ann", unique_key="u").job
        bench.drive_to_end()
        second = bench.submit("single", owner="ann", unique_key="u")
        assert (second.answer, second.job.id != first.id) == (SubmitOutcome.NEW, True)


class TestCachedResults:
    def test_the_owner_gets_their_own_job_back(self, bench: Workbench) -> None:
        first = bench.submit("single", owner="ann", unique_key="u").job
        bench.drain("single")
        again = bench.submit("single", owner="ann", unique_key="u", fresh_for=60)
        assert (again.answer, again.job.id) == (SubmitOutcome.CACHED, first.id)

    def test_another_gets_a_job_with_a_copy(self, bench: Workbench) -> None:
        bench.submit("single", owner="ann", unique_key="u")
        bench.drain("single")
        copy = bench.submit("single", {"n": 2}, owner="bob", unique_key="u", fresh_for=60)
        assert (copy.answer, copy.job.user_id, copy.job.result) == (SubmitOutcome.CACHED, "bob", {"ok": True})
        assert copy.job.progress.processed == copy.job.progress.total == 1
        assert bench.states(copy.job.id) == ["queued", "running", "succeeded"]
        assert write(bench, control.commit, copy.job.id, owner("bob")).state is S.COMMITTED

    def test_a_held_request_is_answered_too(self, bench: Workbench) -> None:
        bench.submit("single", owner="ann", unique_key="u")
        bench.drain("single")
        copy = bench.submit("single", owner="bob", unique_key="u", fresh_for=60, hold=True)
        assert (copy.answer, copy.job.state) == (SubmitOutcome.CACHED, S.SUCCEEDED)

    @pytest.mark.parametrize(("age", "answer"), [(60, SubmitOutcome.CACHED), (60.001, SubmitOutcome.NEW)])
    def test_up_to_the_age_asked_for(self, bench: Workbench, age: float, answer: SubmitOutcome) -> None:
        bench.submit("single", owner="ann", unique_key="u")
        bench.drain("single")
        bench.clock.advance(age)
        assert bench.submit("single", owner="bob", unique_key="u", fresh_for=60).answer is answer

    def test_a_failure_is_not_a_result(self, bench: Workbench) -> None:
        bench.submit("single", owner="ann", unique_key="u")
        bench.record(bench.claim("single"), FAILED)
        assert bench.submit("single", owner="bob", unique_key="u", fresh_for=60).answer is SubmitOutcome.NEW

    def test_an_active_job_is_followed_when_nothing_is_fresh(self, bench: Workbench) -> None:
        bench.submit("single", owner="ann", unique_key="u")
        assert bench.submit("single", owner="bob", unique_key="u", fresh_for=60).answer is SubmitOutcome.FOLLOWING


# Claiming ------------------------------------------------------------------------------------------------------------


class TestClaiming:
    def test_a_small_job_is_served_though_a_large_one_came_first(self, bench: Workbench) -> None:
        large = bench.submit("bulk", items=list(range(10_000))).job
        bench.clock.advance(1)
        assert {one.job_id for one in bench.claim("bulk", size=10)} == {large.id}
        small = bench.submit("bulk", items=["one"]).job
        bench.clock.advance(1)
        served = bench.claim("bulk", size=10)
        assert [one.job_id for one in served].count(small.id) == 1
        assert [one.job_id for one in served].count(large.id) >= 5

    def test_those_who_waited_longest_come_first(self, bench: Workbench) -> None:
        order = []
        for _ in range(3):
            order.append(bench.submit("bulk", items=[1, 2, 3]).job.id)
            bench.clock.advance(1)
        served = []
        for _ in range(6):
            served += [one.job_id for one in bench.claim("bulk", size=1)]
            bench.clock.advance(1)
        assert served == order * 2

    def test_a_higher_priority_comes_first(self, bench: Workbench) -> None:
        ids = {}
        for priority in (0, 5, -5):
            ids[priority] = bench.submit("single", priority=priority).job.id
            bench.clock.advance(1)
        served = [bench.claim("single", size=1)[0].job_id for _ in range(3)]
        assert served == [ids[5], ids[0], ids[-5]]

    def test_another_kind_is_not_touched(self, bench: Workbench) -> None:
        bench.submit("single")
        assert bench.claim("again") == []

    def test_a_claim_says_when_to_come_again(self, bench: Workbench) -> None:
        def wait() -> float | None:
            return claim(bench.store, "single", "w1", size=5, lease_seconds=LEASE).wait

        assert wait() is None
        bench.submit("single")
        bench.record(bench.claim("single"), RETRIED)
        bench.clock.advance(2)
        assert wait() == 3.0
        bench.clock.advance(3)
        assert len(bench.claim("single")) == 1

    def test_more_to_hand_out_means_come_at_once(self, bench: Workbench) -> None:
        bench.submit("bulk", items=[1, 2, 3])
        brought = claim(bench.store, "bulk", "w1", size=2, lease_seconds=LEASE)
        assert (len(brought.items), brought.wait) == (2, 0.0)

    def test_what_came_back_goes_before_what_is_fresh(self, bench: Workbench) -> None:
        bench.submit("bulk", items=[1, 2, 3])
        bench.record(bench.claim("bulk", size=1), outcomes.released())
        assert bench.claim("bulk", size=1)[0].position == 1

    def test_an_item_in_its_backoff_stays_behind_while_others_are_handed_out(self, bench: Workbench) -> None:
        bench.submit("bulk", items=[1, 2, 3])
        bench.record(bench.claim("bulk", size=1), RETRIED)
        bench.clock.advance(4.9)
        assert [one.position for one in bench.claim("bulk", size=1)] == [2]
        bench.clock.advance(0.1)
        assert bench.claim("bulk", size=1)[0].position == 1

    def test_starting_is_told_once_for_each_run(self, bench: Workbench) -> None:
        job = bench.submit("bulk", items=[1, 2, 3]).job
        bench.claim("bulk", "w7", size=1)
        bench.claim("bulk", "w8", size=1)
        assert bench.states(job.id) == ["queued", "running"]
        line = history(bench, job.id)[-1]
        assert (line.actor, line.actor_id) == (Actor.WORKER, "w7")
        assert (bench.job(job.id).phase, bench.job(job.id).attempts) == (Phase.PROCESSING, 1)

    def test_a_worker_past_its_lease_keeps_the_item_until_somebody_takes_it(self, bench: Workbench) -> None:
        bench.submit("bulk", items=[1])
        held = bench.claim("bulk")
        bench.clock.advance(LEASE + 1)
        assert bench.record(held, DONE) == {held[0].item_id}


# Recording -----------------------------------------------------------------------------------------------------------


class TestRecording:
    def test_every_outcome_is_counted(self, bench: Workbench) -> None:
        job = bench.submit("bulk", items=list(range(6))).job
        held = bench.claim("bulk")
        dialect = [DONE, FAILED, RETRIED, outcomes.not_found("n", "N"), outcomes.skipped("s", "S"), outcomes.released()]
        assert len(bench.hand_in(list(zip(held, dialect, strict=True)))) == 6
        progress = bench.job(job.id).progress
        assert (progress.total, progress.processed, progress.failed, progress.not_found, progress.skipped) == (
            6, 4, 1, 1, 1,
        )  # fmt: skip
        assert progress.done == 1
        assert [one.status for one in items(bench, job.id)] == [
            ItemStatus.DONE, ItemStatus.ERROR, ItemStatus.PENDING, ItemStatus.NOT_FOUND, ItemStatus.SKIPPED,
            ItemStatus.PENDING,
        ]  # fmt: skip
        assert [one.attempts for one in items(bench, job.id)] == [1, 1, 1, 1, 1, 0]

    def test_finalize_runs_once_after_the_last_item(self, bench: Workbench) -> None:
        job = bench.submit("bulk", items=[1, 2]).job
        first, second = bench.claim("bulk")
        bench.record([first], DONE)
        assert bench.claim("bulk") == []
        bench.record([second], FAILED)
        assert bench.job(job.id).phase is Phase.FINALIZING
        [finalize] = bench.claim("bulk")
        assert (finalize.role, finalize.position) == (ItemRole.FINALIZE, 3)
        bench.record([finalize], outcomes.done('"sum"'))
        job_after = bench.job(job.id)
        assert (job_after.state, job_after.result, job_after.completed_at) == (
            S.SUCCEEDED,
            "sum",
            bench.clock.held(),
        )
        assert bench.claim("bulk") == []

    def test_a_slice_thought_to_be_all_ours_lands_whole_or_not_at_all(self, bench: Workbench) -> None:
        job = bench.submit("bulk", items=[1, 2, 3]).job
        held = bench.claim("bulk", "w1", lease=10)
        slice_of = [item_result(one, DONE) for one in held]
        bench.clock.advance(5)
        bench.store.write(lambda one: heartbeat.extend(one, held[1:], 100.0))
        bench.clock.advance(6)
        bench.sweep()
        bench.clock.advance(60)
        [again] = bench.claim("bulk", "w2", lease=100)
        with pytest.raises(LeaseLost):
            write(bench, record, slice_of, worker("w1"), all_ours=True)
        assert bench.job(job.id).progress.processed == 0
        assert {one.status for one in items(bench, job.id)} == {ItemStatus.PROCESSING}
        assert write(bench, record, slice_of, worker("w1")) == {one.item_id for one in held[1:]}
        assert write(bench, record, [item_result(again, DONE)], worker("w2"), all_ours=True) == {again.item_id}
        assert bench.job(job.id).progress.processed == 3

    def test_a_late_outcome_changes_nothing(self, bench: Workbench) -> None:
        job = bench.submit("bulk", items=[1]).job
        late = bench.claim("bulk", "w1")
        bench.clock.advance(LEASE + 1)
        bench.sweep()
        bench.clock.advance(5)
        current = bench.claim("bulk", "w2")
        assert [one.item_id for one in current] == [one.item_id for one in late]
        assert bench.record(late, DONE, "w1") == frozenset()
        assert items(bench, job.id)[0].status is ItemStatus.PROCESSING
        assert bench.record(current, FAILED, "w2") == {current[0].item_id}
        assert items(bench, job.id)[0].status is ItemStatus.ERROR

    def test_a_lost_try_and_the_present_one_in_one_batch_count_once(self, bench: Workbench) -> None:
        job = bench.submit("bulk", items=[1, 2]).job
        lost = bench.claim("bulk", size=1)
        bench.clock.advance(LEASE + 1)
        bench.sweep()
        bench.clock.advance(5)
        present = bench.claim("bulk", size=1)
        bench.hand_in([(lost[0], DONE), (present[0], FAILED), (lost[0], DONE), (present[0], FAILED)])
        progress = bench.job(job.id).progress
        assert (progress.processed, progress.failed, items(bench, job.id)[0].status) == (1, 1, ItemStatus.ERROR)

    def test_the_same_outcome_twice_lands_once(self, bench: Workbench) -> None:
        bench.submit("bulk", items=[1, 2])
        held = bench.claim("bulk", size=1)
        assert bench.record(held, DONE)
        assert bench.record(held, DONE) == frozenset()

    def test_a_single_step_waits_out_its_backoff(self, bench: Workbench) -> None:
        job = bench.submit("single").job
        bench.record(bench.claim("single"), RETRIED)
        waiting = bench.job(job.id)
        assert (waiting.state, waiting.last_error, waiting.retries) == (S.RETRYING, "later", 1)
        bench.clock.advance(4.9)
        assert bench.claim("single") == []
        bench.clock.advance(0.1)
        [claimed] = bench.claim("single")
        assert claimed.attempt == 2
        bench.record([claimed], DONE)
        assert bench.states(job.id) == ["queued", "running", "retrying", "queued", "running", "succeeded"]
        assert (bench.job(job.id).last_error, bench.job(job.id).attempts) == (None, 2)

    def test_the_sweep_requeues_what_no_worker_came_for(self, bench: Workbench) -> None:
        job = bench.submit("single").job
        bench.record(bench.claim("single"), RETRIED)
        bench.clock.advance(6)
        assert bench.sweep().retries_due == 1
        assert bench.job(job.id).state is S.QUEUED

    def test_a_failed_single_step_fails_its_job(self, bench: Workbench) -> None:
        job = bench.submit("single").job
        bench.record(bench.claim("single"), outcomes.failed("boom", "BOOM"))
        failed = bench.job(job.id)
        assert (failed.state, failed.last_error, failed.error_code, failed.error_type, failed.failed_phase) == (
            S.FAILED, "boom", "BOOM", ErrorType.TERMINAL, Phase.PROCESSING,
        )  # fmt: skip
        assert failed.killed_by is None
        assert history(bench, job.id)[-1].reason == "boom"

    def test_a_failed_finalize_fails_its_job(self, bench: Workbench) -> None:
        job = bench.submit("bulk", items=[]).job
        bench.record(bench.claim("bulk"), outcomes.failed("boom", "BOOM", killed_by=KilledBy.TIMEOUT))
        failed = bench.job(job.id)
        assert (failed.state, failed.failed_phase, failed.killed_by, failed.killed_reason) == (
            S.FAILED, Phase.FINALIZING, KilledBy.TIMEOUT, "boom",
        )  # fmt: skip

    def test_words_too_long_or_unkeepable_are_cut_to_fit(self, bench: Workbench) -> None:
        job = bench.submit("single").job
        bench.record(bench.claim("single"), outcomes.failed("a\0b" * 5000, "C\0" * 100, traceback="t\0" * 20_000))
        failed = bench.job(job.id)
        assert failed.error_code is not None
        assert failed.last_error is not None
        assert (len(failed.error_code), len(failed.last_error)) == (64, 2000)
        assert "\0" not in failed.error_code + failed.last_error

    def test_a_heartbeat_keeps_what_is_ours_and_names_what_is_not(self, bench: Workbench) -> None:
        bench.submit("bulk", items=[1, 2])
        held = bench.claim("bulk")
        bench.record(held[:1], DONE)
        bench.clock.advance(20)
        assert write(bench, heartbeat.extend, held, LEASE) == heartbeat.NotExtended(lost=frozenset({held[0].item_id}))
        bench.clock.advance(20)
        assert bench.sweep().leases_expired == 0
        assert bench.record(held[1:], DONE)

    def test_a_worker_hears_of_stopped_jobs(self, bench: Workbench) -> None:
        stopped, running, paused = (bench.submit("bulk", items=[1]).job.id for _ in range(3))
        bench.claim("bulk")
        write(bench, control.cancel, stopped, SYSTEM)
        write(bench, control.pause, paused, SYSTEM)
        assert write(bench, heartbeat.find_stopped_jobs, [stopped, running, paused]) == {stopped}

    def test_a_message_is_shown_while_the_job_runs(self, bench: Workbench) -> None:
        job = bench.submit("bulk", items=[1]).job
        bench.claim("bulk")
        write(bench, heartbeat.say, job.id, "half\0way")
        assert bench.job(job.id).message == "half\ufffdway"


class TestPlanning:
    def test_planned_items_are_handed_out_when_the_plan_is_done(self, bench: Workbench) -> None:
        job = bench.submit("planned", {"p": 1}).job
        [plan] = bench.claim("planned")
        assert (plan.role, plan.params, bench.job(job.id).phase) == (ItemRole.PLAN, {"p": 1}, Phase.BATCHING)
        assert (bench.plan(plan, ["a", "b"]), bench.plan(plan, ["c"])) == (2, 3)
        assert bench.claim("planned") == []
        bench.record([plan], DONE)
        assert [one.input for one in bench.claim("planned")] == ["a", "b", "c"]

    def test_a_plan_that_lost_its_lease_adds_nothing(self, bench: Workbench) -> None:
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

    def test_a_plan_that_fails_fails_its_job(self, bench: Workbench) -> None:
        job = bench.submit("planned").job
        bench.record(bench.claim("planned"), FAILED)
        assert (bench.job(job.id).state, bench.job(job.id).failed_phase) == (S.FAILED, Phase.BATCHING)

    def test_an_empty_plan_goes_to_finalize(self, bench: Workbench) -> None:
        bench.submit("planned")
        bench.record(bench.claim("planned"), DONE)
        assert [one.role for one in bench.claim("planned")] == [ItemRole.FINALIZE]


# People --------------------------------------------------------------------------------------------------------------


class TestControl:
    def test_after_a_pause_nothing_starts_and_what_is_out_may_end(self, bench: Workbench) -> None:
        job = bench.submit("bulk", owner="ann", items=[1, 2, 3]).job
        held = bench.claim("bulk", size=1)
        assert write(bench, control.pause, job.id, owner("ann"), "lunch").state is S.PAUSED
        assert bench.claim("bulk") == []
        assert bench.record(held, DONE)
        assert (bench.job(job.id).state, bench.job(job.id).progress.processed) == (S.PAUSED, 1)
        assert write(bench, control.resume, job.id, owner("ann")).state is S.QUEUED
        assert [one.position for one in bench.claim("bulk")] == [2, 3]

    def test_what_comes_back_in_the_pause_waits_for_the_resume(self, bench: Workbench) -> None:
        job = bench.submit("bulk", items=[1]).job
        held = bench.claim("bulk")
        write(bench, control.pause, job.id, SYSTEM)
        bench.record(held, RETRIED)
        bench.clock.advance(6)
        assert bench.claim("bulk") == []
        write(bench, control.resume, job.id, SYSTEM)
        assert [one.attempt for one in bench.claim("bulk")] == [2]

    def test_a_job_whose_work_ended_in_the_pause_goes_on_when_resumed(self, bench: Workbench) -> None:
        job = bench.submit("bulk", items=[1]).job
        held = bench.claim("bulk")
        write(bench, control.pause, job.id, SYSTEM)
        bench.record(held, DONE)
        assert write(bench, control.resume, job.id, SYSTEM).state is S.RUNNING
        assert [one.role for one in bench.claim("bulk")] == [ItemRole.FINALIZE]

    @pytest.mark.parametrize(
        ("outcome", "state"), [(DONE, S.SUCCEEDED), (FAILED, S.FAILED), (outcomes.skipped("s", "S"), S.SUCCEEDED)]
    )
    def test_a_single_step_that_ended_in_the_pause_ends_when_resumed(
        self, bench: Workbench, outcome: outcomes.Outcome, state: JobState
    ) -> None:
        job = bench.submit("single").job
        held = bench.claim("single")
        write(bench, control.pause, job.id, SYSTEM)
        bench.record(held, outcome)
        resumed = write(bench, control.resume, job.id, SYSTEM)
        assert (resumed.state, resumed.result) == (state, {"ok": True} if outcome is DONE else None)

    def test_a_paused_backoff_is_waited_out_after_the_resume(self, bench: Workbench) -> None:
        job = bench.submit("single").job
        bench.record(bench.claim("single"), RETRIED)
        write(bench, control.pause, job.id, SYSTEM)
        bench.clock.advance(1)
        write(bench, control.resume, job.id, SYSTEM)
        assert bench.claim("single") == []
        bench.clock.advance(4)
        assert len(bench.claim("single")) == 1

    def test_cancel_says_who_and_why(self, bench: Workbench) -> None:
        job = bench.submit("bulk", owner="ann", items=[1, 2]).job
        held = bench.claim("bulk", size=1)
        canceled = write(bench, control.cancel, job.id, owner("ann"), "a\0b")
        assert (canceled.state, canceled.killed_by, canceled.killed_reason) == (S.CANCELED, KilledBy.USER, "a\ufffdb")
        assert canceled.canceled_at == bench.clock.held()
        line = history(bench, job.id)[-1]
        assert (line.from_state, line.to_state, line.actor, line.actor_id, line.reason) == (
            S.RUNNING, S.CANCELED, Actor.OWNER, "ann", "a\ufffdb",
        )  # fmt: skip
        assert bench.claim("bulk") == []
        bench.record(held, DONE)
        assert (bench.job(job.id).state, bench.job(job.id).progress.processed) == (S.CANCELED, 1)

    def test_the_system_cancels_as_the_system(self, bench: Workbench) -> None:
        job = bench.submit("single").job
        assert write(bench, control.cancel, job.id, SYSTEM).killed_by is KilledBy.SYSTEM

    def test_commit_and_abandon_exclude_each_other(self, bench: Workbench) -> None:
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
    def test_a_refusal_says_the_state_and_what_is_allowed(
        self, bench: Workbench, verb: Callable[..., Any], allowed: str
    ) -> None:
        job = bench.submit("single").job
        bench.record(bench.claim("single"), FAILED)
        before = (bench.job(job.id), history(bench, job.id))
        with pytest.raises(TransitionRefused) as refused:
            write(bench, verb, job.id, SYSTEM)
        name = verb.__name__
        assert str(refused.value) == f"job {job.id} is failed: {name} is possible only while it is {allowed}"
        assert (bench.job(job.id), history(bench, job.id)) == before


VERBS: list[Callable[..., Any]] = [control.pause, control.resume, control.cancel, control.commit, control.abandon]


class TestWhoSees:
    @pytest.mark.parametrize("caller", [owner("bob"), owner(None)], ids=["another", "a guest"])
    def test_anothers_job_is_not_found(self, bench: Workbench, caller: Any) -> None:
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

    def test_no_job_at_all_is_told_in_the_same_words(self, bench: Workbench) -> None:
        nowhere = uuid4()
        for verb in VERBS:
            with pytest.raises(JobNotFound, match=f"there is no job {nowhere}"):
                write(bench, verb, nowhere, SYSTEM)

    def test_each_owner_does_not_cost_a_statement(self, bench: Workbench) -> None:
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

    def test_owners_guests_and_admins_see_theirs(self, bench: Workbench) -> None:
        for who in ("ann", "bob", None):
            bench.submit("single", owner=who)

        def seen(caller: Any) -> list[str | None]:
            return [job.user_id for job in bench.store.read(lambda one: read_jobs.list_jobs(one, caller))]

        assert (seen(owner("ann")), seen(owner(None)), len(seen(admin("root")))) == (["ann"], [None], 3)


class TestReprocessing:
    def failed(self, bench: Workbench) -> Any:
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

    def test_what_failed_runs_again_in_a_new_run(self, bench: Workbench) -> None:
        job = self.failed(bench)
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
        job_after = bench.job(job.id)
        assert (job_after.state, job_after.progress.done, job_after.progress.failed) == (S.SUCCEEDED, 4, 0)

    def test_without_the_permanent_failures(self, bench: Workbench) -> None:
        job = self.failed(bench)
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
        self, bench: Workbench, codes: list[str | None], statuses: list[ItemStatus], positions: list[int]
    ) -> None:
        job = self.failed(bench)
        write(bench, reprocess, bench.kinds.get("planned"), job.id, SYSTEM, statuses=statuses, error_codes=codes)
        assert [one.position for one in bench.claim("planned")] == positions

    def test_codes_nothing_ended_with_are_told(self, bench: Workbench) -> None:
        job, kind = self.failed(bench), bench.kinds.get("planned")
        with pytest.raises(InvalidInput, match="1 to 100 error codes"):
            write(bench, reprocess, kind, job.id, SYSTEM, error_codes=[])
        with pytest.raises(InvalidInput, match="1 to 100 error codes"):
            write(bench, reprocess, kind, job.id, SYSTEM, error_codes=["NO"] * 101)
        with pytest.raises(TransitionRefused, match="no item to reprocess"):
            write(bench, reprocess, kind, job.id, SYSTEM, error_codes=["NO SUCH", None])
        assert bench.job(job.id).state is S.SUCCEEDED

    def test_without_new_tries_only_those_that_have_some_left(self, bench: Workbench) -> None:
        job = self.failed(bench)
        second = job.progress.total - 2
        bench.store.write(
            lambda one: one.execute(
                update(job_items)
                .where(job_items.c.job_id == job.id, job_items.c.position == second)
                .values(attempts=3)
            )
        )  # fmt: skip
        write(bench, reprocess, bench.kinds.get("planned"), job.id, SYSTEM, reset_attempts=False)
        assert [(one.position, one.attempt) for one in bench.claim("planned")] == [(3, 2), (4, 2)]

    def test_only_the_named_items(self, bench: Workbench) -> None:
        job = self.failed(bench)
        chosen = [one.id for one in items(bench, job.id) if one.position in (1, 3)]
        write(bench, reprocess, bench.kinds.get("planned"), job.id, SYSTEM, item_ids=chosen)
        assert [one.position for one in bench.claim("planned")] == [3]

    def test_another_jobs_items_are_not_touched(self, bench: Workbench) -> None:
        job, other = self.failed(bench), self.failed(bench)
        theirs = [one.id for one in items(bench, other.id)]
        write(bench, reprocess, bench.kinds.get("planned"), job.id, SYSTEM, item_ids=theirs)
        assert [one.role for one in bench.claim("planned")] == [ItemRole.FINALIZE]
        assert bench.job(other.id) == other

    def test_a_kind_that_is_final_refuses(self, bench: Workbench) -> None:
        job = bench.submit("single").job
        bench.record(bench.claim("single"), FAILED)
        with pytest.raises(TransitionRefused, match="what they ended as is final") as refused:
            write(bench, reprocess, bench.kinds.get("single"), job.id, SYSTEM)
        assert refused.value.code == "REPROCESS_NOT_ALLOWED"

    @pytest.mark.parametrize("end", [control.commit, control.abandon])
    def test_what_was_used_or_given_up_is_final(self, bench: Workbench, end: Callable[..., Any]) -> None:
        job = self.failed(bench)
        write(bench, end, job.id, SYSTEM)
        with pytest.raises(TransitionRefused, match="only a succeeded or failed job is reprocessed"):
            write(bench, reprocess, bench.kinds.get("planned"), job.id, SYSTEM)

    def test_nothing_to_run_again_is_refused_and_changes_nothing(self, bench: Workbench) -> None:
        job = bench.submit("again").job
        bench.drive_to_end()
        before = bench.job(job.id)
        with pytest.raises(TransitionRefused) as refused:
            write(bench, reprocess, bench.kinds.get("again"), job.id, SYSTEM)
        assert (refused.value.code, bench.job(job.id)) == ("NOTHING_TO_REPROCESS", before)

    def test_a_key_in_use_is_refused(self, bench: Workbench) -> None:
        job = bench.submit("again", unique_key="u").job
        bench.record(bench.claim("again"), FAILED)
        bench.submit("again", unique_key="u")
        with pytest.raises(TransitionRefused, match="another 'again' job of key 'u' is active") as refused:
            write(bench, reprocess, bench.kinds.get("again"), job.id, SYSTEM)
        assert refused.value.code == "UNIQUE_KEY_IN_USE"

    @pytest.mark.parametrize("ending", [outcomes.not_found("gone", "GONE"), outcomes.skipped("same", "SAME"), FAILED])
    def test_a_plan_that_made_nothing_runs_again(self, bench: Workbench, ending: Any) -> None:
        job = bench.submit("planned").job
        bench.record(bench.claim("planned"), ending)
        assert bench.job(job.id).state is S.FAILED
        write(bench, reprocess, bench.kinds.get("planned"), job.id, SYSTEM)
        [plan] = bench.claim("planned")
        assert (plan.role, plan.run, bench.plan(plan, [1, 2])) == (ItemRole.PLAN, 2, 2)

    def test_a_follower_has_nothing_of_its_own_to_run(self, bench: Workbench) -> None:
        bench.submit("again", owner="ann", unique_key="u")
        follower = bench.submit("again", owner="bob", unique_key="u").job
        bench.record(bench.claim("again"), FAILED)
        with pytest.raises(TransitionRefused, match="has no items of its own"):
            write(bench, reprocess, bench.kinds.get("again"), follower.id, owner("bob"))

    def test_a_plan_that_failed_is_planned_on(self, bench: Workbench) -> None:
        job = bench.submit("planned").job
        for _ in range(2):
            bench.record(bench.claim("planned"), RETRIED)
            bench.clock.advance(6)
        [plan] = bench.claim("planned")
        bench.plan(plan, ["a"])
        bench.record([plan], FAILED)
        write(bench, reprocess, bench.kinds.get("planned"), job.id, SYSTEM, reset_attempts=False)
        [again] = bench.claim("planned")
        assert (again.role, again.attempt, again.run, bench.plan(again, ["b"])) == (ItemRole.PLAN, 1, 2, 2)

    def test_a_plan_that_never_ran_runs(self, bench: Workbench) -> None:
        impatient = Kind.of("impatient", PlanProcessFinalize, Policy(reprocess=True, wait_limit=10))
        bench.kinds.add(impatient)
        job = bench.submit("impatient").job
        bench.clock.advance(11)
        bench.sweep()
        assert bench.job(job.id).state is S.FAILED
        write(bench, reprocess, impatient, job.id, SYSTEM)
        assert [one.role for one in bench.claim("impatient")] == [ItemRole.PLAN]

    @pytest.mark.parametrize("returned", [False, True], ids=["in hands", "returned"])
    def test_a_finalize_of_the_run_before_cannot_end_the_new_one(self, bench: Workbench, returned: bool) -> None:
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
    def test_only_what_ended_can_run_again(self, bench: Workbench, statuses: list[ItemStatus]) -> None:
        job = self.failed(bench)
        with pytest.raises(InvalidInput, match="only items that ended") as refused:
            write(bench, reprocess, bench.kinds.get("planned"), job.id, SYSTEM, statuses=statuses)
        assert refused.value.field == "statuses"

    def test_the_number_of_named_items_is_bounded(self, bench: Workbench) -> None:
        for ids in ([], list(range(10_001))):
            with pytest.raises(InvalidInput, match="name 1 to 10,000 items"):
                write(bench, reprocess, bench.kinds.get("planned"), self.failed(bench).id, SYSTEM, item_ids=ids)


# Maintenance ---------------------------------------------------------------------------------------------------------


class TestLimits:
    def test_who_waits_too_long_fails(self, bench: Workbench) -> None:
        job = bench.submit("limited").job
        bench.clock.advance(60)
        assert bench.sweep().waited_too_long == 0
        bench.clock.advance(0.001)
        assert bench.sweep().waited_too_long == 1
        failed = bench.job(job.id)
        assert (failed.state, failed.error_code, failed.error_type, failed.killed_by) == (
            S.FAILED, "QUEUE_WAIT_EXCEEDED", ErrorType.RETRYABLE, None,
        )  # fmt: skip
        assert bench.claim("limited") == []

    def test_who_runs_too_long_fails_and_is_said_to_be_killed(self, bench: Workbench) -> None:
        job = bench.submit("limited", items=[1, 2]).job
        held = bench.claim("limited", size=1, lease=1000)
        bench.clock.advance(120)
        assert bench.sweep().ran_too_long == 0
        bench.clock.advance(0.001)
        assert bench.sweep().ran_too_long == 1
        failed = bench.job(job.id)
        assert (failed.state, failed.error_code, failed.killed_by, failed.error_type) == (
            S.FAILED, "JOB_TIMEOUT", KilledBy.TIMEOUT, ErrorType.TERMINAL,
        )  # fmt: skip
        assert failed.killed_reason == failed.last_error == "the job ran longer than 120 s"
        bench.record(held, DONE)
        assert (bench.job(job.id).state, bench.job(job.id).progress.processed) == (S.FAILED, 1)

    def test_a_result_nobody_used_is_abandoned_and_pruned(self, bench: Workbench) -> None:
        job = bench.submit("limited").job
        bench.drive_to_end()
        assert bench.job(job.id).result == {"ok": True}
        bench.clock.advance(200)
        assert bench.sweep().abandoned == 0
        bench.clock.advance(0.001)
        assert bench.sweep().abandoned == 1
        after = bench.job(job.id)
        assert (after.state, after.result, after.abandoned_at) == (S.ABANDONED, None, bench.clock.held())
        assert history(bench, job.id)[-1].actor is Actor.SYSTEM

    def test_a_result_is_kept_where_the_kind_does_not_prune(self, bench: Workbench) -> None:
        bench.kinds.add(Kind.of("kept", process, Policy(abandon_after=10)))
        job = bench.submit("kept").job
        bench.drive_to_end()
        bench.clock.advance(11)
        bench.sweep()
        assert (bench.job(job.id).state, bench.job(job.id).result) == (S.ABANDONED, {"ok": True})

    def test_a_used_result_is_left_alone(self, bench: Workbench) -> None:
        job = bench.submit("limited").job
        bench.drive_to_end()
        write(bench, control.commit, job.id, SYSTEM)
        bench.clock.advance(1000)
        assert bench.sweep().total == 0

    def test_a_kind_nobody_knows_any_more_is_rescued_by_the_default_rules(self, bench: Workbench) -> None:
        bench.submit("bulk", items=[1])
        bench.claim("bulk")
        bench.clock.advance(LEASE + 1)
        assert Workbench(bench.store, bench.clock, []).sweep().leases_expired == 1

    def test_what_fell_out_of_line_is_put_back(self, bench: Workbench) -> None:
        job = bench.submit("bulk", items=[1]).job
        bench.store.write(lambda one: one.execute(update(jobs).values(next_claim_at=None)))
        bench.clock.advance(99)
        assert bench.sweep(stale_seconds=100).stale == 0
        bench.clock.advance(2)
        assert bench.sweep(stale_seconds=100).stale == 1
        assert [one.job_id for one in bench.claim("bulk")] == [job.id]

    def test_what_waits_for_its_backoff_is_not_hurried_by_the_sweep(self, bench: Workbench) -> None:
        bench.submit("bulk", items=[1])
        bench.record(bench.claim("bulk"), RETRIED)
        bench.submit("single")
        bench.record(bench.claim("single"), RETRIED)
        assert bench.sweep().total == 0
        assert bench.claim("bulk") + bench.claim("single") == []

    def test_a_job_in_somebodys_hands_is_not_stale(self, bench: Workbench) -> None:
        bench.submit("bulk", items=[1])
        bench.claim("bulk", lease=1000)
        bench.clock.advance(500)
        assert bench.store.write(lambda one: maintenance.rescue_stuck(one, 100)) == 0


# The caller's own transaction ----------------------------------------------------------------------------------------


class TestJoined:
    def test_a_rollback_leaves_nothing_and_a_commit_makes_it_claimable(self, bench: Workbench) -> None:
        woken: list[frozenset[str] | None] = []
        bench.store.listen(woken.append)
        kind, other = bench.kinds.get("single"), metadata.tables["files"]
        row = {"id": uuid4(), "name": "mine", "size_bytes": 1, "sha256": "0", "created_at": bench.clock.held()}

        def enqueue(*, fails: bool) -> None:
            with bench.store.engine.connect() as connection, connection.begin():
                connection.execute(insert(other), row)
                with bench.store.use_connection(connection) as transaction:
                    submit(transaction, kind, {"n": 1}, Request(owner="ann"), items=None, max_bytes=MAX_BYTES)
                assert woken == []
                if fails:
                    raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            enqueue(fails=True)
        assert (bench.jobs(), bench.claim("single"), woken) == ([], [], [])
        assert bench.store.read(lambda one: one.values(str, select(other.c.name))) == []
        enqueue(fails=False)
        assert woken == [frozenset({"single"})]
        assert [one.user_id for one in bench.claim("single")] == ["ann"]

    def test_a_write_wakes_those_who_listen_once_it_is_committed(self, bench: Workbench) -> None:
        seen: list[tuple[frozenset[str] | None, int]] = []
        bench.store.listen(lambda kinds: seen.append((kinds, len(bench.jobs()))))
        bench.submit("single")
        assert seen == [(frozenset({"single"}), 1)]

    def test_a_reader_sees_nothing_of_a_write_that_fails(self, bench: Workbench) -> None:
        def fails(transaction: Any) -> None:
            submit(transaction, bench.kinds.get("single"), 1, Request(), items=None, max_bytes=MAX_BYTES)
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            bench.store.write(fails)
        assert bench.jobs() == []


def test_a_real_clock_claims_and_expires_by_the_databases_time(bench: Workbench) -> None:
    """Everything above holds the clock; this one lets the database say what time it is."""
    if bench.store.engine.url.database in (None, ":memory:"):
        store = type(bench.store)(bench.store.engine)
    else:
        store = open_store(bench.store.engine.url.render_as_string(hide_password=False))
    real = Workbench(store, bench.clock, bench.kinds)
    job = real.submit("bulk", items=[1]).job
    held = real.claim("bulk", lease=0.0)
    assert real.claim("bulk") == []
    rescued = 0
    while not rescued:  # a millisecond at most
        rescued = real.sweep().leases_expired
    assert real.record(held, DONE) == frozenset()
    moved = real.job(job.id).updated_at - real.job(job.id).created_at
    assert 0 <= moved.total_seconds() < 60
    real.store.write(lambda one: control.cancel(one, job.id, SYSTEM))
    store.rest()
    if store.engine is not bench.store.engine:
        store.close()


@pytest.mark.parametrize("kind", ["single", "planned", "finalized"])
@pytest.mark.parametrize("hold", [False, True])
def test_the_job_submit_answers_is_the_job_that_was_recorded(hold: bool, kind: str) -> None:
    app = Penstock("sqlite://")

    class Finalized:
        def process(self, item: object) -> None: ...

        def finalize(self, job: object) -> None: ...

    class Planned(Finalized):
        def plan(self, job: object) -> None: ...

    app.kind("single")(lambda item: None)
    app.kind("planned")(Planned)
    app.kind("finalized", retries=7)(Finalized)
    answered = app.submit(kind, {"n": 1, "sizes": (1, 2)}, owner="ada", hold=hold, priority=3, title="a\nb").job
    assert answered == app.jobs.get(answered.id)
    app.close()
