"""Canceling, shutting down and killing, in the middle of the work."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

from penstock import ItemStatus, JobState
from penstock.celery.ticket import Ticket
from penstock.testing.invariants import violations
from tests.celery.brokers import Broker
from tests.celery.cluster import PATIENCE, Cluster, kill_group
from tests.sizes import size
from tests.waiting import eventually

NewCluster = Callable[..., Cluster]
ITEMS = size(300, 10_000)
SHORT_LEASES = {"LOCK_FLOOR_MS": "3000"}


def test_a_cancel_drops_the_items_of_that_job_and_ends_the_process_when_it_holds_nothing_else(
    broker: Broker, new_cluster: NewCluster, tmp_path: Path
) -> None:
    cluster = new_cluster(broker)
    never, gate = tmp_path / "never", tmp_path / "gate"
    canceled = cluster.app.submit("pair", items=[{"wait_for": str(never)}]).job
    other = cluster.app.submit("pair", items=[{"wait_for": str(gate)}]).job
    cluster.start_worker(processes=1)
    cluster.send(Ticket("pair", 10))
    cluster.wait_for_lines(2)
    [(_, _, process)] = cluster.lines("begun", other.id)
    assert [line[2] for line in cluster.lines("begun", canceled.id)] == [process], "one ticket holds both"
    assert cluster.item(canceled).locked_by == cluster.item(other).locked_by
    cluster.app.jobs.cancel(canceled.id)
    eventually(lambda: cluster.item(canceled).locked_by is None, PATIENCE)
    assert cluster.item(other).status is ItemStatus.PROCESSING, "it holds that one still"
    assert Path(f"/proc/{process}").exists()
    gate.touch()
    assert cluster.wait(other.id).progress.processed == 1
    assert cluster.lines("done", other.id) == [(str(other.id), 1, process)], "in the same process, once"
    eventually(lambda: not Path(f"/proc/{process}").exists(), PATIENCE)
    later = cluster.app.submit("pair", items=[1]).job
    cluster.send(Ticket("pair", 10))
    assert cluster.wait(later.id).state is JobState.SUCCEEDED
    assert cluster.lines("done", later.id)[0][2] != process
    assert cluster.app.jobs.get(canceled.id).state is JobState.CANCELED
    assert [cluster.app.jobs.get(job.id).deaths for job in (canceled, other, later)] == [0, 0, 0]


def test_a_warm_shutdown_finishes_what_is_in_hand_and_leaves_the_rest(
    broker: Broker, new_cluster: NewCluster, tmp_path: Path
) -> None:
    cluster = new_cluster(broker)
    gate = tmp_path / "gate"
    job = cluster.app.submit("count", items=[{"wait_for": str(gate)} for _ in range(5)]).job
    worker = cluster.start_worker(processes=1)
    cluster.send(*[Ticket("count", 1)] * 3)
    cluster.wait_for_lines(1)
    worker.send_signal(signal.SIGTERM)
    eventually(lambda: "Warm shutdown" in cluster.log.read_text(), PATIENCE)
    gate.touch()
    assert worker.wait(timeout=PATIENCE) == 0
    half_done = cluster.app.jobs.get(job.id)
    assert half_done.progress.processed == len(cluster.lines("done")) < 5
    assert half_done.progress.processed >= 1
    assert half_done.deaths == 0
    assert not any(item.locked_by for item in cluster.app.items.list(job.id))
    cluster.start_worker(processes=1)
    with cluster.dispatching():
        assert cluster.wait(job.id).progress.processed == 5
    assert set(cluster.ran(job_id=job.id).values()) == {1}


def test_a_killed_worker_and_a_killed_dispatcher_lose_nothing(broker: Broker, new_cluster: NewCluster) -> None:
    cluster = new_cluster(broker, **SHORT_LEASES)
    job = cluster.app.submit("count", items=range(ITEMS)).job
    worker, dispatcher = cluster.start_worker(), cluster.start_dispatcher()
    cluster.wait_for_lines(20)
    kill_group(dispatcher)
    kill_group(worker)
    cluster.start_worker()
    cluster.start_dispatcher()
    done = cluster.wait(job.id)
    assert (done.state, done.progress.processed, done.progress.failed) == (JobState.SUCCEEDED, ITEMS, 0)
    assert set(cluster.ran(job_id=job.id)) == {(str(job.id), position) for position in range(1, ITEMS + 1)}
    assert {item.attempts for item in cluster.app.items.list(job.id)} == {1}, "a death is not a try"
    assert violations(cluster.app.store) == []


def test_a_broker_that_is_killed_and_comes_back_loses_nothing(broker_to_kill: Broker, new_cluster: NewCluster) -> None:
    cluster = new_cluster(broker_to_kill)
    cluster.start_worker()
    with cluster.dispatching():
        job = cluster.app.submit("count", items=range(ITEMS)).job
        cluster.wait_for_lines(20)
        broker_to_kill.kill()
        late = cluster.app.submit("count", items=range(20)).job
        broker_to_kill.start()
        for job_id, items in ((job.id, ITEMS), (late.id, 20)):
            assert cluster.wait(job_id).progress.processed == items
            assert set(cluster.ran(job_id=job_id).values()) == {1}
            assert len(cluster.ran(job_id=job_id)) == items
