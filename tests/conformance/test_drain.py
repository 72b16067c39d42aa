"""``drain`` and ``kickoff`` while others have what is left in hand: they wait, and see its end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from penstock import JobState, Penstock
from penstock.lifecycle import outcomes
from penstock.lifecycle.callers import worker
from penstock.operations.claim import claim
from penstock.operations.read_jobs import any_in_flight, get_job
from penstock.operations.record import ItemResult, record

PATIENCE = 30.0
SHORT = 0.5
Looks = list[str]


@pytest.fixture
def open_brisk(open_app: Callable[..., Penstock]) -> Callable[[], Penstock]:
    """Makes Penstocks with short intervals, and a poll so rare that it explains nothing."""
    return partial(open_app, heartbeat_seconds=0.05, sweep_seconds=0.1, poll_seconds=300.0)


@pytest.fixture
def app(open_brisk: Callable[[], Penstock]) -> Penstock:
    """One of them."""
    return open_brisk()


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Looks:
    """Each time a waiting worker looks whether something is left."""
    made: Looks = []

    def counted(look: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*given: Any) -> Any:
            made.append(look.__name__)
            return look(*given)

        return counting

    monkeypatch.setattr("penstock.worker.worker.any_in_flight", counted(any_in_flight))
    monkeypatch.setattr("penstock.worker.worker.get_job", counted(get_job))
    return made


def held_elsewhere(app: Penstock) -> tuple[Any, Any]:
    """A job whose only item another worker has, and that item."""
    job = app.submit("k", 1).job
    [item] = claim(app.store, "k", "another worker", size=1, lease_seconds=3600.0).items
    return job, item


def finish(app: Penstock, item: Any) -> None:
    """The other worker is done."""
    ended = ItemResult(item.item_id, item.lease, item.job_id, item.role, outcomes.done("1"))
    app.store.write(lambda one: record(one, [ended], worker("another worker")))


@pytest.mark.parametrize("one_job", [False, True], ids=["drain", "kickoff"])
def test_it_looks_now_and_then_and_not_all_the_time(
    app: Penstock, looks: Looks, one_job: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.worker.worker._FIRST_LOOK_SECONDS", 10 * PATIENCE, raising=False)
    app.kind("k")(lambda item: 1)
    job, _ = held_elsewhere(app)
    if one_job:
        assert app.jobs.kickoff(job.id, duration=SHORT).state is JobState.RUNNING
    else:
        assert app.drain(timeout=SHORT) is False
    assert len(looks) <= 1, "between two looks it waits as long as it is told to"


@pytest.mark.parametrize("one_job", [False, True], ids=["drain", "kickoff"])
def test_it_sees_the_end_of_what_another_worker_had(app: Penstock, one_job: bool) -> None:
    app.kind("k")(lambda item: 1)
    job, item = held_elsewhere(app)
    waiting = threading.Thread(
        target=lambda: app.jobs.kickoff(job.id, duration=PATIENCE) if one_job else app.drain(timeout=PATIENCE)
    )
    waiting.start()
    finish(app, item)
    waiting.join(PATIENCE)
    assert not waiting.is_alive()
    assert app.jobs.get(job.id).result == 1


def test_work_that_comes_meanwhile_is_done_and_waited_for(open_brisk: Callable[[], Penstock]) -> None:
    app, elsewhere = open_brisk(), open_brisk()
    begun, go_on = threading.Event(), threading.Event()

    def handler(item: Any) -> int:
        begun.set()
        assert go_on.wait(PATIENCE)
        return 2

    for one in (app, elsewhere):
        one.kind("k", runs_in="threads")(handler)
    _, item = held_elsewhere(app)
    answers: list[bool] = []
    waiting = threading.Thread(target=lambda: answers.append(app.drain(timeout=PATIENCE)))
    waiting.start()
    second = elsewhere.submit("k", 2).job
    assert begun.wait(PATIENCE)
    finish(elsewhere, item)
    assert answers == [], "one of its own still runs"
    go_on.set()
    waiting.join(PATIENCE)
    assert answers == [True]
    assert elsewhere.jobs.get(second.id).result == 2


def test_a_follower_of_such_a_job_is_waited_for_too(app: Penstock) -> None:
    app.kind("k")(lambda item: 1)
    app.submit("k", 1, owner="ann", unique_key="u")
    [item] = claim(app.store, "k", "another worker", size=1, lease_seconds=3600.0).items
    follower = app.submit("k", 1, owner="bob", unique_key="u").job
    assert app.drain(timeout=SHORT) is False
    finish(app, item)
    assert app.drain(timeout=PATIENCE)
    assert app.jobs.get(follower.id).result == 1
