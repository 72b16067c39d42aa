"""Real threads at the same instant: one of them wins, none is lost and nobody waits for ever."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import func, select, text

from penstock.clock import ManualClock
from penstock.errors import JobNotFound, TransitionRefused, WorkerCrashed
from penstock.lifecycle import outcomes
from penstock.lifecycle.callers import SYSTEM
from penstock.lifecycle.job import ClaimedItem, SubmitOutcome
from penstock.lifecycle.states import ItemRole, JobState
from penstock.operations import control, heartbeat, outbox
from penstock.operations.reprocess import reprocess
from penstock.store.engine import Store
from penstock.store.tables import job_items, jobs
from penstock.testing.drive import LEASE, MAX_BYTES, Workbench
from penstock.testing.invariants import violations
from tests.properties.engine_kinds import engine_kinds
from tests.sizes import size

DONE = outcomes.done('{"ok":true}')
THREADS = 8


class Together:
    """Runs functions at the same instant; an answer is what one returned or the refusal it raised."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(THREADS)

    def __call__(self, *functions: Callable[[], Any]) -> list[Any]:
        barrier = threading.Barrier(len(functions))

        def run(function: Callable[[], Any]) -> Any:
            barrier.wait(timeout=30)
            try:
                return function()
            except TransitionRefused as refused:
                return refused

        return [future.result(timeout=60) for future in [self._pool.submit(run, one) for one in functions]]

    def close(self) -> None:
        self._pool.shutdown()


@pytest.fixture
def together() -> Iterator[Together]:
    running = Together()
    yield running
    running.close()


@pytest.fixture(params=["file", "postgres"])
def bench(request: pytest.FixtureRequest) -> Workbench:
    store: Store = request.getfixturevalue(f"{request.param}_store")
    assert isinstance(store.clock, ManualClock)
    return Workbench(store, store.clock, engine_kinds())


@pytest.fixture
def rounds(bench: Workbench) -> Callable[[int], range]:
    """SQLite's writers queue anyway, so a race there is one of few orders."""
    share = size(2, 1) if bench.store.dialect.name == "postgresql" else 4
    return lambda many: range(many // share)


def write(bench: Workbench, verb: Callable[..., Any], *arguments: Any, **named: Any) -> Callable[[], Any]:
    return lambda: bench.store.write(lambda one: verb(one, *arguments, **named))


def finalize_items(bench: Workbench, job_id: UUID) -> int:
    found = select(func.count()).where(job_items.c.job_id == job_id, job_items.c.role == ItemRole.FINALIZE.value)
    return bench.store.read(lambda one: one.values(int, found))[0]


def test_the_last_two_items_bring_one_finalize(bench: Workbench, together: Together, rounds: Any) -> None:
    for _ in rounds(200):
        job = bench.submit("bulk", items=[1, 2]).job
        first, second = bench.claim("bulk")
        landed = together(partial(bench.record, [first], DONE, "w1"), partial(bench.record, [second], DONE, "w2"))
        assert landed == [{first.item_id}, {second.item_id}]
        assert finalize_items(bench, job.id) == 1
        finalize = bench.claim("bulk")
        assert [one.role for one in finalize] == [ItemRole.FINALIZE]
        bench.record(finalize, DONE)
        assert bench.job(job.id).state is JobState.SUCCEEDED
    assert violations(bench.store) == []


@pytest.mark.parametrize(("verb", "state"), [(control.cancel, "canceled"), (control.pause, "paused")])
def test_nothing_starts_after_a_stop(
    bench: Workbench, together: Together, rounds: Any, verb: Callable[..., Any], state: str
) -> None:
    orders: Counter[bool] = Counter()
    for _ in rounds(100):
        job = bench.submit("single").job
        taken, _ = together(lambda: bench.claim("single"), write(bench, verb, job.id, SYSTEM))
        started = bool(taken)
        assert bench.states(job.id) == (["queued", "running", state] if started else ["queued", state])
        assert bench.claim("single") == []
        orders[started] += 1
        if state == "paused":
            write(bench, control.cancel, job.id, SYSTEM)()
    assert violations(bench.store) == []
    assert orders.total() >= 25


@pytest.mark.parametrize("owners", [["ann"] * THREADS, [f"user {n}" for n in range(THREADS)]], ids=["same", "other"])
def test_one_key_has_one_leader(bench: Workbench, together: Together, rounds: Any, owners: list[str]) -> None:
    for number in rounds(40):
        key = f"key {number}"
        answers = together(*(partial(bench.submit, "single", owner=who, unique_key=key) for who in owners))
        kinds = Counter(one.answer for one in answers)
        other = SubmitOutcome.EXISTING if len(set(owners)) == 1 else SubmitOutcome.FOLLOWING
        assert kinds == {SubmitOutcome.NEW: 1, other: THREADS - 1}
        [leader] = [one.job.id for one in answers if one.answer is SubmitOutcome.NEW]
        assert {one.job.leader_id or one.job.id for one in answers} == {leader}
        bench.drain("single")
    assert violations(bench.store) == []
    assert {job.state for job in bench.jobs()} == {JobState.SUCCEEDED}


@pytest.mark.parametrize("what", ["new", "following", "cached"])
def test_one_idempotency_key_is_one_job(bench: Workbench, together: Together, rounds: Any, what: str) -> None:
    for number in rounds(40):
        request: dict[str, Any] = {"owner": "bob", "idempotency_key": f"i{number}"}
        if what != "new":
            request["unique_key"] = f"u{number}"
            bench.submit("single", owner="ann", unique_key=f"u{number}")
        if what == "cached":
            request["fresh_for"] = 60.0
            bench.drain("single")
        answers = together(*[partial(bench.submit, "single", **request)] * 4)
        assert len({one.job.id for one in answers}) == 1
    assert violations(bench.store) == []


def test_who_joins_a_job_that_ends_is_served_all_the_same(bench: Workbench, together: Together, rounds: Any) -> None:
    for number in rounds(100):
        request: dict[str, Any] = {"unique_key": f"u{number}"}
        bench.submit("single", owner="ann", **request)
        held = bench.claim("single")
        joined, _ = together(partial(bench.submit, "single", owner="bob", **request), partial(bench.record, held, DONE))
        if number % 10 == 9:
            assert violations(bench.store) == []
        bench.drain("single")
        assert bench.job(joined.job.id).state is JobState.SUCCEEDED


def test_who_joins_a_job_that_is_canceled_is_served_all_the_same(
    bench: Workbench, together: Together, rounds: Any
) -> None:
    for number in rounds(100):
        request: dict[str, Any] = {"unique_key": f"u{number}", "items": [1, 2]}
        leader = bench.submit("bulk", owner="ann", **request).job
        joined, _ = together(
            partial(bench.submit, "bulk", owner="bob", **request),
            write(bench, control.cancel, leader.id, SYSTEM),
        )
        if number % 10 == 9:
            assert violations(bench.store) == []
        while bench.drain("bulk"):
            pass
        assert bench.job(joined.job.id).state is JobState.SUCCEEDED


def test_two_claims_never_share_an_item(bench: Workbench, together: Together) -> None:
    total = 0
    for count in (1, 7, 90, 150):
        bench.submit("bulk", items=list(range(count)))
        total += count

    def claim_all(name: str) -> list[int]:
        mine: list[int] = []
        while held := bench.claim("bulk", name, size=3):
            mine += [one.item_id for one in held]
        return mine

    taken = [item for mine in together(*(partial(claim_all, f"w{n}") for n in range(4))) for item in mine]
    assert len(taken) == len(set(taken)) == total
    assert violations(bench.store) == []


def test_two_relays_keep_the_order_of_a_key(bench: Workbench, together: Together, rounds: Any) -> None:
    sent: list[tuple[str, int]] = []

    def append(transaction: Any) -> None:
        for number in range(150):
            for key in ("a", "b"):
                outbox.append(transaction, "t", number, key=key, max_bytes=MAX_BYTES)

    def send(message: outbox.Message) -> None:
        sent.append((str(message.key), message.payload))

    for _ in rounds(20):
        sent.clear()
        bench.store.write(append)
        while any(together(lambda: outbox.relay(bench.store, send), lambda: outbox.relay(bench.store, send))):
            pass
        assert len(sent) == 300
        for key in ("a", "b"):
            assert [number for one, number in sent if one == key] == list(range(150))


class Busy:
    """One of several threads that do anything at all to the same jobs."""

    def __init__(self, bench: Workbench, number: int) -> None:
        self.bench, self.name = bench, f"w{number}"
        self.chance = random.Random(number)
        self.held: list[ClaimedItem] = []

    def __call__(self, steps: int) -> int:
        verbs = [self.claim, self.claim, self.record, self.record, self.control, self.submit, self.sweep, self.extend]
        for _ in range(steps):
            with suppress(TransitionRefused, JobNotFound, WorkerCrashed):
                self.chance.choice(verbs)()
        return steps

    def claim(self) -> None:
        self.held += self.bench.claim(self.chance.choice(["bulk", "planned", "again"]), self.name, size=4)

    def record(self) -> None:
        dialect = [DONE, DONE, outcomes.retried("l", "L", 0.0), outcomes.failed("f", "F"), outcomes.released()]
        self.chance.shuffle(self.held)
        for one in self.held:
            if one.role is ItemRole.PLAN:
                self.bench.plan(one, [1, 2])
        held, self.held = self.held, []
        self.bench.hand_in([(one, self.way(one, self.chance.choice(dialect))) for one in held], self.name)

    def way(self, one: ClaimedItem, outcome: outcomes.Outcome) -> outcomes.Outcome:
        return outcomes.failed("f", "F") if outcome.delay is not None and one.attempt > one.max_retries else outcome

    def control(self) -> None:
        job = self.chance.choice(self.bench.jobs())
        verb = self.chance.choice([control.pause, control.resume, control.resume, control.cancel, "again"])
        if verb == "again":
            kind = self.bench.kinds.get(job.kind)
            self.bench.store.write(lambda one: reprocess(one, kind, job.id, SYSTEM))
        elif verb is not control.cancel or self.chance.random() < 0.2:
            self.bench.store.write(lambda one: verb(one, job.id, SYSTEM))  # type: ignore[operator]

    def submit(self) -> None:
        kind, who = self.chance.choice(["bulk", "planned", "again"]), self.chance.choice(["ann", "bob", "cyd"])
        self.bench.submit(kind, owner=who, unique_key=f"u{self.chance.randrange(10)}")

    def sweep(self) -> None:
        self.bench.clock.advance(self.chance.choice([1, LEASE / 2]))
        self.bench.sweep(stale_seconds=100)

    def extend(self) -> None:
        held = self.held
        self.bench.store.write(lambda one: heartbeat.extend(one, held, LEASE))


def test_four_who_do_anything_at_once_do_not_stand_in_each_others_way(bench: Workbench, together: Together) -> None:
    for number in range(10):
        bench.submit(["bulk", "planned", "again"][number % 3], owner="ann", unique_key=f"u{number}")
    busy = [Busy(bench, number) for number in range(4)]
    assert together(*(partial(one, 100) for one in busy)) == [100] * 4
    assert violations(bench.store) == []
    assert bench.drive_to_end() == []
    assert violations(bench.store) == []
    assert len(bench.jobs()) > 10


def test_no_deadlock_has_to_be_broken(postgres_store: Store, together: Together) -> None:
    """One would be tried again and go unnoticed, but a second late: so the server is asked whether it saw any."""
    clock = postgres_store.clock
    assert isinstance(clock, ManualClock)
    bench = Workbench(postgres_store, clock, engine_kinds())
    for number in range(10):
        kind, rows = ["bulk", "planned", "again"][number % 3], list(range(20))
        bench.submit(kind, owner="ann", items=rows, unique_key=f"u{number}")
    busy = [Busy(bench, number) for number in range(4)]
    together(*(partial(one, 100) for one in busy))
    postgres_store.close()
    asked = text(
        "SELECT pg_stat_force_next_flush(), deadlocks FROM pg_stat_database WHERE datname = current_database()"
    )
    assert bench.store.read(lambda one: one.connection.execute(asked).one()).deadlocks == 0


def test_a_heartbeat_waits_for_nobody(postgres_store: Store) -> None:
    """It comes while others hold the job; waiting for them is how it once met a recorder in a deadlock."""
    clock = postgres_store.clock
    assert isinstance(clock, ManualClock)
    bench = Workbench(postgres_store, clock, engine_kinds())
    job = bench.submit("bulk", items=[1]).job
    held = bench.claim("bulk")
    with postgres_store.engine.connect() as other:
        other.execute(select(jobs.c.id).where(jobs.c.id == job.id).with_for_update())

        assert (
            bench.store.write(lambda one: heartbeat.extend(one, held, LEASE), bounded=True) == heartbeat.NotExtended()
        )
        other.rollback()
