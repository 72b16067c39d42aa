"""Celery's own tasks, tracked, on real brokers: one job each, which ends when the last task has ended, and not before.

One worker of three processes serves the tests of each broker: RabbitMQ with PostgreSQL, and Redis with SQLite.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from celery import chain, chord, group

from penstock.lifecycle.job import Job
from penstock.lifecycle.states import JobState, KilledBy, Phase
from tests.celery.brokers import BROKERS, Broker
from tests.celery.tracked_app import Tracking, send
from tests.celery.tracked_workers import PATIENCE, TrackedWorker
from tests.waiting import eventually


@pytest.fixture(scope="module", params=list(BROKERS))
def options(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What client and worker have in common."""
    from penstock import Penstock

    broker: Broker = request.getfixturevalue(f"{request.param}_broker")
    redis: Broker = request.getfixturevalue("redis_broker")
    if request.param == "rabbitmq":
        server = request.getfixturevalue("postgres_server")
        name = f"test_{uuid.uuid4().hex}"
        server.create_database(name)
        url = server.url(name)
        app = Penstock(url)
        app.system.migrate()
        app.close()
    else:
        url = f"sqlite:///{tmp_path_factory.mktemp('tracked')}/penstock.db"
    return {
        "broker": broker.url,
        "backend": redis.url,
        "database_url": url,
        "queue": f"tracked-{uuid.uuid4().hex[:8]}",
        "lost_after": 2.0,
        "silent_after": 1.5,
    }


@pytest.fixture(scope="module")
def worker(options: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[TrackedWorker]:
    """The worker of all these tests."""
    worker = TrackedWorker(tmp_path_factory.mktemp("worker"), options).wait_until_ready()
    yield worker
    worker.stop()


def ended(client: Tracking, job_id: UUID | str) -> Job:
    """The job, once it has ended."""
    job = client.app.jobs.wait(job_id, timeout=PATIENCE)
    assert job.finished, job
    return job


def test_a_coordinator_is_completed_when_its_finalizer_is(
    client: Tracking, worker: TrackedWorker, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    job_id = send(client, "coordinator", 4, gate=str(gate))
    assert client.app.jobs.get(job_id).kind == "duplicates"
    # Celery says SUCCESS of the coordinator now.
    eventually(lambda: client.celery.AsyncResult(job_id).state == "SUCCESS", PATIENCE)
    eventually(lambda: client.app.jobs.get(job_id).phase is Phase.PROCESSING, PATIENCE)
    job = client.app.jobs.get(job_id)
    assert (job.state, job.progress.total, job.progress.processed) == (JobState.RUNNING, 6, 1)
    gate.touch()
    job = ended(client, job_id)
    assert (job.state, job.result) == (JobState.SUCCEEDED, {"status": "completed", "processed": 4})
    assert (job.progress.total, job.progress.processed, job.progress.failed) == (6, 6, 0)
    assert [line.to_state for line in client.app.jobs.history(job_id)] == ["queued", "running", "succeeded"]


def test_a_single_task_keeps_what_it_returned(client: Tracking, worker: TrackedWorker) -> None:
    job = ended(client, send(client, "part", 7))
    assert (job.state, job.result, job.progress.total) == (JobState.SUCCEEDED, 7, 1)


def test_retries_of_a_root_and_of_parts_are_the_same_tasks(client: Tracking, worker: TrackedWorker) -> None:
    assert ended(client, send(client, "part", 7, "retry")).result == 7
    job = ended(client, send(client, "coordinator", 3, "retry"))
    assert (job.state, job.progress.total, job.result) == (
        JobState.SUCCEEDED, 5, {"status": "completed", "processed": 3},
    )  # fmt: skip


def test_a_task_that_replaces_itself_by_a_chord(client: Tracking, worker: TrackedWorker) -> None:
    job = ended(client, send(client, "part", 7, "replace"))
    assert (job.state, job.progress.total, job.result) == (JobState.SUCCEEDED, 3, 14)


def test_the_continuation_of_a_requeued_coordinator_is_the_same_job(client: Tracking, worker: TrackedWorker) -> None:
    job = ended(client, send(client, "coordinator", 2, requeue=2))
    assert (job.state, job.progress.total, job.result) == (
        JobState.SUCCEEDED, 12, {"status": "completed", "processed": 2},
    )  # fmt: skip


def test_a_part_that_fails_ends_the_job_when_the_others_have_ended(client: Tracking, worker: TrackedWorker) -> None:
    job = ended(client, send(client, "coordinator", 3, "one-fails"))
    assert (job.state, job.error_class, job.progress.failed) == (JobState.FAILED, "ValueError", 1)
    assert job.last_error == (
        "tasks.finalizer never ran, because task tasks.part failed: ValueError: part 0 is no good"
    )
    assert job.progress.processed == 4


def test_a_coordinator_or_a_finalizer_that_fails(client: Tracking, worker: TrackedWorker) -> None:
    job = ended(client, send(client, "coordinator", 3, "fail-itself"))
    assert (job.state, job.last_error) == (JobState.FAILED, "RuntimeError: nothing to hand out")
    job = ended(client, send(client, "coordinator", 2, finalizing="fail"))
    assert (job.state, job.failed_phase, job.last_error) == (
        JobState.FAILED, Phase.FINALIZING, "ValueError: the finalizer is no good",
    )  # fmt: skip


def test_a_canvas_that_a_client_sends(client: Tracking, worker: TrackedWorker) -> None:
    part, finalizer, total = (client.tasks[f"tasks.{name}"] for name in ("part", "finalizer", "total"))
    with client.tracked.job("thumbs", owner="ann", title="photos") as chord_job:
        chord([part.s(number) for number in range(5)])(finalizer.s())
    with client.tracked.job("thumbs") as group_job:
        group(part.s(0, "fail"), part.s(1), part.s(2, "ignore"), part.s(3, "reject"))()
    with client.tracked.job("thumbs") as chain_job:
        chain(part.s(1), group(part.si(2), part.si(3)), total.s())()
    with client.tracked.job("thumbs") as nested_job:
        chord([chord([part.s(1), part.s(2)], total.s()), part.s(3)])(total.s())
    with client.tracked.job("thumbs") as broken_chain_job:
        chain(part.s(1, "fail"), finalizer.si([]), finalizer.si([]))()
    with client.tracked.job("thumbs") as empty_job:
        pass
    job = ended(client, chord_job)
    assert (job.state, job.user_id, job.title, job.progress.total) == (JobState.SUCCEEDED, "ann", "photos", 6)
    assert job.result == {"status": "completed", "processed": 5}
    job = ended(client, group_job)
    assert (job.state, job.progress.total, job.progress.failed, job.progress.skipped) == (JobState.SUCCEEDED, 4, 2, 1)
    assert (ended(client, chain_job).result, ended(client, nested_job).result) == (5, 6)
    job = ended(client, broken_chain_job)
    assert job.last_error == (
        "tasks.finalizer never ran, because task tasks.part failed: ValueError: part 1 is no good"
    )
    assert ended(client, empty_job).state is JobState.SUCCEEDED


def test_a_block_that_raises_fails_its_job(client: Tracking, worker: TrackedWorker) -> None:
    job_ids = []

    def send_some() -> None:
        with client.tracked.job("thumbs") as job_id:
            job_ids.append(job_id)
            client.tasks["tasks.part"].delay(1)
            _ = 1 / 0

    with pytest.raises(ZeroDivisionError):
        send_some()
    job = ended(client, job_ids[0])
    assert (job.state, job.error_code) == (JobState.FAILED, "NOT_ALL_SENT")
    assert job.last_error == "the tasks were not all sent: ZeroDivisionError: division by zero"


def test_what_was_sent_in_a_block_may_end_before_it(client: Tracking, worker: TrackedWorker) -> None:
    with client.tracked.job("thumbs") as job_id:
        client.tasks["tasks.part"].delay(1).get(timeout=PATIENCE)
        client.tracked.flush()
        assert client.app.jobs.get(job_id).state in (JobState.QUEUED, JobState.RUNNING)
        client.tasks["tasks.part"].delay(2)
    job = ended(client, job_id)
    assert (job.state, job.progress.total) == (JobState.SUCCEEDED, 2)


def test_a_child_that_is_killed_is_told_as_it_is(client: Tracking, worker: TrackedWorker) -> None:
    job = ended(client, send(client, "part", 1, "kill"))
    assert (job.state, job.error_code, job.killed_by) == (JobState.FAILED, "WORKER_LOST", KilledBy.WORKER_CRASH)
    assert job.last_error == "the process that ran task tasks.part was killed by signal 9, perhaps for memory"


def test_cancel_stops_what_runs_and_what_waits(client: Tracking, worker: TrackedWorker, tmp_path: Path) -> None:
    gate = tmp_path / "never"
    job_id = send(client, "coordinator", 8, gate=str(gate))
    eventually(lambda: client.app.jobs.get(job_id).progress.total == 10, PATIENCE)
    job = client.app.jobs.cancel(job_id, reason="no more")
    assert (job.state, job.killed_by, job.killed_reason) == (JobState.CANCELED, KilledBy.SYSTEM, "no more")
    # All eight were revoked: the worker is free for others, though nobody opened the gate.
    eventually(lambda: client.app.jobs.get(job_id).progress.failed == 8, PATIENCE)
    assert ended(client, send(client, "part", 1)).state is JobState.SUCCEEDED
    assert client.app.jobs.get(job_id).state is JobState.CANCELED


def test_a_task_revoked_from_outside(client: Tracking, worker: TrackedWorker, tmp_path: Path) -> None:
    task_id = send(client, "part", 1, gate=str(tmp_path / "never"))
    eventually(lambda: client.app.jobs.get(task_id).state is JobState.RUNNING, PATIENCE)
    client.celery.control.revoke(task_id, terminate=True)
    job = ended(client, task_id)
    assert (job.state, job.error_code, job.killed_by) == (JobState.FAILED, "TASK_REVOKED", KilledBy.SYSTEM)
    assert job.killed_reason == "task tasks.part was revoked from outside: by whom is unknown"
