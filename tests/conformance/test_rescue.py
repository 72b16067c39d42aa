"""Deaths of workers: what each costs, whom nobody blames, and who is a suspect in the end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from penstock import ItemStatus, Penstock
from penstock.clock import ManualClock
from penstock.lifecycle import outcomes
from penstock.lifecycle.callers import SYSTEM
from penstock.lifecycle.job import ClaimedItem
from penstock.lifecycle.states import ItemRole, JobState, KilledBy
from penstock.operations import control
from penstock.operations.claim import Care, Claim, claim
from penstock.operations.heartbeat import NotExtended, extend, note_alone
from penstock.operations.maintenance import LastLook, rescue_from, sweep
from penstock.operations.reprocess import reprocess
from penstock.operations.workers import count_deaths
from penstock.store.engine import Store
from penstock.testing.drive import LEASE, NEVER_STALE, SUSPECT_DEATHS, Workbench
from tests.conformance.steps import DONE, history, items
from tests.on_store import OnStore

pytestmark = pytest.mark.usefixtures("rows_are_true_in_the_end")
S = JobState


BACKOFF = 5.0


def die(bench: Workbench, worker: str = "w1") -> int:
    """A worker dies, and a neighbour notices."""
    return rescue_from(bench.store, bench.kinds, worker, SUSPECT_DEATHS)


def take(bench: Workbench, kind: str, *, free: int, size: int = 10) -> Claim:
    """A claim of a worker with so many free places."""
    return claim(bench.store, kind, "w1", size=size, lease_seconds=LEASE, care=Care(free, SUSPECT_DEATHS))


def run_alone(bench: Workbench, held: ClaimedItem) -> None:
    """The item begins while its worker has nothing else in hand."""
    bench.store.write(lambda one: note_alone(one, held))


def until_suspect(bench: Workbench, kind: str) -> ClaimedItem:
    """Let workers die with the one item in hand until it is a suspect, and claim it."""
    for _ in range(SUSPECT_DEATHS):
        [held] = take(bench, kind, free=1, size=1).items
        die(bench)
        bench.clock.advance(BACKOFF)
    brought = take(bench, kind, free=1)
    assert brought.suspect_deaths == SUSPECT_DEATHS
    [held] = brought.items
    return held


@pytest.mark.parametrize("noticed", ["by a neighbour", "by its leases"])
def test_a_death_uses_up_no_try(bench: Workbench, noticed: str) -> None:
    job = bench.submit("single").job
    for number in range(10):
        assert [one.attempt for one in bench.claim("single", "w5")] == [1]
        if noticed == "by a neighbour":
            assert die(bench, "w5") == 1
        else:
            bench.clock.advance(LEASE + 1)
            assert bench.sweep().leases_expired == 1
        [item] = items(bench, job.id)
        assert (item.attempts, item.deaths, item.last_error) == (0, number + 1, None)
        bench.clock.advance(BACKOFF)
    assert bench.job(job.id).state is S.RUNNING
    for attempt in (1, 2):
        [held] = bench.claim("single")
        assert held.attempt == attempt
        bench.record([held], outcomes.retried("later", "LATER", 0.0))
    assert [one.attempt for one in bench.claim("single")] == [3], "it had its tries left"


def test_the_history_tells_deaths_from_tries(bench: Workbench) -> None:
    job = bench.submit("bulk", items=[1, 2, 3]).job
    bench.claim("bulk", "w5")
    die(bench, "w5")
    line = history(bench, job.id)[-1]
    assert (line.from_state, line.to_state) == (S.RUNNING, S.RUNNING)
    assert line.reason == "worker w5 died while it held 3 items; no try is used up"
    after = bench.job(job.id)
    assert (after.deaths, after.retries, after.state) == (1, 0, S.RUNNING)
    assert [(one.attempts, one.deaths) for one in items(bench, job.id)] == [(0, 1)] * 3


def test_a_worker_that_hands_back_has_not_died(bench: Workbench) -> None:
    job = bench.submit("bulk", items=[1]).job
    bench.record(bench.claim("bulk"), outcomes.released())
    assert die(bench) == 0
    assert (bench.job(job.id).deaths, items(bench, job.id)[0].deaths) == (0, 0)
    assert bench.store.read(count_deaths) == 0


def test_each_worker_is_counted_once_however_often_it_is_noticed(bench: Workbench) -> None:
    bench.submit("bulk", items=[1, 2])
    bench.submit("single")
    bench.claim("bulk", "w1", size=1)
    bench.claim("single", "w1")
    bench.claim("bulk", "w2", size=1)
    assert (die(bench, "w1"), die(bench, "w1"), die(bench, "w2"), die(bench, "w3")) == (2, 0, 1, 0)
    assert bench.store.read(count_deaths) == 2


def test_the_first_death_is_ready_at_once_and_later_ones_wait(bench: Workbench) -> None:
    bench.submit("single")
    bench.claim("single")
    die(bench)
    assert len(bench.claim("single")) == 1, "the first death makes nobody wait"
    die(bench)
    assert bench.claim("single") == []
    bench.clock.advance(BACKOFF)
    assert len(bench.claim("single")) == 1


def test_what_a_dead_worker_held_is_taken_only_as_it_can_begin(bench: Workbench) -> None:
    job = bench.submit("bulk", items=range(20)).job
    bench.claim("bulk", size=10)
    die(bench)
    first = take(bench, "bulk", free=3)
    assert ([one.position for one in first.items], first.careful) == ([1, 2, 3], True)
    none = take(bench, "bulk", free=0)
    assert (none.items, none.careful, none.wait) == ([], True, 0.0)
    die(bench)
    assert [one.deaths for one in items(bench, job.id)] == [2] * 3 + [1] * 7 + [0] * 10
    bench.record(take(bench, "bulk", free=7).items, DONE)
    bench.clock.advance(BACKOFF)
    bench.record(take(bench, "bulk", free=3).items, DONE)
    rest = take(bench, "bulk", free=1)
    assert (len(rest.items), rest.careful) == (10, False), "fresh items are claimed as ever"


def test_with_care_no_other_job_is_started_for_nothing(bench: Workbench) -> None:
    bench.submit("bulk", items=[1])
    bench.claim("bulk")
    die(bench)
    fresh = bench.submit("bulk", items=[2]).job
    assert [one.input for one in take(bench, "bulk", free=1).items] == [1]
    assert bench.job(fresh.id).state is S.QUEUED
    assert [one.input for one in take(bench, "bulk", free=0).items] == [2]


def test_a_suspect_is_all_its_claim_takes(bench: Workbench) -> None:
    bench.submit("bulk", items=[1])
    until_suspect(bench, "bulk")
    die(bench)
    bench.submit("bulk", items=[2, 3])
    bench.clock.advance(BACKOFF)
    brought = take(bench, "bulk", free=8)
    assert ([one.input for one in brought.items], brought.suspect_deaths) == ([1], SUSPECT_DEATHS + 1)
    after = take(bench, "bulk", free=8)
    assert ([one.input for one in after.items], after.suspect_deaths) == ([2, 3], 0)


def test_a_suspect_in_a_process_of_its_own_is_not_blamed_for_a_deployment(bench: Workbench) -> None:
    job = bench.submit("bulk", items=[1]).job
    until_suspect(bench, "bulk")
    for number in range(10):
        die(bench)
        bench.clock.advance(BACKOFF)
        assert take(bench, "bulk", free=1).suspect_deaths == SUSPECT_DEATHS + number + 1
    assert bench.job(job.id).state is S.RUNNING


@pytest.mark.parametrize("role", [ItemRole.PLAN, ItemRole.ITEM, ItemRole.FINALIZE])
def test_one_that_was_alone_in_two_deaths_is_blamed(bench: Workbench, role: ItemRole) -> None:
    kind = {ItemRole.PLAN: "planned", ItemRole.ITEM: "single", ItemRole.FINALIZE: "bulk"}[role]
    job = bench.submit(kind, items=[] if role is ItemRole.FINALIZE else None).job
    held = until_suspect(bench, kind)
    assert held.role is role
    for _ in range(2):
        assert bench.job(job.id).state is S.RUNNING
        run_alone(bench, held)
        die(bench)
        bench.clock.advance(BACKOFF)
        held = next(iter(take(bench, kind, free=1).items), held)
    failed = bench.job(job.id)
    assert (failed.state, failed.error_code, failed.killed_by) == (S.FAILED, "WORKER_CRASH", KilledBy.WORKER_CRASH)
    assert failed.last_error == "worker w1 died while it ran this item alone, after 6 deaths before"


def test_who_was_alone_under_another_lease_is_not_blamed(bench: Workbench) -> None:
    job = bench.submit("single").job
    held = until_suspect(bench, "single")
    run_alone(bench, held)
    for _ in range(3):
        die(bench)
        bench.clock.advance(BACKOFF)
        assert take(bench, "single", free=1).items
    assert bench.job(job.id).state is S.RUNNING


def test_a_plan_that_got_further_has_no_deaths_behind_it(bench: Workbench) -> None:
    job = bench.submit("planned").job
    for number in range(4 * SUSPECT_DEATHS):
        brought = take(bench, "planned", free=1)
        assert brought.suspect_deaths == 0, f"a suspect after {number} deaths, with more rows after each"
        [held] = brought.items
        assert (held.role, held.attempt) == (ItemRole.PLAN, 1)
        bench.plan(held, [number])
        die(bench)
    assert bench.job(job.id).progress.total == 4 * SUSPECT_DEATHS
    for _ in range(SUSPECT_DEATHS - 1):
        assert take(bench, "planned", free=1).suspect_deaths == 0
        die(bench)
        bench.clock.advance(BACKOFF)
    assert take(bench, "planned", free=1).suspect_deaths == SUSPECT_DEATHS, "it does not get on any more"


def test_a_reprocess_begins_without_deaths(bench: Workbench) -> None:
    job = bench.submit("again").job
    held = until_suspect(bench, "again")
    bench.record([held], outcomes.failed("it crashed", "WORKER_CRASH", killed_by=KilledBy.WORKER_CRASH))
    assert bench.job(job.id).deaths == SUSPECT_DEATHS
    bench.store.write(lambda one: reprocess(one, bench.kinds.get("again"), job.id, SYSTEM))
    assert bench.job(job.id).deaths == 0
    brought = take(bench, "again", free=1)
    assert (len(brought.items), brought.careful) == (1, False)


def test_a_death_while_it_is_paused_or_after_a_cancel(bench: Workbench) -> None:
    paused, canceled = (bench.submit("bulk", items=[n]).job for n in (1, 2))
    bench.claim("bulk")
    bench.store.write(lambda one: control.pause(one, paused.id, SYSTEM))
    bench.store.write(lambda one: control.cancel(one, canceled.id, SYSTEM))
    assert die(bench) == 2
    assert (bench.job(paused.id).state, bench.job(canceled.id).state) == (S.PAUSED, S.CANCELED)
    assert bench.claim("bulk") == []
    bench.store.write(lambda one: control.resume(one, paused.id, SYSTEM))
    assert [(one.input, one.attempt) for one in bench.claim("bulk")] == [(1, 1)]


def test_followers_wait_on_while_the_worker_of_their_leader_dies(bench: Workbench) -> None:
    leader = bench.submit("single", unique_key="u", owner="ann").job
    follower = bench.submit("single", unique_key="u", owner="bob").job
    bench.claim("single")
    die(bench)
    assert bench.job(follower.id).state is S.RUNNING
    bench.record(bench.claim("single"), DONE)
    assert {bench.job(one.id).state for one in (leader, follower)} == {S.SUCCEEDED}


# Leases that ran out while nobody could write are not taken from workers that live.


class Sweeper:
    """A worker's sweeps, one when a test says so."""

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench
        self._last_look = LastLook(least_seconds=2.0)

    def pass_once(self) -> int:
        """One pass; the answer is how many leases it found expired."""
        return sweep(
            self._bench.store,
            self._bench.kinds,
            stale_seconds=NEVER_STALE,
            suspect_deaths=SUSPECT_DEATHS,
            last_look=self._last_look,
        ).leases_expired


def test_a_living_worker_has_the_time_until_the_next_sweep_to_renew(bench: Workbench) -> None:
    sweeper = Sweeper(bench)
    bench.submit("bulk", items=[1, 2])
    held = bench.claim("bulk", "alive", size=2)
    assert sweeper.pass_once() == 0
    bench.clock.advance(LEASE + 10)  # nobody could write
    assert sweeper.pass_once() == 0, "the sweep came first, and took what a living worker has in hand"
    assert bench.store.write(lambda one: extend(one, held[:1], LEASE)) == NotExtended()
    bench.clock.advance(5)
    assert sweeper.pass_once() == 1, "the other one was not renewed: its worker is gone"
    assert [one.item_id for one in bench.claim("bulk", "next")] == [held[1].item_id]


def test_a_first_sweep_knows_nothing_and_takes_nothing(bench: Workbench) -> None:
    bench.submit("single")
    bench.claim("single", "gone")
    bench.clock.advance(LEASE + 1)
    sweeper = Sweeper(bench)
    taken = []
    for _ in range(4):
        taken.append(sweeper.pass_once())
        bench.clock.advance(1)
    assert taken == [0, 0, 1, 0], "the second look was too early for a worker that beats every second"


def test_a_clock_that_is_set_back_lets_no_lease_run_out(bench: Workbench) -> None:
    sweeper = Sweeper(bench)
    sweeper.pass_once()
    bench.clock.advance(-3600)
    bench.submit("single")
    assert bench.claim("single", "alive")
    for _ in range(3):
        assert sweeper.pass_once() == 0, "the lease is good by the clock as it is now"
        bench.clock.advance(5)
    bench.clock.advance(LEASE)
    assert [sweeper.pass_once() for _ in range(2)] == [0, 0]
    bench.clock.advance(5)
    assert sweeper.pass_once() == 1


def test_a_single_pass_leaves_workers_of_this_machine_to_their_own(open_app: Callable[[], Penstock]) -> None:
    app = open_app()
    app.kind("k")(lambda item: 1)
    jobs = [app.submit("k", number).job for number in range(2)]
    presence = app.store.peers.settle("alive")
    assert presence is not None
    try:
        for name in ("alive", "gone"):
            claim(app.store, "k", name, size=1, lease_seconds=-1.0)
        assert app.system.sweep().leases_expired == 1
        by_worker = {app.items.list(job.id)[0].locked_by: app.items.list(job.id)[0].status for job in jobs}
        assert by_worker == {"alive": ItemStatus.PROCESSING, None: ItemStatus.PENDING}
    finally:
        presence.leave()
    assert app.system.sweep().leases_expired == 1


def test_a_workers_sweeps_are_such(store: Store, clock: ManualClock, tmp_path: Path) -> None:
    app = OnStore(store, tmp_path)
    app.kind("k")(lambda item: 1)
    job = app.submit("k", items=[1]).job
    claim(store, "k", "gone", size=1, lease_seconds=LEASE)
    worker = app.worker()
    seen = []
    for _ in range(3):
        clock.advance(LEASE)
        worker._sweep()
        seen.append(app.items.list(job.id)[0].status)
    assert seen == [ItemStatus.PROCESSING, ItemStatus.PROCESSING, ItemStatus.PENDING]
