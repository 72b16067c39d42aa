"""The engine and the model side by side: whatever happens to one happens to the other, and then they must agree.

The steps are what users, workers, the sweep, operators and clocks do, in any order; Hypothesis chooses. After each step
every row of the engine is compared with the model (:mod:`tests.model.comparing`) and the invariants are looked at
(:mod:`penstock.testing.invariants`). At the end of each run the faults stop, and everything has to come to its end.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from uuid_utils.compat import uuid7

from penstock.clock import HeldClock
from penstock.errors import (
    KindUnknown,
    NotFound,
    PenstockError,
    Permanent,
    Postponed,
    Retryable,
    Skip,
    TimeLimitExceeded,
)
from penstock.lifecycle import outcomes
from penstock.lifecycle.callers import SYSTEM, Caller, admin, owner, worker
from penstock.lifecycle.job import Claimed
from penstock.lifecycle.job import Job as EngineJob
from penstock.lifecycle.kind import Kinds
from penstock.lifecycle.outcomes import Outcome
from penstock.lifecycle.payloads import JSON
from penstock.lifecycle.planned import Planned
from penstock.lifecycle.states import FINISHED, ItemRole, ItemStatus, JobState
from penstock.operations import heartbeat
from penstock.operations.outbox import Message
from penstock.operations.sweep import rescue_from
from penstock.store.tables import metadata
from penstock.testing.drive import LEASE, MOST, SUSPECT_DEATHS, Workbench
from penstock.testing.invariants import violations
from penstock.transports.in_process import InProcess
from penstock.worker.conclude import raised, returned
from tests.model.comparing import differences
from tests.model.kinds import DEPLOYMENTS, KINDS, kind_of
from tests.model.model import ASKED_FOR, Ending, Handle, Model, Refused
from tests.on_store import OnStore

Answer = TypeVar("Answer")
WORKERS = ("w1", "w2")
OWNERS = ("ann", "bob", None)
STRANGER = owner("eve")
VERBS = ("pause", "resume", "cancel", "commit", "abandon")
STATUSES = ((ItemStatus.ERROR, ItemStatus.NOT_FOUND), (ItemStatus.DONE,), tuple(ItemStatus)[2:], ())
ANSWERS: dict[str, Callable[[], BaseException]] = {
    "retryable": lambda: Retryable("later"),
    "asks for time": lambda: Retryable("later", retry_after=ASKED_FOR),
    "unexpected": lambda: ValueError("what is this?"),
    "timeout": lambda: TimeLimitExceeded("too long"),
    "permanent": lambda: Permanent("never"),
    "not found": lambda: NotFound("gone"),
    "skip": lambda: Skip("the same as before"),
    "postponed": lambda: Postponed("not now", retry_after=ASKED_FOR),
    "step gone": lambda: KindUnknown("there is no such step any more"),
}
"""What a handler may raise; ``done`` and ``released`` are the two other ways a try can end."""

which = st.integers(0, 999)
answers = st.sampled_from(["done", "done", "done", "released", *sorted(set(ANSWERS) - {"step gone"})])
often_not = st.sampled_from([False, False, False, True])


class Machine(RuleBasedStateMachine):
    """Users, two workers, the sweep and the clock, over one database."""

    def __init__(self, app: OnStore) -> None:
        super().__init__()
        self.app, self.store = app, app.store
        with self.store.engine.begin() as connection:
            for table in metadata.sorted_tables:
                connection.execute(table.delete())
        self.clock = HeldClock()
        self.store.clock = self.clock
        self.bench = Workbench(self.store, self.clock, ())
        self.model = Model(self.clock.held(), {rules.name: rules for rules in KINDS})
        self.deploy_all()
        self.kinds: list[str] = []
        self.held: dict[str, list[Claimed]] = {name: [] for name in WORKERS}
        self.lost: list[Claimed] = []
        self.sends: list[tuple[JSON, bool]] = []
        self.broken: set[JSON] = set()
        self.relay_dies = False
        self.published = 0
        self.set_back = False
        app.transport = InProcess()
        app.subscribe("news")(self.receive)

    @initialize(kinds=st.lists(st.sampled_from([one.name for one in KINDS]), min_size=1, max_size=2, unique=True))
    def begin(self, kinds: list[str]) -> None:
        """Few kinds at a time, so that jobs meet each other."""
        self.kinds = kinds

    # Submitting

    @rule(
        kind=which,
        who=st.sampled_from(OWNERS),
        key=st.sampled_from([None, "u1", "u1", "u2"]),
        name=st.sampled_from([None, None, None, "i1", "i2"]),
        address=st.sampled_from([None, None, "10.0.0.1"]),
        fresh=st.sampled_from([None, None, 50.0, 200.0]),
        hold=often_not,
        count=st.sampled_from([None, None, 0, 1, 3]),
        normalized=st.booleans(),
        priority=st.sampled_from([None, None, 5]),
        taken=often_not,
        params=st.sampled_from([{"p": 1}, {"p": 1}, {"p": 2}]),
    )
    def submit(
        self,
        kind: int,
        who: str | None,
        key: str | None,
        name: str | None,
        address: str | None,
        fresh: float | None,
        hold: bool,
        count: int | None,
        normalized: bool,
        priority: int | None,
        taken: bool,
        params: JSON,
    ) -> None:
        items = None if count is None else [({"n": n}, {"sku": n} if normalized else None) for n in range(count)]
        given: dict[str, Any] = {
            "owner": who, "by": owner(who), "unique_key": key, "fresh_for": fresh if key else None,
            "idempotency_key": name, "ip_address": address, "priority": priority, "hold": hold,
        }  # fmt: skip
        job_id = next(iter(self.model.jobs), None) if taken else None
        submission, code = attempt(
            lambda: self.app.submit(
                self.kind(kind), params, items=None if items is None else [Planned(*one) for one in items],
                job_id=job_id, **given,
            )
        )  # fmt: skip
        answered = None if submission is None else submission.job
        new = answered.id if answered is not None and answered.id not in self.model.jobs else job_id or uuid7()
        expected, refused = attempt(
            lambda: self.model.submit(
                new, self.kind(kind), params, items=items,
                chosen=None if answered is None else answered.leader_id or answered.id, **given,
            )
        )  # fmt: skip
        assert code == refused
        if submission is not None and expected is not None and answered is not None:
            note(f"job {answered.id} of {who} is {submission.answer.value} and {answered.state.value}")
            assert (submission.answer, answered.id) == (expected[0], expected[1].id)
            assert answered == self.app.get(answered.id), "the answer is not what was recorded"

    @rule(kind=which, who=st.sampled_from(OWNERS), count=st.integers(1, 4), priority=st.sampled_from([None, -3]))
    def submit_many(self, kind: int, who: str | None, count: int, priority: int | None) -> None:
        params = [{"n": number} for number in range(count)]
        ids = self.app.submit_many(self.kind(kind), params, owner=who, by=owner(who), priority=priority)
        assert len(ids) == count
        for job_id, one in zip(ids, params, strict=True):
            self.model.submit(job_id, self.kind(kind), one, owner=who, by=owner(who), priority=priority)

    # People

    @precondition(lambda self: self.model.jobs)
    @rule(index=which, verb=st.sampled_from(VERBS), who=st.sampled_from(["owner", "owner", "admin", "system", "stranger"]))
    def control(self, index: int, verb: str, who: str) -> None:
        job_id, caller = self.pick(index), self.caller(index, who)
        reason = f"{verb} please"
        self.same(
            lambda: getattr(self.app, verb)(job_id, by=caller, reason=reason),
            lambda: getattr(self.model, verb)(job_id, caller, reason),
        )

    @precondition(lambda self: any(job.state is JobState.CREATED for job in self.model.jobs.values()))
    @rule(index=which, who=st.sampled_from(["owner", "owner", "stranger"]), held=st.sampled_from([True, True, False]))
    def release(self, index: int, who: str, held: bool) -> None:
        if held:
            index = self.index_of(index, JobState.CREATED)
        job_id, caller = self.pick(index), self.caller(index, who)
        self.same(lambda: self.app.release(job_id, by=caller), lambda: self.model.release(job_id, caller))

    @precondition(lambda self: any(job.state is JobState.PAUSED for job in self.model.jobs.values()))
    @rule(index=which)
    def resume_one(self, index: int) -> None:
        """Those that are paused, more often than a job at random is."""
        self.control(self.index_of(index, JobState.PAUSED), "resume", "owner")

    @precondition(lambda self: any(job.state in (JobState.FAILED, JobState.SUCCEEDED) for job in self.model.jobs.values()))
    @rule(
        index=which,
        statuses=st.sampled_from(STATUSES),
        reset=st.booleans(),
        permanent=st.booleans(),
        some=often_not,
        codes=st.sampled_from([None, None, None, ["RETRYABLE", None], ["NOT_FOUND"]]),
        who=st.sampled_from(["owner", "owner", "owner", "stranger"]),
    )
    def reprocess(
        self,
        index: int,
        statuses: Sequence[ItemStatus],
        reset: bool,
        permanent: bool,
        some: bool,
        codes: list[str | None] | None,
        who: str,
    ) -> None:
        index = self.index_of(index, JobState.FAILED, JobState.SUCCEEDED)
        job_id, caller = self.pick(index), self.caller(index, who)
        odd = [one for one in self.app.items(job_id) if one.position % 2] if some else []
        chosen: dict[str, Any] = {"statuses": statuses, "reset_attempts": reset, "permanent": permanent, "reason": "again"}
        self.same(
            lambda: self.app.reprocess(
                job_id, by=caller, item_ids=[one.id for one in odd] or None, error_codes=codes, **chosen
            ),
            lambda: self.model.reprocess(
                job_id, caller, positions={one.position for one in odd} or None,
                codes=None if codes is None else set(codes), **chosen,
            ),
        )  # fmt: skip

    @rule(who=st.sampled_from([owner("ann"), owner("bob"), owner(None), STRANGER, admin("root"), SYSTEM]))
    def look(self, who: Caller) -> None:
        """Everybody sees what is theirs, and nothing else is there."""
        mine = {job.id for job in self.model.visible(who)}
        assert {job.id for job in self.app.jobs(by=who, limit=1000)} == mine
        for job_id in self.model.jobs:
            found, code = attempt(lambda job_id=job_id: self.app.get(job_id, by=who))
            assert (found is not None, code) == (job_id in mine, None if job_id in mine else "JOB_NOT_FOUND")

    # Working

    @rule(kind=which, by=st.sampled_from(WORKERS), size=st.integers(1, 6))
    def claim(self, kind: int, by: str, size: int) -> None:
        name = self.kind(kind)
        taken = self.bench.claim(name, by, size=size)
        note(f"{by} took {[(str(one.job_id)[-4:], one.role.value, one.position) for one in taken]}")
        priorities = {job.priority for job in self.model.jobs.values() if job.kind == name}
        # A claim on a server begins where the line began when it looked last, at the priorities it had heard of.
        in_order = self.store.ways.in_our_process or (len(priorities) == 1 and not self.set_back)
        handles = [handle(one) for one in taken]
        items = self.model.claim(name, worker(by), size, handles, LEASE, in_order=in_order)
        for one, item in zip(taken, items, strict=True):
            job = self.model.jobs[one.job_id]
            given = job.params if job.single_step else item.input
            assert (one.role, one.attempt, one.input, one.normalized) == (item.role, item.attempts, given, item.normalized)
            assert (one.user_id, one.run, one.params, one.max_retries) == (
                job.user_id, job.run, job.params, job.max_retries,
            )  # fmt: skip
        self.held[by] += taken

    @precondition(lambda self: self.in_hand(ItemRole.PLAN))
    @rule(index=which, count=st.integers(0, 3))
    def plan(self, index: int, count: int) -> None:
        one = some(self.in_hand(ItemRole.PLAN), index)
        inputs = [({"n": n}, {"sku": n} if n % 2 else None) for n in range(count)]
        added, code = attempt(lambda: self.bench.plan(one, [Planned(*each) for each in inputs]))
        expected, refused = attempt(lambda: self.model.plan(handle(one), inputs))
        assert (added, code) == (expected, refused)

    @precondition(lambda self: any(self.held.values()) or self.lost)
    @rule(
        by=st.sampled_from(WORKERS),
        whats=st.lists(answers, min_size=1, max_size=6),
        late=st.lists(which, max_size=2),
        late_first=st.booleans(),
        result=st.sampled_from([None, {"r": 1}, {"r": 2}, {"r": 3}]),
    )
    def end(self, by: str, whats: list[str], late: list[int], late_first: bool, result: JSON) -> None:
        """Tries end, each in its way; some are handed in by workers that lost their lease, or have done so before."""
        own = self.held[by][: len(whats)]
        zombies = [some(self.lost, index) for index in late] if self.lost else []
        together = zombies + own if late_first else own + zombies
        self.hand_in([(one, whats[n % len(whats)]) for n, one in enumerate(together)], by, result)
        self.held[by] = self.held[by][len(whats) :]
        self.lost += own

    def hand_in(self, pairs: list[tuple[Claimed, str]], by: str, result: JSON) -> None:
        pairs = [(one, self.possible(what, one)) for one, what in pairs]
        landed = self.bench.hand_in([(one, self.outcome(what, one, result)) for one, what in pairs], by)
        expected = self.model.record([(handle(one), self.ending(what, one, result)) for one, what in pairs], worker(by))
        assert landed == {one.item_id for one, _ in pairs if handle(one) in expected}

    @rule(by=st.sampled_from(WORKERS))
    def beat(self, by: str) -> None:
        held = self.held[by]
        gone = self.store.write(lambda one: heartbeat.extend(one, held, LEASE))
        lost = self.model.heartbeat([handle(one) for one in held], LEASE)
        assert gone == {one.item_id for one in held if handle(one) in lost}
        jobs = {one.job_id for one in held}
        assert self.store.read(lambda one: heartbeat.stopped(one, jobs)) == self.model.stopped(jobs)

    @precondition(lambda self: any(self.held.values()))
    @rule(by=st.sampled_from(WORKERS), index=which, message=st.sampled_from(["half", "nearly"]))
    def say(self, by: str, index: int, message: str) -> None:
        if self.held[by]:
            job_id = some(self.held[by], index).job_id
            self.store.write(lambda one: heartbeat.say(one, job_id, message))
            self.model.say(job_id, message)

    # Faults

    @precondition(lambda self: any(self.held.values()))
    @rule(by=st.sampled_from(WORKERS))
    def vanish(self, by: str) -> None:
        """A worker is gone, or hangs; nobody has noticed."""
        self.lost += self.held[by]
        self.held[by] = []

    @precondition(lambda self: any(self.held.values()))
    @rule(by=st.sampled_from(WORKERS))
    def die(self, by: str) -> None:
        """A worker dies, and its neighbours notice at once."""
        assert rescue_from(self.store, self.bench.kinds, by, SUSPECT_DEATHS) == self.model.die(by)
        self.vanish(by)

    @rule(kind=which, by=st.sampled_from(WORKERS), times=st.integers(2, 8), size=st.integers(1, 3))
    def die_often(self, kind: int, by: str, times: int, size: int) -> None:
        """One worker after the other dies of what it takes."""
        for _ in range(times):
            self.claim(kind, by, size)
            if len(self.held[by]) == 1:
                alone = self.held[by][0]
                self.store.write(lambda one, alone=alone: heartbeat.note_alone(one, alone))
                self.model.alone(handle(alone))
            if self.held[by]:
                self.die(by)
            self.advance(100.0)

    @precondition(lambda self: any(self.held.values()))
    @rule(by=st.sampled_from(WORKERS), what=answers)
    def take_over(self, by: str, what: str) -> None:
        """All leases run out, another worker takes the items, and those who lost them hand in what they made."""
        late = [one for held in self.held.values() for one in held]
        self.lost += late
        self.held = {name: [] for name in WORKERS}
        self.advance(LEASE + 1)
        self.sweep([], dies=False)
        for kind in range(len(self.kinds)):
            self.claim(kind, by, 6)
        self.hand_in([(one, what) for one in late], by, {"late": 1})

    # Time, maintenance and operators

    @rule(seconds=st.sampled_from([1.0, 6.0, 21.0, 31.0, 61.0, 100.0, 250.0]))
    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.model.now = self.clock.held()

    @rule(seconds=st.sampled_from([20.0, 900.0]))
    def turn_back(self, seconds: float) -> None:
        self.set_back = True
        self.advance(-seconds)

    @rule(broken=st.lists(which, max_size=2), dies=often_not)
    def sweep(self, broken: list[int], dies: bool) -> None:
        """A maintenance pass, with the relay at its end; some messages cannot be sent, or the relay dies."""
        self.sends.clear()
        self.broken = {index % max(1, self.published) for index in broken}
        self.relay_dies = dies
        try:
            swept = self.app.sweep()
        except KeyboardInterrupt:
            swept = None
        expected = self.model.sweep()
        if swept is not None:
            assert {name: getattr(swept, name) for name in expected} == expected
        self.model.relay(self.sends, died=swept is None)

    @rule(key=st.sampled_from([None, "k1", "k2"]), kept=st.sampled_from([True, True, True, False]))
    def publish(self, key: str | None, kept: bool) -> None:
        """A message is part of its transaction: one that is undone has said nothing."""
        payload = self.published
        if not kept:
            _, code = attempt(lambda: self.app.in_transaction(lambda one: self.say_and_fail(one, payload, key)))
            assert code == "PENSTOCK_ERROR"
            return
        self.app.publish("news", payload, key=key)
        self.model.publish("news", payload, key)
        self.published += 1

    def say_and_fail(self, connection: Any, payload: JSON, key: str | None) -> None:
        self.app.publish("news", payload, key=key, connection=connection)
        raise PenstockError("this is undone", code="PENSTOCK_ERROR")

    def receive(self, message: Message) -> None:
        """What the relay hands over."""
        if self.relay_dies:
            self.sends.append((message.payload, True))
            raise KeyboardInterrupt
        fails = message.payload in self.broken
        self.sends.append((message.payload, not fails))
        if fails:
            raise ConnectionError("the broker is down")

    @rule(index=which)
    def deploy(self, index: int) -> None:
        """A new version of one of the kinds."""
        versions = [rules for rules in (*DEPLOYMENTS, *KINDS) if rules.name in self.kinds]
        self.model.deploy(some(versions, index))
        self.deploy_all()

    def deploy_all(self) -> None:
        kinds = Kinds()
        for rules in self.model.rules.values():
            kinds.add(kind_of(rules))
        self.app.kinds = self.bench.kinds = kinds

    # What must hold

    @invariant()
    def the_two_agree(self) -> None:
        wrong = differences(self.store, self.model) + violations(self.store, clock_set_back=self.set_back)
        assert not wrong, "\n".join(wrong)

    def teardown(self) -> None:
        """Faults stop: everything ends, or somebody who is named holds it back; and when they let go, that ends too."""
        if sys.exc_info()[0] is not None:
            return  # something is wrong, and the end would only hide it
        self.drain()
        for job in self.app.jobs(by=SYSTEM, limit=1000):
            if job.state not in FINISHED:
                assert job.state in (JobState.PAUSED, JobState.CREATED), f"lost: {job}"
                assert job.leader_id is None, f"nobody holds it back, and it waits: {job}"
                assert self.app.history(job.id)[-1].actor is not None
        while waiting := [job for job in self.model.jobs.values() if job.state in (JobState.PAUSED, JobState.CREATED)]:
            for job in waiting:  # one that has begun has to wait while another leads its key
                if job.state is JobState.PAUSED:
                    self.control(list(self.model.jobs).index(job.id), "resume", "system")
                else:
                    self.same(partial(self.app.release, job.id), partial(self.model.release, job.id, SYSTEM))
            self.drain()
        left = [job for job in self.app.jobs(by=SYSTEM, limit=1000) if job.state not in FINISHED]
        assert not left, f"lost: these never end: {left}"
        assert all(message.sent for message in self.model.messages), "messages are left"
        self.the_two_agree()

    def drain(self) -> None:
        """A worker that does everything well, until nothing is left to do."""
        self.lost += [one for held in self.held.values() for one in held]
        self.held = {name: [] for name in WORKERS}
        for _ in range(200):
            self.sweep([], dies=False)
            for index in range(len(self.kinds)):
                self.claim(index, "w1", 50)
            for one in self.held["w1"]:
                if one.role is ItemRole.PLAN and not self.model.jobs[one.job_id].counts.total:
                    self.bench.plan(one, [{"n": 1}])
                    self.model.plan(handle(one), [({"n": 1}, None)])
            self.hand_in([(one, "done") for one in self.held["w1"]], "w1", {"ok": True})
            busy, self.held["w1"] = bool(self.held["w1"]), []
            flowing = any(job.state in (JobState.QUEUED, JobState.RUNNING, JobState.RETRYING) for job in self.model.jobs.values())
            if not busy and not flowing and all(message.sent for message in self.model.messages):
                return
            if not busy:
                self.advance(LEASE + 1)
        raise AssertionError(f"it does not end: {[job for job in self.model.jobs.values() if job.state not in FINISHED]}")

    # Helpers

    def same(self, ask: Callable[[], EngineJob], expect: Callable[[], Any]) -> None:
        """Both do it, or both refuse it for the same reason."""
        answer, code = attempt(ask)
        _, refused = attempt(expect)
        assert code == refused
        if answer is not None:
            assert answer == self.app.get(answer.id), "the answer is not what was recorded"

    def possible(self, what: str, one: Claimed) -> str:
        """A kind that has lost a step cannot run it."""
        rules = self.model.rules[one.kind]
        gone = (one.role is ItemRole.PLAN and not rules.plans) or (
            one.role is ItemRole.FINALIZE and not rules.finalizes
        )
        return "step gone" if gone and what != "released" else what

    def outcome(self, what: str, one: Claimed, result: JSON) -> Outcome:
        """What a worker makes of a handler's answer."""
        kind = self.app.kinds.get(one.kind)
        if what == "released":
            return outcomes.released()
        if what == "done":
            return returned(kind, one, None if one.role is ItemRole.PLAN else result, MOST)
        return raised(kind, one, ANSWERS[what]())

    def ending(self, what: str, one: Claimed, result: JSON) -> Ending:
        """The same in the model."""
        return self.model.ending(what, handle(one), one.attempt, None if one.role is ItemRole.PLAN else result)

    def kind(self, index: int) -> str:
        return self.kinds[index % len(self.kinds)]

    def pick(self, index: int) -> UUID:
        return some(list(self.model.jobs), index)

    def index_of(self, index: int, *states: JobState) -> int:
        """One of the jobs in these states."""
        return some([n for n, job in enumerate(self.model.jobs.values()) if job.state in states], index)

    def caller(self, index: int, who: str) -> Caller:
        job = self.model.jobs[self.pick(index)]
        return {"owner": owner(job.user_id), "admin": admin("root"), "system": SYSTEM, "stranger": STRANGER}[who]

    def in_hand(self, role: ItemRole) -> list[Claimed]:
        every = [one for held in self.held.values() for one in held] + self.lost[-3:]
        return [one for one in every if one.role is role]


def handle(one: Claimed) -> Handle:
    """What the model calls an item in hand."""
    return Handle(one.job_id, one.position, one.lease)


def some(sequence: Sequence[Answer], index: int) -> Answer:
    """One of them."""
    return sequence[index % len(sequence)]


def attempt(ask: Callable[[], Answer]) -> tuple[Answer | None, str | None]:
    """What it answers, or the code with which it refuses."""
    try:
        return ask(), None
    except (PenstockError, Refused) as error:
        return None, error.code
