"""Small states in which operations may meet: one or two jobs in every condition that matters, by name.

Jobs are called by their titles: L leads or stands alone, F and G follow it, M does other work. Items in somebody's
hands are called h1, h2 (a plan's p1, p2).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from sqlalchemy import func, select, update

from penstock.lifecycle import outcomes
from penstock.lifecycle.callers import owner
from penstock.lifecycle.job import ClaimedItem
from penstock.lifecycle.kind import Kind, Kinds
from penstock.lifecycle.outcomes import Outcome
from penstock.lifecycle.policy import Policy
from penstock.operations import control, outbox
from penstock.operations.reprocess import reprocess
from penstock.store.tables import jobs
from penstock.store.tables import outbox as outbox_table
from penstock.testing.drive import LEASE, MAX_BYTES, Workbench
from tests.interleavings.databases import Database
from tests.properties.engine_kinds import PlanProcessFinalize, ProcessFinalize, process

DONE = outcomes.done('{"ok":true}')
FAILED = outcomes.failed("bad", "BAD")
RETRIED = outcomes.retried("later", "LATER", 1.0)
KEY = "the work"
LONG = 5_000.0
"""Seconds of a lease that outlasts every limit."""
LIMIT = 600.0


def _policy(**rules: Any) -> Policy:
    return Policy(retries=2, backoff="1s fixed", reprocess=True, **rules)


_LIMITS: dict[str, Any] = {
    "hold_limit": LIMIT, "wait_limit": LIMIT, "run_limit": LIMIT, "abandon_after": LIMIT, "prune_result": True,
}  # fmt: skip
KINDS = {
    kind.name: kind
    for kind in (
        Kind.of("single", process, _policy()),
        Kind.of("limited", process, _policy(**_LIMITS)),
        Kind.of("bounded", process, _policy(queue_limit=1)),
        Kind.of("planned", PlanProcessFinalize, _policy()),
        Kind.of("given", ProcessFinalize, _policy()),
        Kind.of("kept", process, _policy(keep_for=LIMIT)),
        Kind.of("given-limited", ProcessFinalize, _policy(run_limit=LIMIT)),
    )
}
"""Every shape a job can have; two of them with limits, one with a bound on what waits."""


class Stage(Workbench):
    """A workbench that knows its jobs and what is held of them by name."""

    def __init__(self, database: Database) -> None:
        super().__init__(database.store, database.clock, KINDS.values())
        self.jobs_by_title: dict[str, UUID] = {}
        self.owners: dict[str, str] = {}
        self.held: dict[str, tuple[ClaimedItem, str]] = {}
        self.kind = "single"
        self.publishes_in_order = True
        """Does who publishes next get a later number than those who have?"""
        self.messages: list[tuple[str | None, Any]] = []
        """What relays have sent, in order, by key."""

    def know_one_kind(self) -> None:
        """The scene's own: a sweep looks for each kind there is."""
        self.kinds = Kinds()
        self.kinds.add(KINDS[self.kind])

    def begin_again(self) -> None:
        """Everything has been put back to how it was."""
        self.messages.clear()
        self._marks.clear()  # they know of a later time

    @property
    def given_items(self) -> list[int] | None:
        """What jobs of this kind are given."""
        return [1, 2] if self.kind.startswith("given") else None

    def new(self, title: str, kind: str | None = None, who: str = "ann", *, key: str = KEY, **request: Any) -> None:
        """Submit a job."""
        self.kind = kind or self.kind
        items = request.pop("items", self.given_items)
        made = self.submit(
            self.kind, {"n": 1}, owner=who, caller=owner(who), title=title, unique_key=key, items=items, **request
        )
        self.jobs_by_title[title], self.owners[title] = made.job.id, who

    def take(self, names: str, by: str = "w1", *, size: int = 1, lease: float = LEASE) -> None:
        """Claim items, and call them so."""
        for name, one in zip(names.split(), self.claim(self.kind, by, size=size, lease=lease), strict=True):
            self.held[name] = (one, by)

    def end(self, name: str, outcome: Outcome) -> None:
        """Record how one of them ended."""
        one, by = self.held.pop(name)
        self.record([one], outcome, by)

    def ask(self, verb: Callable[..., Any], title: str) -> None:
        """Pause, resume or cancel a job, as its owner."""
        self.store.write(lambda one: verb(one, self.jobs_by_title[title], owner(self.owners[title])))

    def fail_by_limit(self) -> None:
        """Let a limit pass, and sweep."""
        self.clock.advance(LIMIT + 100)
        self.sweep()

    def publish(self, key: str, payload: str) -> None:
        """Put a message into the outbox."""
        self.store.write(lambda one: outbox.append(one, "topic", payload, key=key, max_bytes=MAX_BYTES))

    def unsent(self) -> int:
        """How many messages have not gone out."""
        return self.store.read(lambda one: one.values(int, UNSENT))[0]


UNSENT = select(func.count()).where(outbox_table.c.sent_at.is_(None))
Scene = Callable[[Stage], None]
SCENES: dict[str, Scene] = {}


def scene(prepare: Scene) -> Scene:
    """Add a scene under its function's name."""
    SCENES[prepare.__name__] = prepare
    return prepare


# One step -------------------------------------------------------------------------------------------------------------


@scene
def nothing(stage: Stage) -> None:
    stage.kind = "single"


@scene
def queued(stage: Stage) -> None:
    stage.new("L", idempotency_key="i")


@scene
def running(stage: Stage) -> None:
    stage.new("L")
    stage.take("h1")


@scene
def running_expired(stage: Stage) -> None:
    running(stage)
    stage.clock.advance(LEASE + 1)


@scene
def running_again(stage: Stage) -> None:
    """The first worker's lease ran out, and another one has the item."""
    running_expired(stage)
    stage.sweep()
    stage.clock.advance(2)
    stage.take("h2", "w2")


@scene
def retrying(stage: Stage) -> None:
    running(stage)
    stage.end("h1", RETRIED)


@scene
def retrying_due(stage: Stage) -> None:
    retrying(stage)
    stage.clock.advance(2)


@scene
def requeued(stage: Stage) -> None:
    retrying_due(stage)
    stage.sweep()


@scene
def held(stage: Stage) -> None:
    stage.new("L", hold=True)


@scene
def succeeded(stage: Stage) -> None:
    running(stage)
    stage.end("h1", DONE)


@scene
def failed(stage: Stage) -> None:
    running(stage)
    stage.end("h1", FAILED)


@scene
def paused(stage: Stage) -> None:
    stage.new("L")
    stage.ask(control.pause, "L")


@scene
def paused_in_hands(stage: Stage) -> None:
    running(stage)
    stage.ask(control.pause, "L")


@scene
def paused_over(stage: Stage) -> None:
    """Its work ended while it was paused."""
    paused_in_hands(stage)
    stage.end("h1", DONE)


@scene
def resumed_in_hands(stage: Stage) -> None:
    paused_in_hands(stage)
    stage.ask(control.resume, "L")


@scene
def two_running(stage: Stage) -> None:
    stage.new("L")
    stage.new("M", who="bob", key="other work")
    stage.take("h1 h2", size=2)


@scene
def bounded(stage: Stage) -> None:
    stage.kind = "bounded"


# Leaders and followers ------------------------------------------------------------------------------------------------


@scene
def lead_queued(stage: Stage) -> None:
    stage.new("L")
    stage.new("F", who="bob")
    stage.new("G", who="cid")


@scene
def lead_running(stage: Stage) -> None:
    running(stage)
    stage.new("F", who="bob")
    stage.new("G", who="cid")


@scene
def lead_expired(stage: Stage) -> None:
    lead_running(stage)
    stage.clock.advance(LEASE + 1)


@scene
def lead_retrying_due(stage: Stage) -> None:
    lead_running(stage)
    stage.end("h1", RETRIED)
    stage.clock.advance(2)


@scene
def lead_requeued(stage: Stage) -> None:
    """Back in line after a retry, with one who has started and one who has joined since."""
    running(stage)
    stage.new("F", who="bob")
    stage.end("h1", RETRIED)
    stage.clock.advance(2)
    stage.sweep()
    stage.new("G", who="cid")


@scene
def lead_left_alone(stage: Stage) -> None:
    """Its only follower has gone."""
    stage.new("L")
    stage.new("F", who="bob")
    stage.ask(control.cancel, "F")


@scene
def lead_succeeded(stage: Stage) -> None:
    lead_running(stage)
    stage.end("h1", DONE)


@scene
def paused_beside_leader(stage: Stage) -> None:
    """Somebody else does the work meanwhile."""
    paused(stage)
    stage.new("F", who="bob")


@scene
def held_beside_leader(stage: Stage) -> None:
    held(stage)
    stage.new("F", who="bob")


@scene
def left_behind(stage: Stage) -> None:
    """A leader that ended and forgot its followers, as a program of another version might."""
    lead_running(stage)
    stage.store.write(lambda one: one.execute(update(jobs).values(has_followers=False)))
    stage.end("h1", DONE)


# Kept for long enough -------------------------------------------------------------------------------------------------


@scene
def kept_succeeded(stage: Stage) -> None:
    """With a key that leads to it."""
    stage.new("L", "kept", idempotency_key="i")
    stage.take("h1")
    stage.end("h1", DONE)
    stage.clock.advance(LIMIT + 100)


@scene
def kept_failed(stage: Stage) -> None:
    stage.new("L", "kept")
    stage.take("h1")
    stage.end("h1", FAILED)
    stage.clock.advance(LIMIT + 100)


@scene
def kept_canceled_in_hands(stage: Stage) -> None:
    """Somebody still holds its item."""
    stage.new("L", "kept")
    stage.take("h1", lease=LONG)
    stage.ask(control.cancel, "L")
    stage.clock.advance(LIMIT + 100)


@scene
def kept_lead(stage: Stage) -> None:
    """One who followed has the result, too."""
    stage.new("L", "kept")
    stage.new("F", who="bob")
    stage.take("h1")
    stage.end("h1", DONE)
    stage.clock.advance(LIMIT + 100)


# Several items --------------------------------------------------------------------------------------------------------


@scene
def given_fresh(stage: Stage) -> None:
    stage.new("L", "given")


@scene
def given_one(stage: Stage) -> None:
    given_fresh(stage)
    stage.take("h1")


@scene
def given_both(stage: Stage) -> None:
    given_one(stage)
    stage.take("h2", "w2")


@scene
def given_both_expired(stage: Stage) -> None:
    given_one(stage)
    stage.clock.advance(LEASE - 5)
    stage.take("h2", "w2")
    stage.clock.advance(10)


@scene
def given_returned_due(stage: Stage) -> None:
    given_one(stage)
    stage.end("h1", RETRIED)
    stage.take("h2", "w2")
    stage.clock.advance(2)


@scene
def given_last(stage: Stage) -> None:
    given_both(stage)
    stage.end("h1", DONE)


@scene
def given_finalize(stage: Stage) -> None:
    stage.new("L", "given", items=[1])
    stage.take("h1")
    stage.end("h1", DONE)


@scene
def given_finalizing(stage: Stage) -> None:
    given_finalize(stage)
    stage.take("h2")


@scene
def given_finalizing_lead(stage: Stage) -> None:
    given_finalizing(stage)
    stage.new("F", who="bob", items=[1])


@scene
def given_over(stage: Stage) -> None:
    """With an item that failed."""
    given_both(stage)
    stage.end("h1", FAILED)
    stage.end("h2", DONE)
    stage.take("h3")
    stage.end("h3", DONE)


@scene
def given_overrunning(stage: Stage) -> None:
    stage.new("L", "given-limited")
    stage.take("h1", lease=LONG)
    stage.clock.advance(LIMIT + 100)


@scene
def given_timed_out(stage: Stage) -> None:
    """Failed by its limit, with one item in a worker's hands and one fresh."""
    stage.new("L", "given-limited")
    stage.take("h1", lease=LONG)
    stage.fail_by_limit()


@scene
def given_timed_out_finalizing(stage: Stage) -> None:
    """Failed by its limit, with the finalize step in a worker's hands."""
    stage.new("L", "given-limited", items=[1])
    stage.take("h1")
    stage.end("h1", FAILED)
    stage.take("h2", lease=LONG)
    stage.fail_by_limit()


@scene
def given_reprocessed(stage: Stage) -> None:
    """A new run, while an item of the run before is in a worker's hands."""
    stage.new("L", "given-limited")
    stage.take("h1", lease=LONG)
    stage.take("h2", "w2", lease=LONG)
    stage.end("h2", FAILED)
    stage.fail_by_limit()
    kind, job = stage.kinds.get(stage.kind), stage.jobs_by_title["L"]
    stage.store.write(lambda one: reprocess(one, kind, job, owner("ann")))


@scene
def given_paused(stage: Stage) -> None:
    given_one(stage)
    stage.ask(control.pause, "L")


@scene
def given_lead(stage: Stage) -> None:
    given_fresh(stage)
    stage.new("F", who="bob")
    stage.take("h1")


# Plans ----------------------------------------------------------------------------------------------------------------


@scene
def plan_fresh(stage: Stage) -> None:
    stage.new("L", "planned")


@scene
def planning(stage: Stage) -> None:
    plan_fresh(stage)
    stage.take("p1")
    stage.plan(stage.held["p1"][0], [1])


@scene
def planning_lead(stage: Stage) -> None:
    planning(stage)
    stage.new("F", who="bob")


@scene
def planning_expired(stage: Stage) -> None:
    planning(stage)
    stage.clock.advance(LEASE + 1)


@scene
def planning_again(stage: Stage) -> None:
    """Another worker has the plan now."""
    planning_expired(stage)
    stage.sweep()
    stage.clock.advance(2)
    stage.take("p2", "w2")


@scene
def planning_paused(stage: Stage) -> None:
    planning(stage)
    stage.ask(control.pause, "L")


# Limits ---------------------------------------------------------------------------------------------------------------


@scene
def limited_waited(stage: Stage) -> None:
    stage.new("L", "limited")
    stage.new("F", who="bob")
    stage.clock.advance(LIMIT + 100)


@scene
def limited_running(stage: Stage) -> None:
    stage.new("L", "limited")
    stage.new("F", who="bob")
    stage.take("h1", lease=LONG)
    stage.clock.advance(LIMIT + 100)


@scene
def limited_unused(stage: Stage) -> None:
    """Results that nobody has used in time."""
    stage.new("L", "limited")
    stage.new("F", who="bob")
    stage.take("h1")
    stage.end("h1", DONE)
    stage.clock.advance(LIMIT + 100)


@scene
def stale(stage: Stage) -> None:
    """Out of line, as only a defect could leave it."""
    given_last(stage)
    stage.end("h2", RETRIED)
    stage.store.write(lambda one: one.execute(update(jobs).values(next_claim_at=None)))
    stage.clock.advance(LONG)


# Messages -------------------------------------------------------------------------------------------------------------


@scene
def messages(stage: Stage) -> None:
    """Two of one key and one of another wait to be sent."""
    stage.publish("k", "first")
    stage.publish("other", "between")
    stage.publish("k", "second")
    stage.clock.advance(1)


@scene
def messages_out_of_order(stage: Stage) -> None:
    """The same, and whoever publishes next has drawn a lower number before they were published, but commits after."""
    if stage.store.dialect.is_embedded:
        messages(stage)
        return
    _set_next_message(stage, 100)
    messages(stage)
    _set_next_message(stage, 50)
    stage.publishes_in_order = False


def _set_next_message(stage: Stage, number: int) -> None:
    sequence = "pg_get_serial_sequence('penstock.outbox', 'id')"
    stage.store.write(lambda one: one.connection.exec_driver_sql(f"SELECT setval({sequence}, {number})"))


BROKEN = frozenset({"stale", "left_behind"})
"""Scenes that are wrong from the beginning: what has not been mended yet is no fault of the operations."""
