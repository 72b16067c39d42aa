"""Handlers on a cluster, from the submission to the result, on both brokers and both databases."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from penstock import ItemStatus, JobState
from penstock.testing.invariants import violations
from tests.celery.cluster import Cluster
from tests.sizes import size
from tests.waiting import eventually

ITEMS = size(400, 10_000)


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
