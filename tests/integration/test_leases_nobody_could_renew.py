"""Leases that ran out while nobody could write are not taken from workers that live."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from penstock import ItemStatus, Penstock
from penstock.clock import ManualClock
from penstock.operations.claim import claim
from penstock.operations.heartbeat import NotExtended, extend
from penstock.operations.maintenance import LastLook, sweep
from penstock.store.engine import Store
from penstock.testing.drive import LEASE, NEVER_STALE, SUSPECT_DEATHS, Workbench
from tests.on_store import OnStore
from tests.properties.engine_kinds import engine_kinds


@pytest.fixture
def bench(store: Store) -> Workbench:
    assert isinstance(store.clock, ManualClock)
    return Workbench(store, store.clock, engine_kinds())


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


def test_a_workers_sweeps_are_such(store: Store, tmp_path: Path) -> None:
    assert isinstance(store.clock, ManualClock)
    app = OnStore(store, tmp_path)
    app.kind("k")(lambda item: 1)
    job = app.submit("k", items=[1]).job
    claim(store, "k", "gone", size=1, lease_seconds=LEASE)
    worker = app.worker()
    seen = []
    for _ in range(3):
        store.clock.advance(LEASE)
        worker._sweep()
        seen.append(app.items.list(job.id)[0].status)
    assert seen == [ItemStatus.PROCESSING, ItemStatus.PROCESSING, ItemStatus.PENDING]
