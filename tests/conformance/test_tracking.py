"""Jobs that another engine moves: they end when their set of open tasks is empty, in whatever order that is heard."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import Phase as Phases
from hypothesis import strategies as st

from penstock.clock import ManualClock
from penstock.errors import TransitionRefused
from penstock.lifecycle.callers import SYSTEM
from penstock.lifecycle.job import Job
from penstock.lifecycle.states import JobState, KilledBy, Phase, TrackingEngine
from penstock.lifecycle.tracked_tasks import FailurePolicy, TaskSighting, TaskStatus, version_of
from penstock.operations import control, maintenance, tracking
from penstock.operations.job_report import FAILURES, JobReport, get_report
from penstock.operations.read_jobs import get_job, history
from penstock.operations.request import Request
from penstock.operations.tracking import record_sightings, record_tracked_job, settle_tracked
from penstock.store.engine import Store
from penstock.testing.drive import Workbench
from penstock.testing.invariants import violations
from tests.on_store import OnStore

S = TaskStatus


class Tracker:
    """Says what happened to the tasks of one job."""

    def __init__(self, store: Store, policy: FailurePolicy = FailurePolicy.COUNT) -> None:
        self.store = store
        self.policy = policy
        self.job_id = uuid4()

    def begin(self, **named: Any) -> None:
        root = self.sighting("root", S.PUBLISHING, is_root=True, **named)
        self.store.write(
            lambda transaction: record_tracked_job(
                transaction,
                TrackingEngine.CELERY,
                "thumbs",
                self.job_id,
                [root],
                {},
                Request(owner="ada"),
                max_bytes=1000,
            )
        )

    def sighting(self, task_id: str, status: TaskStatus, **named: Any) -> TaskSighting:
        return TaskSighting(self.job_id, task_id, status, name=f"tasks.{task_id}", **named)

    def hear(self, *sightings: TaskSighting) -> Job:
        self.store.write(lambda transaction: record_sightings(transaction, sightings, self.policy))
        return self.job

    def tell(self, task_id: str, status: TaskStatus, **named: Any) -> Job:
        return self.hear(self.sighting(task_id, status, **named))

    @property
    def job(self) -> Job:
        return self.store.read(lambda transaction: get_job(transaction, self.job_id, SYSTEM))


@pytest.fixture
def tracker(store: Store, rows_are_true_in_the_end: None) -> Tracker:
    """A job whose root was sent."""
    tracker = Tracker(store)
    tracker.begin()
    return tracker


def test_a_coordinator_that_has_returned_is_not_the_end(tracker: Tracker) -> None:
    assert tracker.job.state is JobState.QUEUED
    assert tracker.tell("root", S.STARTED).state is JobState.RUNNING
    assert tracker.job.phase is Phase.BATCHING
    tracker.hear(
        tracker.sighting("part", S.SENT, leads_to="body"),
        tracker.sighting("body", S.EXPECTED),
    )
    job = tracker.tell("root", S.SUCCEEDED, result='{"status":"dispatched"}')
    assert (job.state, job.phase, job.progress.total, job.progress.processed) == (
        JobState.RUNNING, Phase.PROCESSING, 3, 1,
    )  # fmt: skip
    tracker.hear(tracker.sighting("body", S.SENT), tracker.sighting("part", S.SUCCEEDED, leads_to="body"))
    assert (tracker.job.state, tracker.job.phase) == (JobState.RUNNING, Phase.FINALIZING)
    job = tracker.tell("body", S.SUCCEEDED, result='{"status":"completed","processed":1}')
    assert (job.state, job.result) == (JobState.SUCCEEDED, {"status": "completed", "processed": 1})
    assert job.progress.processed == job.progress.total == 3


def test_a_callback_that_never_ran_because_a_part_failed(tracker: Tracker) -> None:
    tracker.hear(
        tracker.sighting("one", S.STARTED, leads_to="body"),
        tracker.sighting("two", S.STARTED, leads_to="body"),
        tracker.sighting("body", S.EXPECTED, leads_to="after"),
        tracker.sighting("after", S.EXPECTED),
        tracker.sighting("root", S.SUCCEEDED),
    )
    job = tracker.tell("one", S.FAILED, leads_to="body", error="ValueError: no", error_code="PROCESSING_ERROR")
    assert job.state is JobState.RUNNING
    job = tracker.tell("two", S.SUCCEEDED, leads_to="body")
    assert job.state is JobState.FAILED
    assert job.last_error == "tasks.after, tasks.body never ran, because task tasks.one failed: ValueError: no"
    assert job.error_code == "PROCESSING_ERROR"
    assert job.progress.failed == 1


def test_a_lost_callback_is_said_at_once_and_fails_the_job_later(tracker: Tracker) -> None:
    tracker.hear(
        tracker.sighting("part", S.SUCCEEDED, leads_to="body"),
        tracker.sighting("body", S.EXPECTED),
        tracker.sighting("root", S.SUCCEEDED),
    )
    assert tracker.job.state is JobState.RUNNING
    lost = "all other tasks have ended, but tasks.body was not sent: it is lost, as far as can be seen"
    assert tracker.job.message == lost
    tracker.store.write(
        lambda transaction: settle_tracked(transaction, [tracker.job_id], tracker.policy, is_overdue=True)
    )
    assert (tracker.job.state, tracker.job.error_code, tracker.job.last_error) == (
        JobState.FAILED, "CALLBACK_LOST", lost,
    )  # fmt: skip


@pytest.mark.parametrize(("policy", "state"), [("count", JobState.SUCCEEDED), ("fail", JobState.FAILED)])
def test_a_group_with_failures_ends_as_the_policy_says(tracker: Tracker, policy: str, state: JobState) -> None:
    tracker.policy = FailurePolicy(policy)
    tracker.hear(tracker.sighting("one", S.FAILED, error="no", error_code="NO"), tracker.sighting("two", S.STARTED))
    tracker.tell("root", S.SUCCEEDED)
    job = tracker.tell("two", S.SUCCEEDED)
    assert (job.state, job.progress.failed, job.progress.processed) == (state, 1, 3)


def test_the_tasks_that_failed_are_named_once_it_is_over(tracker: Tracker) -> None:
    tracker.hear(
        tracker.sighting("one", S.FAILED, error="no", error_code="NO", worker="a@host"),
        tracker.sighting("helper", S.FAILED, error="no helper", is_counted=False),
        tracker.sighting("two", S.STARTED),
    )
    assert _report(tracker).failed_tasks is None, "it is not over"
    tracker.tell("two", S.REVOKED, error="revoked", error_code="TASK_REVOKED")
    tracker.tell("root", S.SUCCEEDED)
    report = _report(tracker)
    assert (report.job.state, report.failures) == (JobState.SUCCEEDED, None)
    assert sorted(report.failed_tasks or []) == [
        ("one", "tasks.one", "no", "NO", "a@host"),
        ("two", "tasks.two", "revoked", "TASK_REVOKED", None),
    ]


def test_no_more_than_a_hundred_are_named(tracker: Tracker) -> None:
    tracker.hear(*(tracker.sighting(f"part-{number}", S.FAILED, error="no") for number in range(120)))
    tracker.tell("root", S.SUCCEEDED)
    assert len(_report(tracker).failed_tasks or []) == FAILURES == 100
    assert tracker.job.progress.failed == 120


def _report(tracker: Tracker) -> JobReport:
    return tracker.store.read(lambda transaction: get_report(transaction, tracker.job_id, SYSTEM, with_trace=False))


def test_the_root_decides_whatever_the_policy(tracker: Tracker) -> None:
    job = tracker.tell("root", S.FAILED, error="no", error_code="NO", error_class="ValueError")
    assert (job.state, job.last_error, job.error_code, job.error_class) == (JobState.FAILED, "no", "NO", "ValueError")


def test_what_was_killed_is_told_as_killed(tracker: Tracker) -> None:
    reason = "task tasks.root was revoked from outside: by whom is unknown"
    job = tracker.tell("root", S.REVOKED, error=reason, error_code="TASK_REVOKED", killed_by=KilledBy.SYSTEM)
    assert (job.state, job.killed_by, job.killed_reason) == (JobState.FAILED, KilledBy.SYSTEM, reason)


def test_a_retry_and_a_replacement_open_the_same_id_again(tracker: Tracker) -> None:
    tracker.tell("root", S.SENT, version=version_of(0, 1))
    assert tracker.tell("root", S.FAILED, version=0).state is JobState.QUEUED
    tracker.tell("root", S.SENT, version=version_of(1, 0))
    assert tracker.tell("root", S.SUCCEEDED, version=version_of(0, 1)).state is JobState.QUEUED
    assert tracker.tell("root", S.SUCCEEDED, version=version_of(1, 0)).state is JobState.SUCCEEDED


def test_a_task_that_is_heard_of_again_changes_no_end(tracker: Tracker) -> None:
    tracker.tell("root", S.SUCCEEDED)
    assert tracker.tell("root", S.STARTED).state is JobState.SUCCEEDED
    assert tracker.tell("root", S.FAILED, error="no").state is JobState.SUCCEEDED
    assert tracker.job.progress.failed == 0


def test_helpers_keep_a_job_open_and_are_not_counted(tracker: Tracker) -> None:
    tracker.hear(tracker.sighting("unlock", S.SENT, is_counted=False), tracker.sighting("root", S.SUCCEEDED))
    assert (tracker.job.state, tracker.job.progress.total) == (JobState.RUNNING, 1)
    assert tracker.tell("unlock", S.SUCCEEDED).state is JobState.SUCCEEDED


def test_a_root_that_is_sent_again_is_the_same_job(tracker: Tracker) -> None:
    tracker.tell("root", S.STARTED)
    tracker.begin()
    assert tracker.job.state is JobState.RUNNING
    assert len(tracker.store.read(lambda transaction: history(transaction, tracker.job_id))) == 2


def test_no_worker_of_ours_claims_it(tracker: Tracker, bench: Workbench, clock: ManualClock) -> None:
    tracker.tell("root", S.STARTED)
    clock.advance(100_000.0)
    assert maintenance.sweep(tracker.store, bench.kinds, stale_seconds=1.0, suspect_deaths=3).total == 0
    assert tracker.job.state is JobState.RUNNING


def test_what_only_our_workers_can_do_is_refused(tracker: Tracker, bench_app: OnStore) -> None:
    for verb in (bench_app.jobs.pause, bench_app.jobs.kickoff):
        with pytest.raises(TransitionRefused, match="moved by celery") as refused:
            verb(tracker.job_id)
        assert refused.value.code == "JOB_TRACKED"
    tracker.tell("root", S.FAILED, error="no")
    for again in (bench_app.jobs.reprocess, bench_app.jobs.rerun):
        with pytest.raises(TransitionRefused, match="send its task again") as refused:
            again(tracker.job_id)
        assert refused.value.code == "JOB_TRACKED"


def test_a_canceled_job_is_stopped_until_its_tasks_have_ended(tracker: Tracker, clock: ManualClock) -> None:
    tracker.tell("root", S.STARTED)
    tracker.store.write(lambda transaction: control.cancel(transaction, tracker.job_id, SYSTEM, "no more"))

    def stopped() -> list[UUID]:
        return tracker.store.read(lambda transaction: tracking.stopped_jobs(transaction, seconds=60.0, limit=10))

    assert stopped() == [tracker.job_id]
    assert tracker.tell("root", S.REVOKED).state is JobState.CANCELED
    assert stopped() == []


def test_quiet_tasks_are_asked_about_one_after_the_other(tracker: Tracker, clock: ManualClock) -> None:
    tracker.hear(tracker.sighting("part", S.STARTED, worker="w"), tracker.sighting("body", S.EXPECTED))

    def take() -> list[str]:
        tasks = tracker.store.write(lambda transaction: tracking.take_quiet_tasks(transaction, seconds=10.0, limit=1))
        return [task.task_id for task in tasks]

    assert take() == []
    clock.advance(11.0)
    assert sorted(take() + take() + take()) == ["body", "part", "root"]
    assert take() == []
    assert tracker.store.read(lambda transaction: tracking.count_in_hands(transaction, "w")) == 1


def test_the_last_two_tasks_end_at_once(store: Store) -> None:
    """Each of two writers counts only after it has the job's lock: the second sees the end that the first wrote."""
    for _ in range(15):
        tracker = Tracker(store)
        tracker.begin()
        tracker.hear(
            tracker.sighting("one", S.STARTED),
            tracker.sighting("two", S.STARTED),
            tracker.sighting("root", S.SUCCEEDED),
        )
        together = threading.Barrier(2)

        def end(task_id: str, tracker: Tracker = tracker, together: threading.Barrier = together) -> None:
            together.wait(30.0)
            tracker.tell(task_id, S.SUCCEEDED)

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(end, ["one", "two"]))
        assert tracker.job.state is JobState.SUCCEEDED
    assert violations(store) == []


# In any order ----------------------------------------------------------------------------------------------------

TREE = {"root": ("a", "b"), "a": ("c",), "b": (), "c": ()}
"""Who sends whom; a and b lead to the callback, which b sends."""


def _sent(tracker: Tracker, task_id: str) -> list[TaskSighting]:
    leads_to = "body" if task_id in ("a", "b") else None
    sent = [tracker.sighting(task_id, S.SENT, leads_to=leads_to)]
    return sent if leads_to is None else [*sent, tracker.sighting("body", S.EXPECTED)]


def _stories(tracker: Tracker) -> list[list[TaskSighting]]:
    """What each process tells, in its order; what is in one list is written together with what came before it."""
    stories = []
    for task_id, children in {**TREE, "body": ()}.items():
        started = replace(tracker.sighting(task_id, S.STARTED), is_awaited=task_id == "body")
        sent = [sighting for child in children for sighting in _sent(tracker, child)]
        if task_id == "b":
            sent.append(tracker.sighting("body", S.SENT, is_awaited=True))
        stories.append([started, *sent, replace(started, status=S.SUCCEEDED)])
    return stories


@settings(
    max_examples=25,
    deadline=None,
    phases=[Phases.explicit, Phases.reuse, Phases.generate, Phases.shrink],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_never_succeeded_while_anything_is_open(store: Store, data: st.DataObject) -> None:
    """Processes write their batches in any order, some twice, some never: the job ends only with its last task."""
    tracker = Tracker(store)
    tracker.begin()
    batches: list[list[list[TaskSighting]]] = []
    for story in _stories(tracker):
        cut = data.draw(st.integers(0, len(story)))
        batches.append([story[:cut], story[cut:]])
    dropped = data.draw(st.integers(0, 7), label="the process whose last batch is never written; 7: none")
    if dropped < len(batches):
        batches[dropped].pop()
    ended: set[str] = set()
    order = data.draw(st.permutations([index for index, parts in enumerate(batches) for _ in parts]))
    waiting = [list(parts) for parts in batches]
    for index in order:
        batch = waiting[index].pop(0)
        twice = data.draw(st.booleans())
        for _ in range(1 + twice):
            tracker.hear(*_shuffled(data, batch))
        ended |= {sighting.task_id for sighting in batch if sighting.status is S.SUCCEEDED}
        is_over = tracker.job.state is JobState.SUCCEEDED
        assert not is_over or ended >= {"root", "a", "b", "c", "body"}
    if dropped >= len(batches):
        assert tracker.job.state is JobState.SUCCEEDED
    assert violations(store) == []


def _shuffled(data: st.DataObject, batch: Sequence[TaskSighting]) -> list[TaskSighting]:
    return data.draw(st.permutations(batch)) if batch else []
