"""Handlers on a cluster, from the submission to the result, on both brokers and both databases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

from sqlalchemy import select

from penstock import ItemStatus, Job, JobState
from penstock.store.tables import job_items
from penstock.testing.invariants import violations
from tests.celery.brokers import Broker
from tests.celery.cluster import PATIENCE, Cluster
from tests.sizes import size
from tests.waiting import eventually

ITEMS = size(400, 10_000)
LEASE = timedelta(seconds=2)


def test_every_item_runs_once_and_says_where(cluster: Cluster) -> None:
    job = cluster.app.submit("count", items=range(ITEMS)).job
    done = cluster.wait(job.id)
    assert (done.state, done.progress.processed) == (JobState.SUCCEEDED, ITEMS)
    assert cluster.ran(job_id=job.id) == Counter({(str(job.id), position): 1 for position in range(1, ITEMS + 1)})
    started = next(line for line in cluster.app.jobs.history(job.id) if line.to_state is JobState.RUNNING)
    assert str(started.actor_id).startswith("celery:")
    assert str(started.actor_id).endswith("@test")
    assert violations(cluster.app.store) == []


def test_a_job_that_plans_and_finalizes_goes_all_the_way(cluster: Cluster) -> None:
    job = cluster.app.submit("table", {"rows": 50}).job
    done = cluster.wait(job.id)
    assert (done.state, done.result) == (JobState.SUCCEEDED, sum(range(50)))
    assert set(cluster.ran(job_id=job.id).values()) == {1}


def test_doubled_and_forged_tickets_run_nothing_twice(cluster: Cluster, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    job = cluster.app.submit("count", items=[{"wait_for": str(gate)}, *range(20)]).job
    cluster.wait_for_lines(1, job_id=job.id)
    for number in range(10):
        cluster.send_arguments(kind="count", size=100, task_id=f"again-{number % 2}")
    wrong: list[dict[str, object]] = [{"kind": "nobody's", "size": 1}, {"kind": "count", "size": -1}, {"kind": "count"}]
    for keywords in (*wrong, {}):
        cluster.send_arguments(**keywords)
    cluster.send_arguments("count", 10**30)
    eventually(lambda: cluster.log.read_text().count("a ticket") >= 4 and not cluster.count_waiting())
    gate.touch()
    assert cluster.wait(job.id).progress.processed == 21
    assert set(cluster.ran(job_id=job.id).values()) == {1}


def test_a_child_that_is_killed_costs_no_try_and_its_items_come_back_at_once(cluster: Cluster, tmp_path: Path) -> None:
    job = cluster.app.submit("count", items=[1, 2, {"die_unless": str(tmp_path / "died")}, 4, 5]).job
    done = cluster.wait(job.id)
    assert (done.state, done.progress.processed, done.progress.failed) == (JobState.SUCCEEDED, 5, 0)
    assert done.deaths == 1
    [item] = [item for item in cluster.app.items.list(job.id) if item.position == 3]
    assert (item.status, item.attempts, item.deaths) == (ItemStatus.DONE, 1, 1)
    assert cluster.ran("begun", job.id)[(str(job.id), 3)] == 2


def lease_end(cluster: Cluster, job: Job) -> datetime:
    """Until when the only item of a job is claimed."""
    query = select(job_items.c.lock_expires_at).where(job_items.c.job_id == job.id)
    with cluster.app.store.engine.connect() as connection:
        found = connection.execute(query).scalar_one()
    assert isinstance(found, datetime)
    return found


def test_a_backlog_longer_than_the_lease_costs_no_item_a_try(
    rabbitmq_broker: Broker, new_cluster: Callable[..., Cluster], tmp_path: Path
) -> None:
    """One process has its hands full for longer than a lease, and tickets for the rest wait in the broker."""
    milliseconds = str(int(LEASE.total_seconds() * 1000))
    cluster = new_cluster(rabbitmq_broker, LOCK_FLOOR_MS=milliseconds, LOCK_CAP_MS=milliseconds)
    gate = tmp_path / "gate"
    cluster.start_worker(processes=1)
    with cluster.dispatching():
        blocked = cluster.app.submit("count", items=[{"wait_for": str(gate)}]).job
        cluster.wait_for_lines(1, job_id=blocked.id)
        first_end = lease_end(cluster, blocked)
        job = cluster.app.submit("count", items=range(200)).job
        eventually(lambda: cluster.count_waiting() > 0, PATIENCE)
        eventually(lambda: lease_end(cluster, blocked) > first_end + LEASE, PATIENCE)
        items = cluster.app.items.list(job.id, limit=200)
        assert {(item.status, item.locked_by) for item in items} == {(ItemStatus.PENDING, None)}
        gate.touch()
        done = cluster.wait(job.id)
    assert (done.state, done.progress.processed, done.progress.failed) == (JobState.SUCCEEDED, 200, 0)
    assert set(cluster.ran("begun", job.id).values()) == {1}
    assert {item.attempts for item in cluster.app.items.list(job.id, limit=200)} == {1}
    assert cluster.wait(blocked.id).state is JobState.SUCCEEDED
    assert violations(cluster.app.store) == []
