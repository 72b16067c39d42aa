"""Every write the engine makes, with what must be there before it: what the crash tests stop at every statement."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import select, update

from penstock.lifecycle import outcomes
from penstock.lifecycle.callers import SYSTEM, owner, worker
from penstock.lifecycle.job import ClaimedItem, Job
from penstock.lifecycle.kind import Kinds
from penstock.lifecycle.schedules import CatchUp, Schedule
from penstock.lifecycle.states import ItemStatus
from penstock.lifecycle.transport import Message
from penstock.operations import control, delayed_jobs, heartbeat, maintenance, outbox, schedules
from penstock.operations.claim import claim
from penstock.operations.record import record_free
from penstock.operations.reprocess import reprocess
from penstock.operations.request import Request
from penstock.operations.submit import submit_created
from penstock.operations.submit_many import submit_many
from penstock.store.tables import jobs
from penstock.testing.drive import LEASE, MAX_BYTES, NEVER_STALE, SUSPECT_DEATHS, Workbench, item_result

Operation = Callable[[], object]
Prepare = Callable[[Workbench], Operation]
CASES: dict[str, Prepare] = {}

DONE = outcomes.done('{"ok":true}')
FAILED = outcomes.failed("no", "NO")
RETRIED = outcomes.retried("later", "LATER", 5.0)


def case(prepare: Prepare) -> Prepare:
    """Add a case under its function's name."""
    CASES[prepare.__name__] = prepare
    return prepare


def in_write(bench: Workbench, verb: Callable[..., object], *arguments: Any, **named: Any) -> Operation:
    """An operation in a transaction of its own."""
    return lambda: bench.store.write(lambda one: verb(one, *arguments, **named))


# Submitting ----------------------------------------------------------------------------------------------------------


@case
def submit_single(bench: Workbench) -> Operation:
    return lambda: bench.submit("single", {"n": 1}, owner="ann")


@case
def submit_items(bench: Workbench) -> Operation:
    return lambda: bench.submit("bulk", items=[1, 2, 3])


@case
def submit_no_items(bench: Workbench) -> Operation:
    return lambda: bench.submit("bulk", items=[])


@case
def submit_planned(bench: Workbench) -> Operation:
    return lambda: bench.submit("planned", {"n": 1})


@case
def submit_held(bench: Workbench) -> Operation:
    return lambda: bench.submit("bulk", items=[1, 2], hold=True)


@case
def submit_follower(bench: Workbench) -> Operation:
    bench.submit("single", owner="ann", unique_key="u")
    return lambda: bench.submit("single", owner="bob", unique_key="u")


@case
def submit_follower_of_running(bench: Workbench) -> Operation:
    bench.submit("single", owner="ann", unique_key="u")
    bench.claim("single")
    return lambda: bench.submit("single", owner="bob", unique_key="u")


@case
def submit_cached(bench: Workbench) -> Operation:
    bench.submit("single", owner="ann", unique_key="u")
    bench.drain("single")
    return lambda: bench.submit("single", owner="bob", unique_key="u", fresh_for=60)


@case
def submit_idempotent(bench: Workbench) -> Operation:
    return lambda: bench.submit("single", owner="ann", idempotency_key="i")


@case
def submit_beyond_bound(bench: Workbench) -> Operation:
    for _ in range(3):
        bench.submit("limited")
    return lambda: bench.submit("limited")


@case
def submit_several(bench: Workbench) -> Operation:
    return in_write(bench, submit_many, bench.kinds.get("single"), [1, 2, 3], Request(), max_bytes=MAX_BYTES)


@case
def submit_what_was_held(bench: Workbench) -> Operation:
    job = bench.submit("bulk", items=[1, 2], hold=True).job
    return in_write(bench, submit_created, bench.kinds.get("bulk"), job.id, SYSTEM)


# Claiming ------------------------------------------------------------------------------------------------------------


def claiming(bench: Workbench, kind: str, size: int = 10) -> Operation:
    return lambda: claim(bench.store, kind, "w9", size=size, lease_seconds=LEASE)


@case
def claim_fresh(bench: Workbench) -> Operation:
    bench.submit("bulk", items=[1, 2, 3])
    return claiming(bench, "bulk", 2)


@case
def claim_of_several(bench: Workbench) -> Operation:
    for _ in range(3):
        bench.submit("bulk", items=[1, 2])
    return claiming(bench, "bulk")


@case
def claim_returned(bench: Workbench) -> Operation:
    bench.submit("bulk", items=[1, 2, 3])
    bench.record(bench.claim("bulk", size=2), RETRIED)
    bench.clock.advance(6)
    return claiming(bench, "bulk")


@case
def claim_retrying(bench: Workbench) -> Operation:
    bench.submit("single")
    bench.record(bench.claim("single"), RETRIED)
    bench.clock.advance(6)
    return claiming(bench, "single")


@case
def claim_what_is_followed(bench: Workbench) -> Operation:
    bench.submit("single", owner="ann", unique_key="u")
    bench.submit("single", owner="bob", unique_key="u")
    return claiming(bench, "single")


@case
def claim_plan(bench: Workbench) -> Operation:
    bench.submit("planned")
    return claiming(bench, "planned")


@case
def claim_beside_a_locked_job(bench: Workbench) -> Operation:
    """PostgreSQL alone: the first of two jobs that are due is locked by somebody's open transaction."""
    first = bench.submit("single").job
    bench.submit("single")
    other = bench.store.engine.connect()
    other.execute(select(jobs.c.id).where(jobs.c.id == first.id).with_for_update())

    def claim_and_let_go() -> None:
        try:
            claiming(bench, "single")()
        finally:
            other.close()

    return claim_and_let_go


# Recording -----------------------------------------------------------------------------------------------------------


def given(bench: Workbench, *items: Any) -> list[ClaimedItem]:
    """A bulk job of these items, all in a worker's hands."""
    bench.submit("bulk", items=list(items))
    return bench.claim("bulk")


@case
def record_one_of_two(bench: Workbench) -> Operation:
    held = given(bench, 1, 2)
    return lambda: bench.record(held[:1], DONE)


@case
def record_the_last(bench: Workbench) -> Operation:
    held = given(bench, 1, 2)
    return lambda: bench.hand_in([(held[0], DONE), (held[1], FAILED)])


@case
def record_finalize(bench: Workbench) -> Operation:
    bench.record(given(bench, 1), DONE)
    finalize = bench.claim("bulk")
    return lambda: bench.record(finalize, DONE)


@case
def record_finalize_failed(bench: Workbench) -> Operation:
    bench.record(given(bench, 1), DONE)
    finalize = bench.claim("bulk")
    return lambda: bench.record(finalize, FAILED)


@case
def record_item_retried(bench: Workbench) -> Operation:
    held = given(bench, 1, 2)
    return lambda: bench.hand_in([(held[0], RETRIED), (held[1], outcomes.released())])


@case
def record_single_retried(bench: Workbench) -> Operation:
    bench.submit("single")
    held = bench.claim("single")
    return lambda: bench.record(held, RETRIED)


@case
def record_for_followers(bench: Workbench) -> Operation:
    for who in ("ann", "bob", "cyd"):
        bench.submit("single", owner=who, unique_key="u")
    held = bench.claim("single")
    return lambda: bench.record(held, DONE)


@case
def record_failed_for_followers(bench: Workbench) -> Operation:
    for who in ("ann", "bob"):
        bench.submit("single", owner=who, unique_key="u")
    held = bench.claim("single")
    return lambda: bench.record(held, FAILED)


@case
def record_plan(bench: Workbench) -> Operation:
    bench.submit("planned")
    held = bench.claim("planned")
    bench.plan(held[0], [1, 2])
    return lambda: bench.record(held, DONE)


@case
def record_empty_plan(bench: Workbench) -> Operation:
    bench.submit("planned")
    held = bench.claim("planned")
    return lambda: bench.record(held, DONE)


@case
def record_failed_plan(bench: Workbench) -> Operation:
    bench.submit("planned")
    held = bench.claim("planned")
    return lambda: bench.record(held, FAILED)


@case
def record_of_several_jobs(bench: Workbench) -> Operation:
    held = given(bench, 1) + given(bench, 1, 2) + given(bench, 1)
    return lambda: bench.hand_in([(held[0], DONE), (held[1], DONE), (held[2], RETRIED), (held[3], FAILED)])


@case
def record_while_paused(bench: Workbench) -> Operation:
    held = given(bench, 1, 2)
    in_write(bench, control.pause, held[0].job_id, SYSTEM)()
    return lambda: bench.record(held, DONE)


@case
def record_what_is_free(bench: Workbench) -> Operation:
    done = [item_result(one, DONE) for one in given(bench, 1, 2)]
    return in_write(bench, record_free, done, worker("w1"))


@case
def extend_leases(bench: Workbench) -> Operation:
    held = given(bench, 1, 2)
    bench.clock.advance(5)
    return in_write(bench, heartbeat.extend, held, LEASE)


@case
def say_something(bench: Workbench) -> Operation:
    return in_write(bench, heartbeat.say, given(bench, 1)[0].job_id, "half way")


@case
def add_planned(bench: Workbench) -> Operation:
    bench.submit("planned")
    held = bench.claim("planned")
    bench.plan(held[0], [1])
    return lambda: bench.plan(held[0], [2, 3])


# People --------------------------------------------------------------------------------------------------------------


@case
def pause(bench: Workbench) -> Operation:
    job = bench.submit("bulk", items=[1, 2]).job
    bench.claim("bulk", size=1)
    return in_write(bench, control.pause, job.id, SYSTEM)


def paused(bench: Workbench, *, ended: int, size: int = 2) -> Job:
    """A paused bulk job of two items, some of which ended meanwhile."""
    job = bench.submit("bulk", items=[1, 2]).job
    held = bench.claim("bulk", size=size)
    in_write(bench, control.pause, job.id, SYSTEM)()
    bench.record(held[:ended], DONE)
    return job


@case
def resume_with_work_left(bench: Workbench) -> Operation:
    return in_write(bench, control.resume, paused(bench, ended=1, size=1).id, SYSTEM)


@case
def resume_with_all_in_hands(bench: Workbench) -> Operation:
    return in_write(bench, control.resume, paused(bench, ended=1).id, SYSTEM)


@case
def resume_with_all_ended(bench: Workbench) -> Operation:
    return in_write(bench, control.resume, paused(bench, ended=2).id, SYSTEM)


@case
def resume_what_is_finalized(bench: Workbench) -> Operation:
    held = given(bench, 1)
    bench.record(held, DONE)
    finalize = bench.claim("bulk")
    in_write(bench, control.pause, held[0].job_id, SYSTEM)()
    bench.record(finalize, DONE)
    return in_write(bench, control.resume, held[0].job_id, SYSTEM)


@case
def cancel(bench: Workbench) -> Operation:
    return in_write(bench, control.cancel, given(bench, 1, 2)[0].job_id, SYSTEM, "enough")


@case
def cancel_with_heir(bench: Workbench) -> Operation:
    leader = bench.submit("bulk", owner="ann", unique_key="u", items=[1, 2, 3]).job
    for who in ("bob", "cyd"):
        bench.submit("bulk", owner=who, unique_key="u", items=[1, 2, 3])
    bench.claim("bulk", size=1)
    return in_write(bench, control.cancel, leader.id, owner("ann"))


@case
def cancel_with_heir_of_a_plan(bench: Workbench) -> Operation:
    leader = bench.submit("planned", owner="ann", unique_key="u").job
    bench.submit("planned", owner="bob", unique_key="u")
    bench.plan(bench.claim("planned")[0], [1, 2])
    return in_write(bench, control.cancel, leader.id, owner("ann"))


def succeeded(bench: Workbench, kind: str = "single") -> Job:
    job = bench.submit(kind).job
    bench.drive_to_end()
    return job


@case
def commit(bench: Workbench) -> Operation:
    return in_write(bench, control.commit, succeeded(bench).id, SYSTEM)


@case
def abandon(bench: Workbench) -> Operation:
    return in_write(bench, control.abandon, succeeded(bench).id, SYSTEM)


def failed_planned(bench: Workbench) -> Job:
    """A planned job that succeeded, one of whose items did not."""
    job = bench.submit("planned").job
    plan = bench.claim("planned")
    bench.plan(plan[0], [1, 2])
    bench.record(plan, DONE)
    first, second = bench.claim("planned")
    bench.hand_in([(first, DONE), (second, FAILED)])
    bench.record(bench.claim("planned"), DONE)
    return job


@case
def reprocess_failed(bench: Workbench) -> Operation:
    return in_write(bench, reprocess, bench.kinds.get("planned"), failed_planned(bench).id, SYSTEM)


@case
def reprocess_finalize_alone(bench: Workbench) -> Operation:
    job = failed_planned(bench)
    return in_write(bench, reprocess, bench.kinds.get("planned"), job.id, SYSTEM, statuses=[ItemStatus.SKIPPED])


@case
def reprocess_single(bench: Workbench) -> Operation:
    job = bench.submit("again").job
    bench.record(bench.claim("again"), FAILED)
    return in_write(bench, reprocess, bench.kinds.get("again"), job.id, SYSTEM)


# Maintenance ---------------------------------------------------------------------------------------------------------


@case
def rescue_expired(bench: Workbench) -> Operation:
    given(bench, 1, 2)
    bench.clock.advance(LEASE + 1)
    return in_write(bench, maintenance.rescue, bench.kinds, SUSPECT_DEATHS)


@case
def rescue_and_blame(bench: Workbench) -> Operation:
    """A suspect that was alone in two deaths fails, and its follower with it."""
    bench.submit("single", owner="ann", unique_key="u")
    bench.submit("single", owner="bob", unique_key="u")
    for _ in range(SUSPECT_DEATHS + 1):
        bench.claim("single")
        maintenance.rescue_from(bench.store, bench.kinds, "w1", SUSPECT_DEATHS)
        bench.clock.advance(6)
    [suspect] = bench.claim("single")
    bench.store.write(lambda one: heartbeat.note_alone(one, suspect))
    bench.clock.advance(LEASE + 1)
    return in_write(bench, maintenance.rescue, bench.kinds, SUSPECT_DEATHS)


@case
def requeue_due(bench: Workbench) -> Operation:
    bench.submit("single")
    bench.record(bench.claim("single"), RETRIED)
    bench.clock.advance(6)
    return in_write(bench, maintenance.requeue_due)


@case
def fail_waiting(bench: Workbench) -> Operation:
    bench.submit("limited", owner="ann", unique_key="u")
    bench.submit("limited", owner="bob", unique_key="u")
    bench.clock.advance(61)
    return in_write(bench, maintenance.fail_waiting, bench.kinds.get("limited"))


@case
def fail_overrunning(bench: Workbench) -> Operation:
    bench.submit("limited", items=[1, 2])
    bench.claim("limited", size=1)
    bench.clock.advance(121)
    return in_write(bench, maintenance.fail_overrunning, bench.kinds.get("limited"))


@case
def abandon_unused(bench: Workbench) -> Operation:
    succeeded(bench, "limited")
    bench.clock.advance(201)
    return in_write(bench, maintenance.abandon_unused, bench.kinds.get("limited"))


@case
def rescue_stuck(bench: Workbench) -> Operation:
    """A job out of line, as only a defect could leave it."""
    bench.submit("bulk", items=[1, 2])
    bench.store.write(lambda one: one.execute(update(jobs).values(next_claim_at=None)))
    bench.clock.advance(101)
    return in_write(bench, maintenance.rescue_stuck, 100.0)


@case
def whole_sweep(bench: Workbench) -> Operation:
    """All parts, each in transactions of its own; one kind is enough for that."""
    requeue_due(bench)
    bench.submit("single")
    bench.claim("single", size=1)
    bench.clock.advance(LEASE + 1)
    kinds = Kinds()
    kinds.add(bench.kinds.get("single"))
    return lambda: maintenance.sweep(bench.store, kinds, stale_seconds=NEVER_STALE, suspect_deaths=SUSPECT_DEATHS)


# Messages ------------------------------------------------------------------------------------------------------------


def messages(bench: Workbench) -> None:
    for number in range(3):
        bench.store.write(lambda one, number=number: outbox.append(one, "t", number, key="k", max_bytes=MAX_BYTES))  # type: ignore[misc]


@case
def outbox_append(bench: Workbench) -> Operation:
    return in_write(bench, outbox.append, "t", {"n": 1}, key="k", max_bytes=MAX_BYTES)


@case
def outbox_relay(bench: Workbench) -> Operation:
    messages(bench)
    return lambda: outbox.relay(bench.store, lambda message: None)


@case
def outbox_relay_of_what_fails(bench: Workbench) -> Operation:
    def send(message: Message) -> None:
        if message.payload == 1:
            raise OSError("down")

    messages(bench)
    return lambda: outbox.relay(bench.store, send)


@case
def outbox_forget(bench: Workbench) -> Operation:
    messages(bench)
    outbox.relay(bench.store, lambda message: None)
    bench.clock.advance(8 * 86400)
    return in_write(bench, outbox.forget_sent)


# When a time comes ---------------------------------------------------------------------------------------------------


@case
def release_due(bench: Workbench) -> Operation:
    bench.submit("single", {"n": 1}, owner="ann", delay=60.0)
    bench.submit("bulk", items=[1, 2], delay=60.0)
    bench.clock.advance(60)
    return lambda: delayed_jobs.release_due(bench.store, bench.kinds)


@case
def submit_of_schedule(bench: Workbench) -> Operation:
    hourly = Schedule("hourly", "0 * * * *", "single", {"n": 1}, catch_up=CatchUp.ALL)
    bench.store.write(lambda one: schedules.declare(one, [hourly], max_bytes=MAX_BYTES))
    bench.clock.advance(2 * 3_600)
    return lambda: schedules.submit_due(bench.store, bench.kinds, max_bytes=MAX_BYTES)
