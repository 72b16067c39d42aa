"""The engine and the model side by side: whatever happens to one happens to the other, and then they must agree.

The steps are what users, workers, the sweep, operators and clocks do. Each does the same to both and compares what they
answer; a step for which there is nothing to do does nothing. :meth:`SideBySide.agree` compares every row, and
:meth:`SideBySide.come_to_an_end` stops the faults and sees that everything ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from hypothesis import currently_in_test_context, note
from uuid_utils.compat import uuid7

from penstock.clock import ManualClock
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
from penstock.lifecycle.job import ClaimedItem
from penstock.lifecycle.job import Job as EngineJob
from penstock.lifecycle.kind import Kinds
from penstock.lifecycle.outcomes import Outcome
from penstock.lifecycle.payloads import JSON
from penstock.lifecycle.planned_item import Planned
from penstock.lifecycle.states import ACTIVE, FINISHED, ItemRole, ItemStatus, JobState
from penstock.lifecycle.transport import Message
from penstock.operations import heartbeat
from penstock.operations.delayed_jobs import release_due
from penstock.operations.maintenance import rescue_from
from penstock.store.tables import metadata
from penstock.testing.drive import LEASE, MAX_BYTES, SUSPECT_DEATHS, Workbench
from penstock.testing.invariants import pictures, violations, violations_in
from penstock.worker.call_outcome import outcome_of_error, outcome_of_value
from tests.model.comparing import differences
from tests.model.kinds import DEPLOYMENTS, KINDS, kind_of
from tests.model.model import ASKED_FOR, Ending, Handle, Model, Refused
from tests.on_store import OnStore

Answer = TypeVar("Answer")
WORKERS = ("w1", "w2")
OWNERS = ("ann", "bob", "cid", None)
STRANGER = owner("eve")
VERBS = ("pause", "resume", "cancel", "commit", "abandon", "release")
POSSIBLE = {
    JobState.CREATED: ("release", "release", "cancel"),
    JobState.QUEUED: ("cancel", "pause"),
    JobState.RUNNING: ("cancel", "pause"),
    JobState.RETRYING: ("cancel", "pause"),
    JobState.PAUSED: ("resume", "resume", "cancel"),
    JobState.SUCCEEDED: ("commit", "abandon"),
}
OVER = (JobState.SUCCEEDED, JobState.FAILED)
Step = tuple[str, dict[str, Any]]
"""The name of a method of :class:`SideBySide`, and with what it is called."""
Items = list[tuple[JSON, JSON]] | None
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


class SideBySide:
    """Users, two workers, the sweep and the clock, over one database and beside it the model."""

    def __init__(self, app: OnStore, kinds: Sequence[str]) -> None:
        self.app, self.store = app, app.store
        with self.store.engine.begin() as connection:
            for table in metadata.sorted_tables:
                connection.execute(table.delete())
        self.clock = ManualClock()
        self.store.clock = self.clock
        self.bench = Workbench(self.store, self.clock, ())
        self.kinds = kinds
        self.model = Model(self.clock.held(), {rules.name: rules for rules in KINDS if rules.name in kinds})
        self.asked: list[tuple[str, JSON, Items, dict[str, Any]]] = []
        self.held: dict[str, list[ClaimedItem]] = {name: [] for name in WORKERS}
        self.lost: list[ClaimedItem] = []
        self.sends: list[tuple[JSON, bool]] = []
        self.broken: set[JSON] = set()
        self.relay_dies = False
        self.published = 0
        self.set_back = 0
        app.forget_subscribers()
        app.messages.subscribe("news")(self.receive)
        self.deploy_all()

    # Submitting

    def submit(
        self,
        kind: int,
        who: str | None,
        keyed: bool,
        name: str | None,
        address: str | None,
        hold: bool,
        count: int | None,
        priority: int | None,
        params: JSON,
    ) -> None:
        items = None if count is None else [({"n": n}, {"sku": n} if n % 2 == 0 else None) for n in range(count)]
        key = f"u{len(self.asked)}" if keyed else None
        options = {"owner": who, "by": owner(who), "unique_key": key, "idempotency_key": name, "ip_address": address}
        self.ask(self.kind(kind), params, items, options | {"priority": priority, "hold": hold})

    def submit_later(self, kind: int, who: str | None, keyed: bool, delay: float, count: int | None) -> None:
        """Somebody wants something done later."""
        items = None if count is None else [({"n": n}, None) for n in range(count)]
        key = f"u{len(self.asked)}" if keyed else None
        options = {"owner": who, "by": owner(who), "unique_key": key, "delay": delay}
        self.ask(self.kind(kind), {"p": 1}, items, options)

    def release_due(self) -> None:
        """A worker looks whose time has come."""
        assert release_due(self.app.store, self.app.kinds) == self.model.release_due()

    def ask_for_the_same(self, index: int, who: int, fresh: float | None, name: str | None, hold: bool) -> None:
        """Somebody asks for work that somebody has asked for."""
        if not self.asked:
            return
        kind, params, items, earlier_options = some(self.asked, -1 - index)
        options = {name: value for name, value in earlier_options.items() if name != "delay"}
        key = options["unique_key"]
        busy = {job.user_id for job in self.model.jobs.values() if job.unique_key == key and job.state in ACTIVE}
        # Most often somebody who does not wait for it yet.
        someone = some([*OWNERS, *[one for one in OWNERS if one not in busy] * 3], who)
        options = options | {"owner": someone, "by": owner(someone), "idempotency_key": name, "hold": hold}
        options |= {"fresh_for": fresh if key else None}
        self.ask(kind, params, items, options)

    def send_again(self, index: int, params: JSON) -> None:
        """A client that got no answer sends its request again, or another one under the same key."""
        if not self.asked:
            return
        kind, before, items, options = some(self.asked, -1 - index)
        self.ask(kind, params or before, items, options)

    def submit_as(self, index: int, who: str | None) -> None:
        """Somebody names their job themselves; others have had the same idea."""
        job_id = some([uuid7(), *self.model.jobs], index)
        self.ask(self.kind(index), None, None, {"owner": who, "by": owner(who), "unique_key": None}, job_id)

    def ask(self, kind: str, params: JSON, items: Items, options: dict[str, Any], job_id: UUID | None = None) -> None:
        self.asked.append((kind, params, items, options))
        given = None if items is None else [Planned(*one) for one in items]
        said = {name: value for name, value in options.items() if name != "by"}
        app = self.app.acting_as(options.get("by", SYSTEM))
        submission, code = attempt(lambda: app.submit(kind, params, items=given, job_id=job_id, **said))
        answered = None if submission is None else submission.job
        new = answered.id if answered is not None and answered.id not in self.model.jobs else job_id or uuid7()
        chosen = None if answered is None else answered.leader_id or answered.id
        expected, refused = attempt(lambda: self.model.submit(new, kind, params, items=items, chosen=chosen, **options))
        assert code == refused
        if submission is not None and expected is not None and answered is not None:
            tell(f"job {answered.id} of {answered.user_id} is {submission.answer.value} and {answered.state.value}")
            assert (submission.answer, answered.id) == (expected[0], expected[1].id)
            assert answered == self.app.jobs.get(answered.id), "the answer is not what was recorded"

    def submit_many(self, kind: int, who: str | None, count: int, priority: int | None) -> None:
        params = [{"n": number} for number in range(count)]
        ids = self.app.acting_as(owner(who)).submit_many(self.kind(kind), params, priority=priority)
        assert len(ids) == count
        for job_id, one in zip(ids, params, strict=True):
            self.model.submit(job_id, self.kind(kind), one, owner=who, by=owner(who), priority=priority)

    # People

    def decide(self, index: int, verb: int, who: str) -> None:
        """Somebody does to a job what can be done to it."""
        possible = [n for n, job in enumerate(self.model.jobs.values()) if job.state in POSSIBLE]
        # Most often to one that others wait for.
        shared = [n for n, job in enumerate(self.model.jobs.values()) if self.model.followers(job)]
        if possible:
            job = some(possible + shared * len(possible), -1 - index)
            self.control(job, some(POSSIBLE[self.model.jobs[self.pick(job)].state], verb), who)

    def control(self, index: int, verb: str, who: str) -> None:
        """Somebody does anything to any job."""
        if not self.model.jobs:
            return
        job_id, caller = self.pick(index), self.caller(index, who)
        reason = None if verb == "release" else f"{verb} please"
        said = {} if verb == "release" else {"reason": reason}
        self.same(
            lambda: getattr(self.app.acting_as(caller).jobs, verb)(job_id, **said),
            lambda: getattr(self.model, verb)(job_id, caller, **said),
        )

    def reprocess(
        self,
        index: int,
        statuses: Sequence[ItemStatus],
        reset: bool,
        permanent: bool,
        odd_ones: bool,
        codes: list[str | None] | None,
        who: str,
    ) -> None:
        """Some items of a finished job run again; whichever was finished last comes first."""
        over = [
            n for n, job in enumerate(self.model.jobs.values()) if job.state in (JobState.FAILED, JobState.SUCCEEDED)
        ]
        if not over:
            return
        index = some(over, -1 - index)
        job_id, caller = self.pick(index), self.caller(index, who)
        odd = [one for one in self.app.items.list(job_id) if one.position % 2] if odd_ones else []
        chosen: dict[str, Any] = {
            "statuses": statuses,
            "reset_attempts": reset,
            "permanent": permanent,
            "reason": "again",
        }
        self.same(
            lambda: self.app.acting_as(caller).jobs.reprocess(
                job_id, item_ids=[one.id for one in odd] or None, error_codes=codes, **chosen
            ),
            lambda: self.model.reprocess(
                job_id, caller, positions={one.position for one in odd} or None,
                codes=None if codes is None else set(codes), **chosen,
            ),
        )  # fmt: skip

    def look(self, who: str | None) -> None:
        """Everybody sees what is theirs, and nothing else is there."""
        caller = {"an admin": admin("root"), "the system": SYSTEM}.get(who or "", owner(who))
        mine = {job.id for job in self.model.visible(caller)}
        assert {job.id for job in self.app.acting_as(caller).jobs.list(limit=1000)} == mine
        for job_id, job in self.model.pruned.items():
            code = attempt(partial(self.app.acting_as(caller).jobs.get, job_id))[1]
            assert code == attempt(partial(self.model.seen, job.id, caller))[1]
        for job_id in self.model.jobs:
            found, code = attempt(partial(self.app.acting_as(caller).jobs.get, job_id))
            assert (found is not None, code) == (job_id in mine, None if job_id in mine else "JOB_NOT_FOUND")

    # Working

    def claim(self, kind: int, by: str, size: int) -> None:
        name = self.kind(kind)
        taken = self.bench.claim(name, by, size=size)
        tell(f"{by} took {[(str(one.job_id)[-4:], one.role.value, one.position) for one in taken]}")
        priorities = {job.priority for job in self.model.jobs.values() if job.kind == name}
        # A claim on a server begins where the line began when it looked last, at the priorities it had heard of.
        in_order = self.store.dialect.is_embedded or (len(priorities) == 1 and not self.set_back)
        handles = [handle(one) for one in taken]
        items = self.model.claim(name, worker(by), size, handles, LEASE, in_order=in_order)
        for one, item in zip(taken, items, strict=True):
            job = self.model.jobs[one.job_id]
            given = job.params if job.single_step else item.input
            assert (one.role, one.attempt, one.input, one.normalized) == (
                item.role,
                item.attempts,
                given,
                item.normalized,
            )
            assert (one.user_id, one.run, one.params, one.max_retries) == (
                job.user_id, job.run, job.params, job.max_retries,
            )  # fmt: skip
        self.held[by] += taken

    def plan(self, index: int, count: int) -> None:
        """A plan yields some more, whether it still has its lease or not."""
        plans = self.in_hand(ItemRole.PLAN)
        if not plans:
            return
        one = some(plans, index)
        inputs = [({"n": n}, {"sku": n} if n % 2 else None) for n in range(count)]
        added, code = attempt(lambda: self.bench.plan(one, [Planned(*each) for each in inputs]))
        expected, refused = attempt(lambda: self.model.plan(handle(one), inputs))
        assert (added, code) == (expected, refused)

    def end(self, by: str, whats: list[str], late: list[int], late_first: bool, result: JSON) -> None:
        """Tries end, each in its way; some are handed in by workers that lost their lease, or have done so before."""
        own = self.held[by][: len(whats)]
        zombies = [some(self.lost, index) for index in late] if self.lost else []
        together = zombies + own if late_first else own + zombies
        self.hand_in([(one, whats[n % len(whats)]) for n, one in enumerate(together)], by, result)
        self.held[by] = self.held[by][len(whats) :]
        self.lost += own

    def work(self, kind: int, by: str, what: str, result: JSON) -> None:
        """A worker takes what there is, and all it has in hand ends in the same way."""
        self.claim(kind, by, 6)
        self.hand_in([(one, what) for one in self.held[by]], by, result)
        self.vanish(by)

    def hand_in(self, pairs: list[tuple[ClaimedItem, str]], by: str, result: JSON) -> None:
        pairs = [(one, self.possible(what, one)) for one, what in pairs]
        landed = self.bench.hand_in([(one, self.outcome(what, one, result)) for one, what in pairs], by)
        expected = self.model.record([(handle(one), self.ending(what, one, result)) for one, what in pairs], worker(by))
        assert landed == {one.item_id for one, _ in pairs if handle(one) in expected}

    def beat(self, by: str) -> None:
        held = self.held[by]
        gone = self.store.write(lambda one: heartbeat.extend(one, held, LEASE))
        lost = self.model.heartbeat([handle(one) for one in held], LEASE)
        assert gone.lost == {one.item_id for one in held if handle(one) in lost}
        jobs = {one.job_id for one in held}
        assert self.store.read(lambda one: heartbeat.find_stopped_jobs(one, jobs)) == self.model.stopped(jobs)

    def say(self, by: str, index: int, message: str) -> None:
        if self.held[by]:
            job_id = some(self.held[by], index).job_id
            self.store.write(lambda one: heartbeat.say(one, job_id, message))
            self.model.say(job_id, message)

    # Faults

    def vanish(self, by: str) -> None:
        """A worker is gone, or hangs; nobody has noticed."""
        self.lost += self.held[by]
        self.held[by] = []

    def die(self, by: str) -> None:
        """A worker dies, and its neighbours notice at once."""
        assert rescue_from(self.store, self.bench.kinds, by, SUSPECT_DEATHS) == self.model.die(by)
        self.vanish(by)

    def die_often(self, kind: int, by: str, times: int, size: int) -> None:
        """One worker after the other dies of what it takes."""
        for _ in range(times):
            self.claim(kind, by, size)
            if len(self.held[by]) == 1:
                alone = self.held[by][0]
                self.store.write(partial(heartbeat.note_alone, item=alone))
                self.model.alone(handle(alone))
            if self.held[by]:
                self.die(by)
            self.advance(100.0)

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

    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.model.now = self.clock.held()

    def later(self, seconds: float) -> None:
        """Time passes, and somebody looks what is to be done."""
        self.advance(seconds)
        self.sweep([], dies=False)

    def turn_back(self, seconds: float) -> None:
        """Somebody sets the clock of the database, but not again and again."""
        if self.set_back < 2:
            self.set_back += 1
            self.advance(-seconds)

    def sweep(self, broken: list[int], dies: bool) -> None:
        """A maintenance pass, with the relay at its end; some messages cannot be sent, or the relay dies."""
        self.sends.clear()
        self.broken = {index % max(1, self.published) for index in broken}
        self.relay_dies = dies
        try:
            swept = self.app.system.sweep()
        except KeyboardInterrupt:
            swept = None
        expected = self.model.sweep()
        if swept is not None:
            assert {name: getattr(swept, name) for name in expected} == expected
        self.model.relay(self.sends, died=swept is None)
        assert self.app.system.count_worker_deaths() == len(self.model.dead_workers)

    def prune(self) -> None:
        """What has been kept for long enough goes; a job whose last copy goes with one pass goes with the next."""
        while self.app.system.prune():
            pass
        self.model.prune()

    def publish(self, key: str | None, kept: bool) -> None:
        """A message is part of its transaction: one that is undone has said nothing."""
        payload = self.published
        if not kept:
            _, code = attempt(lambda: self.app.in_transaction(lambda one: self.say_and_fail(one, payload, key)))
            assert code == "PENSTOCK_ERROR"
            return
        self.app.messages.publish("news", payload, key=key)
        self.model.publish("news", payload, key)
        self.published += 1

    def say_and_fail(self, connection: Any, payload: JSON, key: str | None) -> None:
        self.app.messages.publish("news", payload, key=key, connection=connection)
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

    def deploy(self, index: int) -> None:
        """A new version of one of the kinds."""
        versions = [rules for rules in (*DEPLOYMENTS, *KINDS) if rules.name in self.kinds]
        self.model.deploy(some(versions, index))
        self.deploy_all()

    def deploy_all(self) -> None:
        kinds = Kinds()
        for rules in self.model.rules.values():
            kinds.add(kind_of(rules))
        self.bench.kinds = kinds
        self.app.deploy(kinds)

    # What must hold

    def agree(self) -> None:
        """Every row says what the model says, and is true by itself."""
        found = self.store.read(pictures)
        wrong = differences(found, self.model) + violations_in(found, clock_set_back=self.set_back > 0)
        assert not wrong, "\n".join(wrong)

    def come_to_an_end(self) -> None:
        """Faults stop: everything ends, or somebody who is named holds it back; and when they let go, that ends too."""
        self.drain()
        for left in self.app.jobs.list(states=ACTIVE, limit=1000):
            assert left.state in (JobState.PAUSED, JobState.CREATED), f"lost: {left}"
            assert left.leader_id is None, f"it waits for somebody else's decision: {left}"
            decided = self.app.jobs.history(left.id)[-1]
            assert decided.to_state is left.state, f"nobody is named who holds it back: {left}"
        while waiting := [job for job in self.model.jobs.values() if job.state in (JobState.PAUSED, JobState.CREATED)]:
            for job in waiting:  # one that has begun has to wait while another leads its key
                verb = "resume" if job.state is JobState.PAUSED else "release"
                self.control(list(self.model.jobs).index(job.id), verb, "system")
            self.drain()
        lost = self.app.jobs.list(states=ACTIVE, limit=1000)
        assert not lost, f"lost: these never end: {lost}"
        assert all(message.sent for message in self.model.messages), "messages are left"
        self.agree()
        assert not violations(self.store, clock_set_back=self.set_back > 0)

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
            flowing = any(
                job.state in (JobState.QUEUED, JobState.RUNNING, JobState.RETRYING) for job in self.model.jobs.values()
            )
            if not busy and not flowing and all(message.sent for message in self.model.messages):
                return
            if not busy:
                self.advance(LEASE + 1)
        raise AssertionError(
            f"it does not end: {[job for job in self.model.jobs.values() if job.state not in FINISHED]}"
        )

    # Helpers

    def same(self, ask: Callable[[], EngineJob], expect: Callable[[], Any]) -> None:
        """Both do it, or both refuse it for the same reason."""
        answer, code = attempt(ask)
        _, refused = attempt(expect)
        assert code == refused
        if answer is not None:
            assert answer == self.app.jobs.get(answer.id), "the answer is not what was recorded"

    def possible(self, what: str, one: ClaimedItem) -> str:
        """A kind that has lost a step cannot run it."""
        rules = self.model.rules[one.kind]
        gone = (one.role is ItemRole.PLAN and not rules.plans) or (
            one.role is ItemRole.FINALIZE and not rules.has_finalizer
        )
        return "step gone" if gone and what != "released" else what

    def outcome(self, what: str, one: ClaimedItem, result: JSON) -> Outcome:
        """What a worker makes of a handler's answer."""
        kind = self.app.kinds.get(one.kind)
        if what == "released":
            return outcomes.released()
        if what == "done":
            return outcome_of_value(kind, one, None if one.role is ItemRole.PLAN else result, MAX_BYTES)
        return outcome_of_error(kind, one, ANSWERS[what]())

    def ending(self, what: str, one: ClaimedItem, result: JSON) -> Ending:
        """The same in the model."""
        kept = None if one.role is ItemRole.PLAN else result
        return self.model.ending(what, handle(one), one.attempt, one.not_found_attempts, kept)

    def kind(self, index: int) -> str:
        return self.kinds[index % len(self.kinds)]

    def pick(self, index: int) -> UUID:
        return some(list(self.model.jobs), index)

    def caller(self, index: int, who: str) -> Caller:
        job = self.model.jobs[self.pick(index)]
        return {"owner": owner(job.user_id), "admin": admin("root"), "system": SYSTEM, "stranger": STRANGER}[who]

    def in_hand(self, role: ItemRole) -> list[ClaimedItem]:
        every = [one for held in self.held.values() for one in held] + self.lost[-3:]
        return [one for one in every if one.role is role and one.job_id in self.model.jobs]


def tell(what: str) -> None:
    """What happened, for whoever reads a run that failed."""
    if currently_in_test_context():
        note(what)


def handle(one: ClaimedItem) -> Handle:
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
