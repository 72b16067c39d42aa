"""How long items have waited or run, and how many leases have expired."""

from __future__ import annotations

from penstock.testing.drive import LEASE, Workbench
from tests.on_store import OnStore


def test_the_oldest_items_and_expired_leases_are_known(bench: Workbench, bench_app: OnStore) -> None:
    bench.submit("single", 1)
    bench.submit("bulk", items=[1, 2, 3])
    bench.clock.advance(10)
    bench.submit("single", 2)
    bench.claim("bulk", size=1)
    bench.clock.advance(5)
    ages = bench_app.system.ages()
    assert ages.waiting == {"single": 15.0, "bulk": 15.0}
    assert ages.running == {"bulk": 5.0}
    assert ages.expired_leases == 0
    bench.clock.advance(LEASE)
    assert bench_app.system.ages().expired_leases == 1
    bench.sweep()
    assert bench_app.system.ages().expired_leases == 0
