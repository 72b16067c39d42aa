"""Anything anybody may do to jobs, in any order: the rows stay true, nothing is done twice and nothing is lost.

The machine keeps a model of its own: which lease is the one that counts for each item. An outcome must land when its
lease is that one and must not when it is another's, and in the end every job that was not canceled is over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import note, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import select

from penstock.clock import HeldClock
from penstock.errors import InvalidInput, JobNotFound, TransitionRefused, WorkerCrashed
from penstock.lifecycle import outcomes, transitions
from penstock.lifecycle.callers import SYSTEM, Caller, admin, owner
from penstock.lifecycle.job import Answer, Claimed, Job
from penstock.lifecycle.outcomes import Outcome
from penstock.lifecycle.states import ACTIVE, ENDED, FLOWING, ItemRole, ItemStatus, JobState
from penstock.operations import control, heartbeat, inspect
from penstock.operations.reprocess import FAILED_ONES, reprocess
from penstock.operations.submit import Request, submit_created, submit_many
from penstock.operations.sweep import rescue_from
from penstock.store.engine import Store
from penstock.store.tables import job_items, jobs, metadata
from penstock.testing.drive import LEASE, MOST, SUSPECT_DEATHS, Workbench
from penstock.testing.invariants import violations
from tests.properties.engine_kinds import engine_kinds

KINDS = [kind.name for kind in engine_kinds()]
WORKERS = ["w1", "w2", "w3"]
OWNERS = ["ann", "bob", None]
STRANGER = owner("eve")
OUTCOMES = ["done", "failed", "retried", "not_found", "skipped", "released"]
VERBS: dict[str, tuple[Callable[..., Job], transitions.Transition]] = {
    "pause": (control.pause, transitions.PAUSE),
    "resume": (control.resume, transitions.RESUME),
    "cancel": (control.cancel, transitions.CANCEL),
    "commit": (control.commit, transitions.COMMIT),
    "abandon": (control.abandon, transitions.ABANDON),
}

which = st.integers(0, 1000)


def outcome_for(name: str, claimed: Claimed) -> Outcome:
    """What a worker would hand in: a retry only while the item has one left."""
    if name == "retried" and claimed.attempt > claimed.max_retries:
        name = "failed"
    made = {
        "done": lambda: outcomes.done('{"n":1}'),
        "failed": lambda: outcomes.failed("no", "NO"),
        "retried": lambda: outcomes.retried("later", "LATER", 5.0),
        "not_found": lambda: outcomes.not_found("gone", "GONE"),
        "skipped": lambda: outcomes.skipped("same", "SAME"),
        "released": outcomes.released,
    }
    return made[name]()


class Lifecycle(RuleBasedStateMachine):
    """Users, three workers and the sweep, over one database."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        with store.engine.begin() as connection:
            for table in metadata.sorted_tables:
                connection.execute(table.delete())
        self.clock = HeldClock()
        store.clock = self.clock
        self.store = store
        self.bench = Workbench(store, self.clock, engine_kinds())
        self.jobs: list[UUID] = []
        self.named: dict[tuple[str | None, str], tuple[UUID, tuple[Any, ...]]] = {}
        self.held: dict[str, list[Claimed]] = {name: [] for name in WORKERS}
        self.lost: list[Claimed] = []
        self.live: dict[int, tuple[UUID, datetime]] = {}
        self.ready: dict[int, tuple[UUID, datetime]] = {}
        self.holders: dict[int, str] = {}
        self.tries: Counter[int] = Counter()
        self.finalized: Counter[tuple[UUID, int]] = Counter()
        self.sound = True

    @initialize(kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=3), count=st.integers(1, 4))
    def begin(self, kinds: list[str], count: int) -> None:
        """Some work to begin with, and a worker that has taken some of it."""
        for kind in kinds:
            items = None if kind == "planned" else [{"n": number} for number in range(count)]
            self.jobs.append(self.bench.submit(kind, items=items, owner="ann").job.id)
            self.claim(kind, "w1", 2)

    # Submitting

    @rule(
        kind=st.sampled_from(KINDS),
        who=st.sampled_from(OWNERS),
        key=st.sampled_from([None, None, "u1", "u2"]),
        name=st.sampled_from([None, None, None, "i1"]),
        fresh=st.sampled_from([None, None, 50.0]),
        hold=st.sampled_from([False, False, False, True]),
        count=st.sampled_from([None, None, 0, 1, 3]),
        priority=st.sampled_from([None, 5]),
    )
    def submit(
        self,
        kind: str,
        who: str | None,
        key: str | None,
        name: str | None,
        fresh: float | None,
        hold: bool,
        count: int | None,
        priority: int | None,
    ) -> None:
        before = self.bench.jobs()
        leader = next((one for one in before if self.leads(one, kind, key)), None)
        own = [one for one in before if self.does_the_work(one, kind, key) and one.user_id == who]
        own += [one for one in before if leader and one.leader_id == leader.id and one.user_id == who]
        mine = next((one for one in own if one.state in ACTIVE), None)
        request = {
            "owner": who, "caller": owner(who), "unique_key": key, "idempotency_key": name, "hold": hold,
            "fresh_for": fresh if key else None, "priority": priority,
        }  # fmt: skip
        items = None if count is None else [{"n": number} for number in range(count)]
        earlier = self.named.get((who, name)) if name else None
        said = (kind, key, count)
        if earlier is not None and earlier[1] != said:
            with pytest.raises(InvalidInput, match="was used for another request"):
                self.bench.submit(kind, {"p": 1}, items=items, **request)
            return
        submission = self.bench.submit(kind, {"p": 1}, items=items, **request)
        job, answer = submission.job, submission.answer
        note(f"{kind} job {job.id} is {answer} and {job.state}")
        is_new = job.id not in self.jobs
        if earlier is not None:
            assert (job.id, answer) == (earlier[0], Answer.EXISTING)
        elif answer is Answer.CACHED:
            assert job.result is not None
            assert fresh is not None
            assert job.state is JobState.SUCCEEDED
            made_at = self.column(job.id, jobs.c.result_at) or job.completed_at
            assert made_at is not None
            assert made_at >= self.clock.held() - timedelta(seconds=fresh), "it is older than asked for"
        elif mine is not None:
            assert (job.id, answer) == (mine.id, Answer.EXISTING)
        elif leader is None or hold:
            assert answer is Answer.NEW
        else:
            assert (answer, job.leader_id) == (Answer.FOLLOWING, leader.id)
        assert is_new == (answer in (Answer.NEW, Answer.FOLLOWING) or (answer is Answer.CACHED and is_new))
        assert job.user_id == who
        if is_new:
            self.jobs.append(job.id)
        if name:
            self.named[who, name] = (job.id, said)

    @rule(kind=st.sampled_from(KINDS), who=st.sampled_from(OWNERS), count=st.integers(1, 3), hold=st.booleans())
    def submit_many(self, kind: str, who: str | None, count: int, hold: bool) -> None:
        kept = self.bench.kinds.get(kind)
        request = Request(owner=who, caller=owner(who), hold=hold)
        ids = self.store.write(lambda one: submit_many(one, kept, [{"n": n} for n in range(count)], request, most=MOST))
        assert len(set(ids)) == count
        assert not set(ids) & set(self.jobs)
        self.jobs += ids

    @precondition(lambda self: self.jobs)
    @rule(index=which)
    def submit_created(self, index: int) -> None:
        job = self.one(index)
        caller = owner(job.user_id)
        submitted = self.store.write(lambda one: submit_created(one, self.bench.kinds.get(job.kind), job.id, caller))
        assert submitted == (job.state is JobState.CREATED)
        assert self.bench.job(job.id).state is not JobState.CREATED

    # Working

    @rule(kind=st.sampled_from(KINDS), by=st.sampled_from(WORKERS), size=st.integers(1, 6))
    def claim(self, kind: str, by: str, size: int) -> None:
        items = self.bench.claim(kind, by, size=size)
        note(f"{by} took {[(str(one.job_id)[-4:], one.role.value, one.position) for one in items]}")
        assert len({one.item_id for one in items}) == len(items)
        assert len(items) <= 2 * size
        for one in items:
            assert one.item_id not in self.live, f"{one} is in two live leases"
            _, ready = self.ready.pop(one.item_id, (one.job_id, self.clock.held()))
            assert ready <= self.clock.held(), f"{one} is in its backoff"
            assert one.attempt == self.tries[one.item_id] + 1, f"{one} has lost a try that it did not have"
            self.holders[one.item_id] = by
            job = self.bench.job(one.job_id)
            assert (job.state, job.run) == (JobState.RUNNING, one.run)
            if one.role is ItemRole.FINALIZE:
                assert job.progress.processed == job.progress.total
                assert not self.finalized[one.job_id, one.run]
            self.live[one.item_id] = (one.lease, self.clock.held() + timedelta(seconds=LEASE))
        self.held[by] += items
        if not items:
            due = select(jobs.c.id).where(jobs.c.kind == kind, jobs.c.turn_at <= self.clock.held())
            assert not self.store.read(lambda one: one.run(due).all()), "work was due, and the claim brought nothing"

    @rule(by=st.sampled_from(WORKERS), count=st.integers(0, 3))
    def plan(self, by: str, count: int) -> None:
        for claimed in [one for one in self.held[by] + self.lost[-3:] if one.role is ItemRole.PLAN]:
            before = self.bench.job(claimed.job_id).progress.total
            inputs = [{"n": number} for number in range(count)]
            if self.holds(claimed):
                assert self.bench.plan(claimed, inputs) == before + count
            else:
                with pytest.raises(WorkerCrashed, match="lost its lease"):
                    self.bench.plan(claimed, inputs)

    @rule(
        by=st.sampled_from(WORKERS),
        names=st.lists(st.sampled_from(OUTCOMES), min_size=1, max_size=6),
        late=st.lists(which, max_size=2),
        late_first=st.booleans(),
    )
    def record(self, by: str, names: Sequence[str], late: Sequence[int], late_first: bool) -> None:
        own = self.held[by][: len(names)]
        zombies = [self.lost[index % len(self.lost)] for index in late] if self.lost else []
        together = zombies + own if late_first else own + zombies
        pairs = [(one, outcome_for(names[index % len(names)], one)) for index, one in enumerate(together)]
        expected = {one.item_id for one, _ in pairs if self.holds(one)}
        landing = {(one.item_id, one.lease): (one, outcome) for one, outcome in reversed(pairs) if self.holds(one)}
        landed = self.bench.hand_in(pairs, by)
        assert landed == expected
        for one, outcome in landing.values():
            del self.live[one.item_id]
            self.tries[one.item_id] += outcome.counts
            if outcome.delay is not None:
                self.ready[one.item_id] = (one.job_id, self.clock.held() + timedelta(seconds=outcome.delay))
            if one.role is ItemRole.FINALIZE and outcome.status is ItemStatus.DONE:
                self.finalized[one.job_id, one.run] += 1
                assert self.finalized[one.job_id, one.run] == 1, "finalized twice in one run"
        self.held[by] = self.held[by][len(names) :]
        self.lost += own

    @rule(by=st.sampled_from(WORKERS))
    def extend(self, by: str) -> None:
        held = self.held[by]
        gone = self.store.write(lambda one: heartbeat.extend(one, held, LEASE))
        assert gone.lost == {one.item_id for one in held} - {one.item_id for one in held if self.holds(one)}
        for one in held:
            if self.holds(one):
                self.live[one.item_id] = (one.lease, self.clock.held() + timedelta(seconds=LEASE))

    @rule(by=st.sampled_from(WORKERS))
    def crash(self, by: str) -> None:
        self.lost += self.held[by]
        self.held[by] = []

    @precondition(lambda self: self.live)
    @rule(by=st.sampled_from(WORKERS))
    def die(self, by: str) -> None:
        """A worker dies, and its neighbours notice at once."""
        held = {item for item in self.live if self.holders[item] == by}
        assert rescue_from(self.store, self.bench.kinds, by, SUSPECT_DEATHS) == len(held)
        for item in held:
            del self.live[item]
        self.crash(by)

    @precondition(lambda self: self.live)
    @rule(by=st.sampled_from(WORKERS), name=st.sampled_from(OUTCOMES), late_too=st.booleans())
    def take_over(self, by: str, name: str, late_too: bool) -> None:
        """All leases run out, another worker takes the items, and those who lost them hand in what they made."""
        self.clock.advance(LEASE + 1)
        self.sweep()
        self.clock.advance(6)
        late = [one for held in self.held.values() for one in held]
        self.held = {worker: [] for worker in WORKERS}
        self.lost += late
        for kind in KINDS:
            self.claim(kind, by, 6)
        if late_too:
            assert self.bench.hand_in([(one, outcome_for(name, one)) for one in late], "w1") == frozenset()

    # Time and maintenance

    @rule(seconds=st.sampled_from([1.0, 6.0, 31.0, 61.0, 130.0]))
    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @rule()
    def sweep(self) -> None:
        expired = {item for item, (_, until) in self.live.items() if until < self.clock.held()}
        assert self.bench.sweep(stale_seconds=100).leases_expired == len(expired)
        for item in expired:
            del self.live[item]

    # People

    @precondition(lambda self: self.jobs)
    @rule(index=which, verb=st.sampled_from(sorted(VERBS)), who=st.sampled_from(["owner", "admin", "stranger"]))
    def control(self, index: int, verb: str, who: str) -> None:
        job = self.one(index)
        operation, transition = VERBS[verb]
        caller: Caller = {"owner": owner(job.user_id), "admin": admin("root"), "stranger": STRANGER}[who]
        everybody = self.bench.jobs()
        followed = any(one.leader_id == job.id and one.state in ACTIVE for one in everybody)
        shared = verb == "pause" and (job.leader_id is not None or followed)
        leader = next((one for one in everybody if self.leads(one, job.kind, job.unique_key)), None)
        shared = shared or (verb == "resume" and leader is not None and job.started_at is not None)

        def ask() -> Job:
            return self.store.write(lambda one: operation(one, job.id, caller, f"{verb} please"))

        if who == "stranger":
            with pytest.raises(JobNotFound):
                ask()
        elif job.state not in transition.sources or shared:
            with pytest.raises(TransitionRefused):
                ask()
            assert self.bench.job(job.id) == job
        else:
            after = ask()
            said = [line for line in self.history(job.id) if line.reason == f"{verb} please"][-1]
            assert (said.to_state, said.actor, said.actor_id) == (transition.target, caller.actor, caller.id)
            assert verb == "resume" or after.state is transition.target
            assert verb != "resume" or after.leader_id == (None if leader is None else leader.id)

    @precondition(lambda self: self.jobs)
    @rule(
        index=which,
        statuses=st.sampled_from([FAILED_ONES, (ItemStatus.DONE,), tuple(sorted(ENDED)), ()]),
        reset=st.booleans(),
        permanent=st.booleans(),
        some=st.booleans(),
    )
    def reprocess(self, index: int, statuses: Sequence[ItemStatus], reset: bool, permanent: bool, some: bool) -> None:
        job = self.one(index)
        kind = self.bench.kinds.get(job.kind)
        items = self.store.read(lambda one: inspect.items(one, job.id))
        ids = [one.id for one in items[::2]] if some and items else None

        def ask() -> Job:
            return self.store.write(
                lambda one: reprocess(
                    one, kind, job.id, owner(job.user_id),
                    statuses=statuses, item_ids=ids, reset_attempts=reset, permanent=permanent,
                )
            )  # fmt: skip

        taken = any(
            self.leads(one, job.kind, job.unique_key)
            or (self.does_the_work(one, job.kind, job.unique_key) and one.user_id == job.user_id)
            for one in self.bench.jobs()
        )
        if not kind.policy.reprocess or job.state not in transitions.REPROCESS.sources or job.leader_id or taken:
            with pytest.raises(TransitionRefused):
                ask()
            assert self.bench.job(job.id) == job
            return
        try:
            after = ask()
        except TransitionRefused as refused:
            if refused.code != "NOTHING_TO_REPROCESS":
                raise
            assert self.bench.job(job.id) == job
            return
        assert after.run == job.run + 1
        # The new run takes a finalize step of the run before it out of its worker's hands.
        self.ready = {item: ready for item, ready in self.ready.items() if ready[0] != job.id}
        attempts = select(job_items.c.id, job_items.c.attempts).where(
            job_items.c.job_id == job.id, job_items.c.status == ItemStatus.PENDING.value
        )
        for item, tried in self.store.read(lambda one: list(one.run(attempts))):
            self.tries[item] = tried
        for one in [*self.lost, *(one for held in self.held.values() for one in held)]:
            if one.job_id == job.id and one.role is ItemRole.FINALIZE and self.holds(one):
                del self.live[one.item_id]

    # What must hold

    @invariant()
    def rows_are_true(self) -> None:
        found = violations(self.store)
        self.sound = not found
        assert not found, "\n".join(found)

    def teardown(self) -> None:
        if not self.sound:
            return  # What is wrong has been said; the end would only hide it.
        left = self.bench.drive_to_end()
        assert not left, f"lost: these never end: {left}"
        self.rows_are_true()

    def holds(self, claimed: Claimed) -> bool:
        """Does its lease count now?"""
        return self.live.get(claimed.item_id, (None,))[0] == claimed.lease

    def does_the_work(self, job: Job, kind: str, key: str | None) -> bool:
        """Is it an active job of a key that does work, or will?"""
        same = key is not None and (job.kind, job.unique_key) == (kind, key)
        return same and job.leader_id is None and job.state in ACTIVE

    def leads(self, job: Job, kind: str, key: str | None) -> bool:
        """Is it the one job of a key that others follow?"""
        return self.does_the_work(job, kind, key) and job.state in FLOWING

    def one(self, index: int) -> Job:
        return self.bench.job(self.jobs[index % len(self.jobs)])

    def column(self, job_id: UUID, column: Any) -> Any:
        return self.store.read(lambda one: one.run(select(column).where(jobs.c.id == job_id)).scalar())

    def history(self, job_id: UUID) -> list[Any]:
        return self.store.read(lambda one: inspect.history(one, job_id))


def machine_on(store: Store) -> type[RuleBasedStateMachine]:
    """The machine over one store."""

    class OnStore(Lifecycle):
        def __init__(self) -> None:
            super().__init__(store)

    return OnStore


def test_any_order_in_memory(memory_store: Store) -> None:
    run_state_machine_as_test(machine_on(memory_store))


def test_any_order_on_postgresql(postgres_store: Store) -> None:
    # The same steps as in memory, and a server between: half as many take as long.
    fewer = settings(max_examples=settings().max_examples // 2)
    run_state_machine_as_test(machine_on(postgres_store), settings=fewer)


def test_the_system_sees_every_job(memory_store: Store) -> None:
    """The machine itself looks as the system: a job it could not see it would not miss."""
    machine = Lifecycle(memory_store)
    machine.bench.submit("single", owner="ann")
    assert [job.user_id for job in machine.bench.jobs()] == ["ann"]
    assert machine.bench.job(machine.bench.jobs()[0].id, SYSTEM).state is JobState.QUEUED
