"""Outcomes are written behind the fence of their lease, each once."""

from __future__ import annotations

import pytest

from penstock.lifecycle import outcomes
from penstock.lifecycle.callers import worker
from penstock.lifecycle.states import ItemStatus
from penstock.operations import heartbeat
from penstock.operations.record import LeaseLost, record
from penstock.testing.drive import LEASE, Workbench, item_result
from tests.conformance.steps import DONE, FAILED, RETRIED, items, write

pytestmark = pytest.mark.usefixtures("rows_are_true_in_the_end")


def test_every_outcome_is_counted(bench: Workbench) -> None:
    job = bench.submit("bulk", items=list(range(6))).job
    held = bench.claim("bulk")
    dialect = [DONE, FAILED, RETRIED, outcomes.not_found("n", "N"), outcomes.skipped("s", "S"), outcomes.released()]
    assert len(bench.hand_in(list(zip(held, dialect, strict=True)))) == 6
    progress = bench.job(job.id).progress
    assert (progress.total, progress.processed, progress.failed, progress.not_found, progress.skipped) == (
        6, 4, 1, 1, 1,
    )  # fmt: skip
    assert progress.done == 1
    assert [one.status for one in items(bench, job.id)] == [
        ItemStatus.DONE, ItemStatus.ERROR, ItemStatus.PENDING, ItemStatus.NOT_FOUND, ItemStatus.SKIPPED,
        ItemStatus.PENDING,
    ]  # fmt: skip
    assert [one.attempts for one in items(bench, job.id)] == [1, 1, 1, 1, 1, 0]


def test_a_slice_thought_to_be_all_ours_lands_whole_or_not_at_all(bench: Workbench) -> None:
    job = bench.submit("bulk", items=[1, 2, 3]).job
    held = bench.claim("bulk", "w1", lease=10)
    slice_of = [item_result(one, DONE) for one in held]
    bench.clock.advance(5)
    bench.store.write(lambda one: heartbeat.extend(one, held[1:], 100.0))
    bench.clock.advance(6)
    bench.sweep()
    bench.clock.advance(60)
    [again] = bench.claim("bulk", "w2", lease=100)
    with pytest.raises(LeaseLost):
        write(bench, record, slice_of, worker("w1"), all_ours=True)
    assert bench.job(job.id).progress.processed == 0
    assert {one.status for one in items(bench, job.id)} == {ItemStatus.PROCESSING}
    assert write(bench, record, slice_of, worker("w1")) == {one.item_id for one in held[1:]}
    assert write(bench, record, [item_result(again, DONE)], worker("w2"), all_ours=True) == {again.item_id}
    assert bench.job(job.id).progress.processed == 3


def test_a_late_outcome_changes_nothing(bench: Workbench) -> None:
    job = bench.submit("bulk", items=[1]).job
    late = bench.claim("bulk", "w1")
    bench.clock.advance(LEASE + 1)
    bench.sweep()
    bench.clock.advance(5)
    current = bench.claim("bulk", "w2")
    assert [one.item_id for one in current] == [one.item_id for one in late]
    assert bench.record(late, DONE, "w1") == frozenset()
    assert items(bench, job.id)[0].status is ItemStatus.PROCESSING
    assert bench.record(current, FAILED, "w2") == {current[0].item_id}
    assert items(bench, job.id)[0].status is ItemStatus.ERROR


def test_a_lost_try_and_the_present_one_in_one_batch_count_once(bench: Workbench) -> None:
    job = bench.submit("bulk", items=[1, 2]).job
    lost = bench.claim("bulk", size=1)
    bench.clock.advance(LEASE + 1)
    bench.sweep()
    bench.clock.advance(5)
    present = bench.claim("bulk", size=1)
    bench.hand_in([(lost[0], DONE), (present[0], FAILED), (lost[0], DONE), (present[0], FAILED)])
    progress = bench.job(job.id).progress
    assert (progress.processed, progress.failed, items(bench, job.id)[0].status) == (1, 1, ItemStatus.ERROR)


def test_the_same_outcome_twice_lands_once(bench: Workbench) -> None:
    bench.submit("bulk", items=[1, 2])
    held = bench.claim("bulk", size=1)
    assert bench.record(held, DONE)
    assert bench.record(held, DONE) == frozenset()


def test_a_worker_past_its_lease_keeps_the_item_until_somebody_takes_it(bench: Workbench) -> None:
    bench.submit("bulk", items=[1])
    held = bench.claim("bulk")
    bench.clock.advance(LEASE + 1)
    assert bench.record(held, DONE) == {held[0].item_id}
