"""What is lost of tracked tasks, and how it is found: workers and children that are killed, callbacks, brokers."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import redis
from kombu.exceptions import OperationalError

from penstock.errors import ConfigurationError
from penstock.lifecycle.job import Job
from penstock.lifecycle.states import JobState, KilledBy
from penstock.testing.invariants import violations
from tests.celery.brokers import Broker
from tests.celery.tracked_app import Tracking, make, send
from tests.celery.tracked_workers import PATIENCE, TrackedWorker
from tests.private_brokers import free_ports
from tests.waiting import eventually

Start = Callable[..., TrackedWorker]


@pytest.fixture
def options(broker: Broker, redis_broker: Broker, tmp_path: Path) -> dict[str, Any]:
    """A database and a queue of the test's own."""
    return {
        "broker": broker.url,
        "backend": redis_broker.url,
        "database_url": f"sqlite:///{tmp_path}/penstock.db",
        "queue": f"losses-{uuid.uuid4().hex[:8]}",
        "lost_after": 1.5,
        "silent_after": 1.5,
    }


@pytest.fixture
def start(options: dict[str, Any], tmp_path: Path) -> Iterator[Start]:
    """Starts workers; what is left of them at the end is killed."""
    workers: list[TrackedWorker] = []

    def begin(name: str = "worker", **named: Any) -> TrackedWorker:
        workers.append(TrackedWorker(tmp_path, {**options, **named}, name=name, concurrency=2))
        return workers[-1].wait_until_ready()

    yield begin
    for worker in workers:
        worker.kill()


def ended(client: Tracking, job_id: UUID | str) -> Job:
    """The job, once it has ended; who waits asks about what is quiet, as every worker does."""

    def is_over() -> bool:
        client.tracked.reconcile()
        return client.app.jobs.get(job_id).finished

    eventually(is_over, PATIENCE)
    return client.app.jobs.get(job_id)


def test_a_worker_that_is_killed_with_an_early_ack_has_lost_its_task(
    client: Tracking, start: Start, tmp_path: Path
) -> None:
    worker = start()
    job_id = send(client, "part", 1, gate=str(tmp_path / "never"))
    eventually(lambda: client.app.jobs.get(job_id).state is JobState.RUNNING, PATIENCE)
    worker.kill()
    job = ended(client, job_id)
    assert (job.state, job.error_code, job.killed_by) == (JobState.FAILED, "WORKER_LOST", KilledBy.WORKER_CRASH)
    assert job.last_error is not None
    assert f"@test/{worker.process.pid} is silent since 20" in job.last_error
    assert job.last_error.endswith("UTC, with 1 task in its hands")


@pytest.mark.parametrize("broker", ["rabbitmq"], indirect=True)
def test_a_worker_that_is_killed_with_a_late_ack_is_followed_by_another(
    client: Tracking, start: Start, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    worker = start("first", lost_after=60.0)
    with client.tracked.job("thumbs") as job_id:
        client.tasks["tasks.late"].delay(str(gate))
    eventually(lambda: client.app.jobs.get(job_id).state is JobState.RUNNING, PATIENCE)
    worker.kill()
    start("second", lost_after=60.0)
    gate.touch()
    eventually(lambda: client.app.jobs.get(job_id).finished, PATIENCE)
    assert client.app.jobs.get(job_id).state is JobState.SUCCEEDED


def test_a_worker_that_starts_after_a_cancel_asks(client: Tracking, start: Start, tmp_path: Path) -> None:
    gate = tmp_path / "never"
    with client.tracked.job("thumbs") as job_id:
        for number in range(4):
            client.tasks["tasks.part"].delay(number, gate=str(gate))
    client.app.jobs.cancel(job_id)
    worker = start()
    eventually(lambda: client.app.jobs.get(job_id).progress.processed == 4, PATIENCE)
    assert "Discarding revoked task" in worker.log.read_text()
    job = client.app.jobs.get(job_id)
    assert (job.state, job.progress.failed) == (JobState.CANCELED, 4)


@pytest.mark.parametrize("broker", ["redis"], indirect=True)
def test_what_killed_children_had_not_written_is_found(client: Tracking, start: Start, tmp_path: Path) -> None:
    """Nothing is written by the children, which are killed after the last task: the backend has it all."""
    worker = start(flush_every="1h", lost_after=60.0)
    job_id = send(client, "coordinator", 3)
    finalized = "tasks.finalizer["
    eventually(lambda: _has_ended(worker, finalized), PATIENCE)
    assert not client.app.jobs.get(job_id).finished
    for child in worker.children():
        child.kill()
    eventually(lambda: client.app.jobs.get(job_id).finished, PATIENCE)
    job = client.app.jobs.get(job_id)
    assert (job.state, job.progress.processed, job.progress.failed) == (JobState.SUCCEEDED, 5, 0)


def _has_ended(worker: TrackedWorker, task: str) -> bool:
    return any(task in line and "succeeded" in line for line in worker.log.read_text().splitlines())


@pytest.mark.parametrize("broker", ["redis"], indirect=True)
def test_a_callback_whose_chord_was_lost(client: Tracking, start: Start, tmp_path: Path, redis_broker: Broker) -> None:
    gate = tmp_path / "gate"
    start()
    job_id = send(client, "coordinator", 2, gate=str(gate))
    eventually(lambda: client.app.jobs.get(job_id).progress.total == 4, PATIENCE)
    eventually(lambda: client.celery.AsyncResult(job_id).state == "SUCCESS", PATIENCE)
    with redis.Redis.from_url(redis_broker.url) as backend:
        # As after a restart without its memory: how many parts had ended, and how many there are.
        keys = list(backend.scan_iter("*.s"))
        assert keys
        backend.delete(*keys)
    gate.touch()
    job = ended(client, job_id)
    assert (job.state, job.error_code) == (JobState.FAILED, "CALLBACK_LOST")
    assert job.last_error == (
        "all other tasks have ended, but tasks.finalizer was not sent: it is lost, as far as can be seen"
    )


@pytest.mark.parametrize("broker", ["redis"], indirect=True)
def test_what_is_sent_while_the_broker_is_down(options: dict[str, Any]) -> None:
    [port] = free_ports(1)
    tracking = make(**{**options, "broker": f"redis://127.0.0.1:{port}/0"})
    try:
        with pytest.raises(OperationalError):
            send(tracking, "part", 1)
        [job] = tracking.app.jobs.list()
        assert job.state is JobState.QUEUED
        job = ended(tracking, job.id)
        assert (job.state, job.error_code) == (JobState.FAILED, "TASK_NOT_SENT")
        assert job.last_error == "it was never confirmed that tasks.part reached the broker"
    finally:
        tracking.tracked.close()
        tracking.app.close()


def test_what_a_killed_broker_has_lost_is_waited_for_and_said(
    broker_to_kill: Broker, redis_broker: Broker, tmp_path: Path
) -> None:
    """Neither broker had the parts on disk that a client sent a moment before: they wait, or are lost."""
    gate = tmp_path / "gate"
    options: dict[str, Any] = {
        "broker": broker_to_kill.url,
        "backend": redis_broker.url,
        "database_url": f"sqlite:///{tmp_path}/penstock.db",
        "queue": f"killed-{uuid.uuid4().hex[:8]}",
        "lost_after": 1.5,
        "silent_after": 30.0,
    }
    client = make(**options)
    worker = TrackedWorker(tmp_path, options, concurrency=2)
    try:
        worker.wait_until_ready()
        job_id = send(client, "coordinator", 6, gate=str(gate))
        eventually(lambda: client.app.jobs.get(job_id).progress.total == 8, PATIENCE)
        broker_to_kill.kill()
        broker_to_kill.start()
        gate.touch()

        def is_said() -> bool:
            client.tracked.reconcile()
            return "or are lost" in (client.app.jobs.get(job_id).message or "")

        eventually(is_said, PATIENCE)
        job = client.app.jobs.get(job_id)
        assert (job.state, job.progress.failed) == (JobState.RUNNING, 0)
        assert job.progress.processed < 8
        assert client.app.jobs.cancel(job_id).state is JobState.CANCELED
        assert violations(client.app.store) == []
    finally:
        worker.kill()
        client.tracked.close()
        client.app.close()
        client.celery.close()


@pytest.mark.parametrize("broker", ["redis"], indirect=True)
def test_tasks_that_no_worker_takes_wait_or_are_lost(client: Tracking) -> None:
    job_id = send(client, "part", 1)
    message = "1 task waits in the broker, or is lost"

    def is_said() -> bool:
        client.tracked.reconcile()
        return client.app.jobs.get(job_id).message == message

    eventually(is_said, PATIENCE)
    assert not client.app.jobs.get(job_id).finished


@pytest.mark.parametrize("broker", ["redis"], indirect=True)
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"jobs": {"tasks.part": "No Kind"}}, "kind"),
        ({"jobs": {"": "thumbs"}}, "without a name"),
        ({"failures": "perhaps"}, "must be 'count' or 'fail'"),
        ({"lost_after": 0}, "lost_after"),
    ],
)
def test_options_that_are_wrong_are_refused(options: dict[str, Any], wrong: dict[str, Any], said: str) -> None:
    with pytest.raises((ConfigurationError, ValueError), match=said):
        make(**{**options, **wrong})


@pytest.mark.parametrize("broker", ["redis"], indirect=True)
def test_an_application_is_tracked_once(client: Tracking) -> None:
    from penstock.celery import track

    with pytest.raises(ConfigurationError, match="tracked already"):
        track(client.celery, client.app)
