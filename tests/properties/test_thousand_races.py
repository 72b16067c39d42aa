"""Two who want the same job at the same moment, a thousand times on each database: one wins, and the other is told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from uuid import UUID

import pytest

from penstock.clock import ManualClock
from penstock.errors import TransitionRefused
from penstock.lifecycle.callers import SYSTEM
from penstock.lifecycle.job import Job
from penstock.lifecycle.kind import Kind
from penstock.lifecycle.policy import Policy
from penstock.lifecycle.states import JobState
from penstock.operations import control
from penstock.operations.request import Request
from penstock.operations.submit_many import submit_many
from penstock.store.engine import Store
from penstock.testing.drive import MAX_BYTES, Workbench
from penstock.testing.invariants import violations
from tests.properties.test_races import DONE, Together
from tests.sizes import size

ROUNDS = size(150, 1_000)
AT_ONCE = 7
KIND = "kept"


def nothing(item: Any) -> None:
    """One step."""


@pytest.fixture(params=["file", "postgres"])
def bench(request: pytest.FixtureRequest) -> Workbench:
    store: Store = request.getfixturevalue(f"{request.param}_store")
    assert isinstance(store.clock, ManualClock)
    return Workbench(store, store.clock, [Kind.of(KIND, nothing, Policy(abandon_after="1h"))])


@pytest.fixture
def together() -> Iterator[Together]:
    running = Together()
    yield running
    running.close()


def submitted(bench: Workbench, count: int) -> list[UUID]:
    """So many jobs of one step."""
    kind = bench.kinds.get(KIND)
    return bench.store.write(lambda one: submit_many(one, kind, [None] * count, Request(), max_bytes=MAX_BYTES))


def finished(bench: Workbench, count: int) -> list[UUID]:
    """So many jobs whose results wait for somebody."""
    jobs = submitted(bench, count)
    while bench.drain(KIND):
        pass
    return jobs


def ask(bench: Workbench, verb: Callable[..., Job], job: UUID) -> Job:
    """Commit, abandon or cancel a job."""
    return bench.store.write(lambda one: verb(one, job, SYSTEM))


def test_commit_against_abandon(bench: Workbench, together: Together) -> None:
    won: Counter[JobState] = Counter()
    for job in finished(bench, ROUNDS):
        sides = together(partial(ask, bench, control.commit, job), partial(ask, bench, control.abandon, job))
        [winner] = [one for one in sides if not isinstance(one, TransitionRefused)]
        [loser] = [one for one in sides if isinstance(one, TransitionRefused)]
        assert f"is {winner.state.value}:" in str(loser)
        assert bench.job(job).state is winner.state
        won[winner.state] += 1
    assert won.total() == ROUNDS
    assert won.keys() <= {JobState.COMMITTED, JobState.ABANDONED}
    assert violations(bench.store) == []


def test_cancel_against_complete(bench: Workbench, together: Together) -> None:
    submitted(bench, ROUNDS)
    held = bench.claim(KIND, size=ROUNDS)
    assert len(held) == ROUNDS
    won: Counter[JobState] = Counter()
    for item in held:
        landed, canceled = together(
            partial(bench.record, [item], DONE), partial(ask, bench, control.cancel, item.job_id)
        )
        state = bench.job(item.job_id).state
        assert state is (JobState.SUCCEEDED if isinstance(canceled, TransitionRefused) else JobState.CANCELED)
        if state is JobState.SUCCEEDED:
            assert landed == {item.item_id}
        won[state] += 1
    assert won.total() == ROUNDS
    assert violations(bench.store) == []


def test_sweep_against_commit(bench: Workbench, together: Together) -> None:
    won: Counter[JobState] = Counter()
    while won.total() < ROUNDS:
        jobs = finished(bench, AT_ONCE)
        bench.clock.advance(3601.0)
        swept, *answers = together(bench.sweep, *(partial(ask, bench, control.commit, job) for job in jobs))
        refused = [job for job, one in zip(jobs, answers, strict=True) if isinstance(one, TransitionRefused)]
        assert swept.abandoned == len(refused)
        for job in jobs:
            state = bench.job(job).state
            assert state is (JobState.ABANDONED if job in refused else JobState.COMMITTED)
            won[state] += 1
    assert won.keys() <= {JobState.COMMITTED, JobState.ABANDONED}
    assert violations(bench.store) == []
