"""Which items a worker gets, in which order, and when it should come again."""

from __future__ import annotations

import pytest

from penstock.lifecycle import outcomes
from penstock.lifecycle.callers import SYSTEM
from penstock.lifecycle.states import Actor, JobState, Phase
from penstock.operations import control
from penstock.operations.claim import claim
from penstock.store.engine import Store, open_store
from penstock.testing.drive import LEASE, Workbench
from tests.conformance.databases import Database
from tests.conformance.steps import DONE, RETRIED, history

pytestmark = pytest.mark.usefixtures("rows_are_true_in_the_end")


def test_a_small_job_is_served_though_a_large_one_came_first(bench: Workbench) -> None:
    large = bench.submit("bulk", items=list(range(10_000))).job
    bench.clock.advance(1)
    assert {one.job_id for one in bench.claim("bulk", size=10)} == {large.id}
    small = bench.submit("bulk", items=["one"]).job
    bench.clock.advance(1)
    served = bench.claim("bulk", size=10)
    assert [one.job_id for one in served].count(small.id) == 1
    assert [one.job_id for one in served].count(large.id) >= 5


def test_those_who_waited_longest_come_first(bench: Workbench) -> None:
    order = []
    for _ in range(3):
        order.append(bench.submit("bulk", items=[1, 2, 3]).job.id)
        bench.clock.advance(1)
    served = []
    for _ in range(6):
        served += [one.job_id for one in bench.claim("bulk", size=1)]
        bench.clock.advance(1)
    assert served == order * 2


def test_a_due_job_is_found_beside_a_higher_priority_that_is_not_due(bench: Workbench) -> None:
    """A lane that has seen an empty queue meets two new priorities: the higher one waits for its next try."""
    assert bench.claim("single", "w1") == []
    urgent = bench.submit("single", priority=5).job
    [item] = bench.claim("single", "w2")
    bench.record([item], RETRIED, "w2")
    ordinary = bench.submit("single", priority=0).job
    assert [item.job_id for item in bench.claim("single", "w1")] == [ordinary.id]
    assert bench.job(urgent.id).state is JobState.RETRYING


def test_a_job_of_which_nothing_is_taken_keeps_its_turn(bench: Workbench) -> None:
    """What came back from one job fills the claim: the other was looked at, and nothing of it changes."""
    first, second = (bench.submit("bulk", items=items).job for items in ([1, 2], [3]))
    for item in sorted(bench.claim("bulk", size=4), key=lambda item: item.input):
        bench.record([item], RETRIED)
        bench.clock.advance(1)
    bench.clock.advance(60)
    before = bench.job(second.id)
    assert {item.job_id for item in bench.claim("bulk", size=2)} == {first.id}
    assert bench.job(second.id) == before
    assert [item.job_id for item in bench.claim("bulk", size=2)] == [second.id]


def test_a_higher_priority_comes_first(bench: Workbench) -> None:
    ids = {}
    for priority in (0, 5, -5):
        ids[priority] = bench.submit("single", priority=priority).job.id
        bench.clock.advance(1)
    served = [bench.claim("single", size=1)[0].job_id for _ in range(3)]
    assert served == [ids[5], ids[0], ids[-5]]


def test_another_kind_is_not_touched(bench: Workbench) -> None:
    bench.submit("single")
    assert bench.claim("again") == []


def test_a_claim_says_when_to_come_again(bench: Workbench) -> None:
    def wait() -> float | None:
        return claim(bench.store, "single", "w1", size=5, lease_seconds=LEASE).wait

    assert wait() is None
    bench.submit("single")
    bench.record(bench.claim("single"), RETRIED)
    bench.clock.advance(2)
    assert wait() == 3.0
    bench.clock.advance(3)
    assert len(bench.claim("single")) == 1


def test_more_to_hand_out_means_come_at_once(bench: Workbench) -> None:
    bench.submit("bulk", items=[1, 2, 3])
    brought = claim(bench.store, "bulk", "w1", size=2, lease_seconds=LEASE)
    assert (len(brought.items), brought.wait) == (2, 0.0)


def test_what_came_back_goes_before_what_is_fresh(bench: Workbench) -> None:
    bench.submit("bulk", items=[1, 2, 3])
    bench.record(bench.claim("bulk", size=1), outcomes.released())
    assert bench.claim("bulk", size=1)[0].position == 1


def test_starting_is_told_once_for_each_run(bench: Workbench) -> None:
    job = bench.submit("bulk", items=[1, 2, 3]).job
    bench.claim("bulk", "w7", size=1)
    bench.claim("bulk", "w8", size=1)
    assert bench.states(job.id) == ["queued", "running"]
    line = history(bench, job.id)[-1]
    assert (line.actor, line.actor_id) == (Actor.WORKER, "w7")
    assert (bench.job(job.id).phase, bench.job(job.id).attempts) == (Phase.PROCESSING, 1)


def test_a_real_clock_claims_and_expires_by_the_databases_time(bench: Workbench, database: Database) -> None:
    """All others hold the clock; this one lets the database say what time it is."""
    url = bench.store.engine.url.render_as_string(hide_password=False)
    store = open_store(url) if database.is_shared else Store(bench.store.engine)
    real = Workbench(store, bench.clock, bench.kinds)
    job = real.submit("bulk", items=[1]).job
    held = real.claim("bulk", lease=0.0)
    assert real.claim("bulk") == []
    rescued = 0
    while not rescued:  # a millisecond at most
        rescued = real.sweep().leases_expired
    assert real.record(held, DONE) == frozenset()
    moved = real.job(job.id).updated_at - real.job(job.id).created_at
    assert 0 <= moved.total_seconds() < 60
    real.store.write(lambda one: control.cancel(one, job.id, SYSTEM))
    store.rest()
    if store.engine is not bench.store.engine:
        store.close()
