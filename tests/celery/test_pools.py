"""Pools without processes: there everything works too, but what has begun cannot be stopped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from penstock import ItemStatus, JobState
from penstock.testing.invariants import violations
from tests.celery.brokers import Broker
from tests.celery.cluster import PATIENCE, Cluster
from tests.celery.tracked_app import Tracking, send
from tests.celery.tracked_workers import TrackedWorker
from tests.waiting import eventually

POOLS = ("threads", "solo")


@pytest.fixture
def options(redis_broker: Broker, new_database: Callable[[Broker], str]) -> dict[str, Any]:
    """What client and worker have in common."""
    url = redis_broker.url
    return {"broker": url, "backend": url, "database_url": new_database(redis_broker), "queue": f"pool-{uuid4().hex}"}


@pytest.mark.parametrize("pool", POOLS)
def test_handlers_run_once_each_and_a_canceled_one_is_not_believed(
    redis_broker: Broker, new_cluster: Callable[..., Cluster], tmp_path: Path, pool: str
) -> None:
    cluster = new_cluster(redis_broker)
    gate = tmp_path / "gate"
    canceled = cluster.app.submit("count", items=[{"wait_for": str(gate)}]).job
    cluster.start_worker(pool=pool)
    with cluster.dispatching():
        cluster.wait_for_lines(1, job_id=canceled.id)
        cluster.app.jobs.cancel(canceled.id)
        eventually(lambda: cluster.item(canceled).locked_by is None, PATIENCE)
        gate.touch()
        job = cluster.app.submit("count", items=range(50)).job
        done = cluster.wait(job.id)
    assert (done.state, done.progress.processed) == (JobState.SUCCEEDED, 50)
    assert len(cluster.ran(job_id=job.id)) == 50
    assert set(cluster.ran(job_id=job.id).values()) == {1}
    cluster.wait_for_lines(1, "done", canceled.id)
    assert cluster.app.jobs.get(canceled.id).state is JobState.CANCELED
    assert cluster.item(canceled).status is not ItemStatus.DONE
    assert violations(cluster.app.store) == []


@pytest.mark.parametrize("pool", POOLS)
def test_tracked_tasks_are_followed_and_what_runs_goes_on_after_a_cancel(
    client: Tracking, options: dict[str, Any], tmp_path: Path, pool: str
) -> None:
    gate = tmp_path / "gate"
    worker = TrackedWorker(tmp_path, options, name=pool, concurrency=2, pool=pool)
    try:
        worker.wait_until_ready()
        canceled = send(client, "coordinator", 6, gate=str(gate))
        eventually(lambda: client.app.jobs.get(canceled).state is JobState.RUNNING, PATIENCE)
        assert client.app.jobs.cancel(canceled).state is JobState.CANCELED
        gate.touch()
        job_id = send(client, "coordinator", 4)
        done = client.app.jobs.wait(job_id, timeout=PATIENCE)
        assert (done.state, done.progress.processed, done.progress.total) == (JobState.SUCCEEDED, 6, 6), done
        assert client.app.jobs.get(canceled).state is JobState.CANCELED
    finally:
        worker.kill()
