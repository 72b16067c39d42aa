"""Two transactions on PostgreSQL, statement by statement: one of them waits for the other, and then sees what is true.

Each test brings one transaction to a point, lets the other run into it in a thread of its own until the server says
that it waits for a lock, and then lets the first one commit.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import event, text

from penstock.clock import ManualClock
from penstock.errors import PenstockError, TransitionRefused, WorkerCrashed
from penstock.lifecycle import outcomes
from penstock.lifecycle.callers import SYSTEM, owner, worker
from penstock.lifecycle.job import SubmitOutcome
from penstock.lifecycle.states import JobState
from penstock.operations import control, maintenance
from penstock.operations.record import record
from penstock.operations.reprocess import reprocess
from penstock.operations.request import Request
from penstock.operations.submit import submit
from penstock.store.engine import Store
from penstock.store.transaction import Transaction
from penstock.testing.drive import Workbench, item_result
from penstock.testing.invariants import violations
from tests.properties.engine_kinds import engine_kinds

S = JobState
DONE = outcomes.done('{"ok":true}')
WAITING = text("SELECT count(*) FROM pg_locks WHERE NOT granted")


@pytest.fixture
def bench(postgres_store: Store) -> Workbench:
    assert isinstance(postgres_store.clock, ManualClock)
    return Workbench(postgres_store, postgres_store.clock, engine_kinds())


@pytest.fixture
def elsewhere() -> Iterator[Callable[..., Future[Any]]]:
    with ThreadPoolExecutor(4) as pool:
        yield pool.submit


def until_waiting(store: Store, *, count: int = 1) -> None:
    """The server says that so many wait for a lock."""
    deadline = time.monotonic() + 20
    with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        while connection.execute(WAITING).scalar() != count:
            assert time.monotonic() < deadline, "nobody waits"


@contextmanager
def opened(store: Store) -> Iterator[Transaction]:
    """A transaction that commits at the end of the block."""
    with store.engine.connect() as connection, connection.begin():
        yield Transaction(connection, store)


class Stopped:
    """A call in a thread of its own that stops before its first statement with certain words."""

    def __init__(self, pool: Any, store: Store, words: str, call: Callable[[], Any]) -> None:
        self._there, self._go = threading.Event(), threading.Event()
        self._engine, self._words = store.engine, words
        event.listen(self._engine, "before_cursor_execute", self._stop)
        self._future: Future[Any] = pool(self._run, call)
        assert self._there.wait(20), f"it came to no {words}"

    def _run(self, call: Callable[[], Any]) -> Any:
        self._thread = threading.get_ident()
        return call()

    def _stop(self, _connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        mine = threading.get_ident() == getattr(self, "_thread", None)
        if mine and self._words in statement and not self._there.is_set():
            self._there.set()
            assert self._go.wait(20)

    def go_on(self) -> Any:
        """What the call answers."""
        self._go.set()
        try:
            return self._future.result(20)
        finally:
            event.remove(self._engine, "before_cursor_execute", self._stop)


def write(bench: Workbench, verb: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    return bench.store.write(lambda one: verb(one, *arguments, **named))


def test_a_batch_of_a_plan_does_not_land_after_its_lease_has_gone(bench: Workbench, elsewhere: Any) -> None:
    bench.submit("planned")
    [plan] = bench.claim("planned")
    bench.clock.advance(31)
    with opened(bench.store) as sweeping:
        maintenance.rescue(sweeping, bench.kinds, 3)
        batch = elsewhere(bench.plan, plan, [1, 2])
        until_waiting(bench.store)
    with pytest.raises(WorkerCrashed, match="lost its lease"):
        batch.result(20)
    assert violations(bench.store) == []


def test_a_young_result_that_comes_in_between_is_used(bench: Workbench, elsewhere: Any) -> None:
    bench.submit("single", owner="ann", unique_key="u")
    held = bench.claim("single")

    asked = Stopped(
        elsewhere,
        bench.store,
        "INSERT INTO penstock.jobs",
        lambda: bench.submit("single", owner="bob", unique_key="u", fresh_for=60),
    )
    bench.record(held, DONE)
    assert asked.go_on().answer is SubmitOutcome.CACHED
    assert bench.claim("single") == []
    assert violations(bench.store) == []


def test_a_job_that_has_just_succeeded_gets_no_empty_second_run(bench: Workbench, elsewhere: Any) -> None:
    job = bench.submit("again", owner="ann").job
    held = bench.claim("again")

    asked = Stopped(
        elsewhere,
        bench.store,
        "UPDATE",
        lambda: write(bench, reprocess, bench.kinds.get("again"), job.id, owner("ann")),
    )
    bench.record(held, DONE)
    with pytest.raises(TransitionRefused) as refused:
        asked.go_on()
    assert refused.value.code == "NOTHING_TO_REPROCESS"
    assert (bench.job(job.id).state, bench.job(job.id).run) == (S.SUCCEEDED, 1)


def test_a_reason_that_is_gone_when_it_is_told_is_no_reason(bench: Workbench, elsewhere: Any) -> None:
    """Paused, and resumed before the second pause is explained: then it can be paused."""
    job = bench.submit("single", owner="ann").job
    write(bench, control.pause, job.id, owner("ann"))

    asked = Stopped(
        elsewhere, bench.store, "SELECT jobs.state", lambda: write(bench, control.pause, job.id, owner("ann"))
    )
    write(bench, control.resume, job.id, owner("ann"))
    assert asked.go_on().state is S.PAUSED
    assert violations(bench.store) == []


def test_somebody_who_is_just_joining_keeps_the_leader_from_being_paused(bench: Workbench, elsewhere: Any) -> None:
    ann = bench.submit("single", owner="ann", unique_key="u").job
    gone = bench.submit("single", owner="cid", unique_key="u").job
    write(bench, control.cancel, gone.id, SYSTEM)
    with opened(bench.store) as joining:
        submit(
            joining, bench.kinds.get("single"), None, Request(owner="bob", unique_key="u"), items=None, max_bytes=1_000
        )
        pausing = elsewhere(write, bench, control.pause, ann.id, owner("ann"))
        until_waiting(bench.store)
    with pytest.raises(TransitionRefused) as refused:
        pausing.result(20)
    assert refused.value.code == "JOB_SHARED"
    assert violations(bench.store) == []


def test_reprocess_and_record_take_their_locks_in_the_same_order(bench: Workbench, elsewhere: Any) -> None:
    """The job has failed while its finalize step is in a worker's hands: both want the item and the job."""
    job = bench.submit("limited", owner="ann").job
    bench.record(bench.claim("limited"), DONE)
    [finalize] = bench.claim("limited", lease=1000)
    bench.clock.advance(121)
    bench.sweep()
    assert bench.job(job.id).state is S.FAILED
    failures: list[str] = []

    def note(context: Any) -> None:
        failures.append(str(context.original_exception))

    event.listen(bench.store.engine, "handle_error", note)
    with opened(bench.store) as recording:
        # The first half of a record: it has the item, and will want the job.
        recording.connection.execute(
            text("SELECT id FROM penstock.job_items WHERE id = :id FOR UPDATE"), {"id": finalize.item_id}
        )
        asked = elsewhere(write, bench, reprocess, bench.kinds.get("limited"), job.id, owner("ann"))
        until_waiting(bench.store)
        record(recording, [item_result(finalize, DONE)], worker("w1"))
    asked.result(20)
    event.remove(bench.store.engine, "handle_error", note)
    assert failures == []
    assert bench.job(job.id).run == 2
    assert violations(bench.store) == []


def test_a_follower_is_not_failed_alone_while_its_leader_is_being_claimed(bench: Workbench) -> None:
    ann = bench.submit("limited", owner="ann", unique_key="u").job
    bob = bench.submit("limited", owner="bob", unique_key="u").job
    bench.clock.advance(61)
    with opened(bench.store) as claiming:
        claiming.connection.execute(
            text("SELECT id FROM penstock.jobs WHERE id = :id FOR NO KEY UPDATE"), {"id": ann.id}
        )
        bench.sweep()
    assert bench.job(bob.id).state is S.QUEUED


def test_the_bound_on_what_waits_is_exact(bench: Workbench, elsewhere: Any) -> None:
    bench.submit("limited")
    bench.submit("limited")
    with opened(bench.store) as first:
        submit(first, bench.kinds.get("limited"), None, Request(), items=None, max_bytes=1_000)
        second = elsewhere(bench.submit, "limited")
        until_waiting(bench.store)
    assert second.result(20).job.error_code == "QUEUE_OVERLOAD"
    assert [job.state for job in bench.jobs()].count(S.QUEUED) == 3


def test_of_two_requests_with_one_key_at_once_the_second_finds_the_firsts_job(bench: Workbench, elsewhere: Any) -> None:
    request = Request(owner="ann", idempotency_key="i")
    with opened(bench.store) as first:
        won = submit(first, bench.kinds.get("single"), 1, request, items=None, max_bytes=1_000)
        same = elsewhere(bench.submit, "single", 1, owner="ann", idempotency_key="i")
        other = elsewhere(bench.submit, "single", 2, owner="ann", idempotency_key="i")
        until_waiting(bench.store, count=2)
    assert (same.result(20).job.id, same.result(20).answer) == (won.job.id, SubmitOutcome.EXISTING)
    with pytest.raises(PenstockError) as refused:
        other.result(20)
    assert refused.value.code == "IDEMPOTENCY_KEY_REUSED"
    assert len(bench.jobs()) == 1


def test_resumed_while_another_is_just_submitted_it_follows_that_one(bench: Workbench, elsewhere: Any) -> None:
    ann = bench.submit("single", owner="ann", unique_key="u").job
    write(bench, control.pause, ann.id, owner("ann"))
    with opened(bench.store) as submitting:
        bob = submit(
            submitting,
            bench.kinds.get("single"),
            None,
            Request(owner="bob", unique_key="u"),
            items=None,
            max_bytes=1_000,
        ).job
        resuming = elsewhere(write, bench, control.resume, ann.id, owner("ann"))
        until_waiting(bench.store)
    assert resuming.result(20).leader_id == bob.id
    assert violations(bench.store) == []
