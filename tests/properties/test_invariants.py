"""The invariants see what they are for: a row is broken by hand, and the job is named with what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import update

from penstock.clock import ManualClock
from penstock.lifecycle import outcomes
from penstock.lifecycle.states import Actor, JobState
from penstock.store.engine import Store
from penstock.store.tables import job_events, jobs
from penstock.testing.drive import Workbench
from penstock.testing.invariants import violations
from tests.properties.engine_kinds import engine_kinds

Break = Callable[[Workbench, Any, Any], object]


@pytest.fixture
def bench(memory_store: Store) -> Workbench:
    assert isinstance(memory_store.clock, ManualClock)
    return Workbench(memory_store, memory_store.clock, engine_kinds())


def change(bench: Workbench, job_id: Any, **values: Any) -> None:
    bench.store.write(lambda one: one.execute(update(jobs).where(jobs.c.id == job_id).values(**values)))


def rewrite_history(bench: Workbench, job_id: Any, to_state: str, **values: Any) -> None:
    lines = update(job_events).where(job_events.c.job_id == job_id, job_events.c.to_state == to_state)
    bench.store.write(lambda one: one.execute(lines.values(**values)))


@pytest.fixture
def shared(bench: Workbench) -> tuple[Any, Any]:
    """Ann's job leads, Bob's follows."""
    ann = bench.submit("again", owner="ann", unique_key="u").job.id
    return ann, bench.submit("again", owner="bob", unique_key="u").job.id


def said(bench: Workbench) -> str:
    return "\n".join(violations(bench.store))


@pytest.mark.parametrize("state", [JobState.PAUSED, JobState.CREATED])
def test_nobody_follows_a_job_that_somebody_holds_back(bench: Workbench, shared: Any, state: JobState) -> None:
    change(bench, shared[0], state=state.value, next_claim_at=None)
    assert f"LOST: it follows {shared[0]}, which is {state.value}" in said(bench)


def test_a_leader_knows_that_it_is_followed(bench: Workbench, shared: Any) -> None:
    change(bench, shared[0], has_followers=False)
    assert "which does not know of it" in said(bench)


def test_a_follower_does_not_fail_while_its_leader_goes_on(bench: Workbench, shared: Any) -> None:
    ann, bob = shared
    bench.record(bench.claim("again"), outcomes.failed("no", "NO"))
    assert violations(bench.store) == []
    rewrite_history(bench, ann, "failed", at=bench.clock.held().replace(year=2030))
    assert f"it failed, but {ann}, which it followed, had not" in said(bench)
    assert str(bob) in said(bench)


def test_a_follower_ends_as_the_run_of_its_leader_that_it_followed(bench: Workbench, shared: Any) -> None:
    """A later run of the leader may end otherwise."""
    bench.record(bench.claim("again"), outcomes.failed("no", "NO"))
    bench.clock.advance(1)
    from penstock.lifecycle.callers import SYSTEM
    from penstock.operations.reprocess import reprocess

    bench.store.write(lambda one: reprocess(one, bench.kinds.get("again"), shared[0], SYSTEM))
    bench.drain("again")
    assert bench.job(shared[0]).state is JobState.SUCCEEDED
    assert violations(bench.store) == []


def test_only_who_may_makes_a_change(bench: Workbench) -> None:
    job = bench.submit("single", owner="ann", hold=True).job
    bench.let_flow(bench.job(job.id))
    assert violations(bench.store) == []
    rewrite_history(bench, job.id, "queued", actor=Actor.WORKER.value)
    assert "created → queued, was made by worker" in said(bench)
