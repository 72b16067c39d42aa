"""Pages of items keep their promises while the items change, on every database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.errors import InvalidInput, JobNotFound
from penstock.lifecycle import outcomes
from penstock.lifecycle.callers import owner
from penstock.lifecycle.job import ClaimedItem
from penstock.lifecycle.states import ItemRole, ItemStatus
from penstock.operations.claim import claim
from penstock.operations.read_items import ItemCursor, ItemRow, TimeRange
from penstock.testing.drive import Workbench
from tests.conformance.item_pages import (
    DONE,
    FAILED,
    LATER,
    LONG,
    OPEN,
    PENDING,
    PROCESSING,
    WELL,
    bulk,
    end,
    pages,
    take,
)
from tests.on_store import OnStore


class Meddler:
    """Claims, finishes, puts off and hands back a few items each time, always in the same way."""

    def __init__(self, bench: Workbench, job_id: UUID) -> None:
        self._bench = bench
        self._job_id = job_id
        self.changed = 0

    def __call__(self) -> None:
        held = take(self._bench, self._job_id, 5)
        for number, one in enumerate(held):
            end(self._bench, [one], (WELL, LATER, FAILED, outcomes.released())[number % 4])
        self.changed += len(held)


class TestByPosition:
    @pytest.mark.parametrize("descending", [False, True])
    def test_every_row_is_seen_once_whatever_happens_meanwhile(
        self, bench: Workbench, bench_app: OnStore, descending: bool
    ) -> None:
        job_id, other = bulk(bench, 60), bulk(bench, 3)
        meddler = Meddler(bench, job_id)
        walk = pages(
            lambda after: bench_app.items.page(job_id, after=after, limit=7, descending=descending), meanwhile=meddler
        )
        sizes, seen = [], []
        for page in walk:
            sizes.append(len(page))
            seen += page
        expected = list(range(1, 61))
        assert [row.position for row in seen] == (expected[::-1] if descending else expected)
        assert sizes == [7] * 8 + [4]
        assert meddler.changed > 30, "nothing was changed during the walk: it proves nothing"
        assert {row.job_id for row in seen} == {job_id}
        assert other not in {row.job_id for row in seen}

    def test_a_job_without_items_has_an_empty_page(self, bench: Workbench, bench_app: OnStore) -> None:
        job_id = bench.submit("planned").job.id
        assert len(bench.claim("planned")) == 1, "its plan step is a row too, but no item"
        assert bench_app.items.page(job_id) == []
        assert bench_app.items.page(job_id, descending=True) == []
        assert bench_app.items.page(job_id, statuses=list(ItemStatus)) == []

    def test_behind_the_end_there_is_nothing(self, bench: Workbench, bench_app: OnStore) -> None:
        job_id = bulk(bench, 3)
        assert bench_app.items.page(job_id, after=ItemCursor(position=3)) == []
        assert bench_app.items.page(job_id, after=ItemCursor(position=2**31 - 1)) == []
        assert bench_app.items.page(job_id, after=ItemCursor(position=1), descending=True) == []

    @pytest.mark.parametrize("size", [0, -1, 1001])
    def test_a_page_size_out_of_bounds_is_refused(self, bench: Workbench, bench_app: OnStore, size: int) -> None:
        job_id = bulk(bench, 3)
        questions: list[Callable[[], Any]] = [
            lambda: bench_app.items.page(job_id, limit=size),
            lambda: bench_app.items.page(job_id, limit=size, statuses=OPEN),
            lambda: bench_app.items.pending(limit=size),
        ]
        for ask in questions:
            with pytest.raises(InvalidInput, match="1 to 1,000") as refused:
                ask()
            assert refused.value.field == "pageSize"

    def test_the_bounds_themselves_are_taken(self, bench: Workbench, bench_app: OnStore) -> None:
        job_id = bulk(bench, 3)
        assert [len(bench_app.items.page(job_id, limit=size)) for size in (1, 1000)] == [1, 3]

    def test_somebody_elses_job_is_not_there(self, bench: Workbench, bench_app: OnStore) -> None:
        job_id = bulk(bench, 3, owner="ann")
        assert len(bench_app.acting_as(owner("ann")).items.page(job_id)) == 3
        with pytest.raises(JobNotFound):
            bench_app.acting_as(owner("bob")).items.page(job_id)
        with pytest.raises(JobNotFound):
            bench_app.acting_as(owner("bob")).items.error_groups(job_id)


class TestByChange:
    def walk(
        self, bench_app: OnStore, job_id: UUID, statuses: Sequence[ItemStatus] = OPEN, limit: int = 7
    ) -> Iterator[list[ItemRow]]:
        return pages(lambda after: bench_app.items.page(job_id, statuses=statuses, after=after, limit=limit))

    @pytest.mark.parametrize("limit", [1, 7, 16, 50])
    def test_items_of_the_same_moment_are_neither_lost_nor_doubled(
        self, bench: Workbench, bench_app: OnStore, limit: int
    ) -> None:
        job_id = bulk(bench, 33)
        seen = [row for page in self.walk(bench_app, job_id, limit=limit) for row in page]
        assert len({row.updated_at for row in seen}) == 1, "they were to have changed at the same moment"
        assert [row.position for row in seen] == list(range(1, 34))

    def test_items_of_one_moment_in_several_statuses_are_merged_in_one_order(
        self, bench: Workbench, bench_app: OnStore
    ) -> None:
        job_id = bulk(bench, 20)
        held = list(claim(bench.store, "bulk", "w1", size=10, lease_seconds=60, job_id=job_id).items)
        bench.hand_in([(one, WELL if n % 2 else FAILED) for n, one in enumerate(held)])
        wanted = (PENDING, DONE, ItemStatus.ERROR)
        seen = [row for page in self.walk(bench_app, job_id, wanted, limit=3) for row in page]
        assert Counter(row.status for row in seen) == {PENDING: 10, DONE: 5, ItemStatus.ERROR: 5}
        assert [row.id for row in seen] == sorted(row.id for row in seen)

    def test_backwards_the_last_changed_come_first(self, bench: Workbench, bench_app: OnStore) -> None:
        job_id = bulk(bench, 10)
        held = take(bench, job_id, 4)
        bench.clock.advance(LONG)
        back = pages(lambda after: bench_app.items.page(job_id, statuses=OPEN, after=after, limit=3, descending=True))
        seen = [row for page in back for row in page]
        forth = [row for page in self.walk(bench_app, job_id) for row in page]
        assert [row.id for row in seen] == [row.id for row in forth][::-1]
        assert {row.id for row in seen[:4]} == {one.item_id for one in held}

    def test_backwards_what_changes_meanwhile_comes_after_the_oldest(
        self, bench: Workbench, bench_app: OnStore
    ) -> None:
        job_id = bulk(bench, 10)
        bench.clock.advance(LONG)
        walk = pages(lambda after: bench_app.items.page(job_id, statuses=OPEN, after=after, limit=4, descending=True))
        assert [row.position for row in next(walk)] == [10, 9, 8, 7]
        taken = take(bench, job_id, 2)
        rest = [row for page in walk for row in page]
        assert [row.position for row in rest] == [6, 5, 4, 3, 1, 2], "the two that were not reached yet have moved"
        assert [row.status for row in rest[-2:]] == [PROCESSING] * len(taken)

    def test_backwards_a_change_that_commits_late_is_not_missed(self, bench: Workbench, bench_app: OnStore) -> None:
        """Its transaction stamped it before the walk began, and others saw it afterwards."""
        job_id = bulk(bench, 10)
        bench.clock.advance(LONG)
        walk = pages(lambda after: bench_app.items.page(job_id, statuses=OPEN, after=after, limit=4, descending=True))
        assert [row.position for row in next(walk)] == [10, 9, 8, 7]
        bench.clock.advance(-3)
        take(bench, job_id, 1)
        assert [row.position for page in walk for row in page] == [6, 5, 4, 3, 2, 1]

    def test_backwards_what_changed_just_before_comes_twice_and_is_known_by_its_moment(
        self, bench: Workbench, bench_app: OnStore
    ) -> None:
        job_id = bulk(bench, 4)
        bench.clock.advance(LONG)
        take(bench, job_id, 1)
        bench.clock.advance(1)
        walk = pages(lambda after: bench_app.items.page(job_id, statuses=OPEN, after=after, limit=2, descending=True))
        seen = [row for page in walk for row in page]
        assert [row.position for row in seen] == [1, 4, 3, 2, 1]
        assert seen[0].updated_at == seen[-1].updated_at

    def test_backwards_a_place_made_by_hand_is_refused(self, bench: Workbench, bench_app: OnStore) -> None:
        job_id = bulk(bench, 4)
        row = bench_app.items.page(job_id, statuses=OPEN, limit=2, descending=True)[-1]
        by_hand = ItemCursor(row.updated_at, row.id)
        with pytest.raises(InvalidInput, match="place") as refused:
            bench_app.items.page(job_id, statuses=OPEN, after=by_hand, descending=True)
        assert refused.value.field == "after"
        assert bench_app.items.page(job_id, statuses=OPEN, after=by_hand, limit=1)[0].position == row.position + 1

    def test_one_that_changes_after_it_was_seen_comes_again_at_the_end(
        self, bench: Workbench, bench_app: OnStore
    ) -> None:
        job_id = bulk(bench, 10)
        walk = self.walk(bench_app, job_id, limit=4)
        first = next(walk)
        taken = take(bench, job_id, 2)
        rest = [row for page in walk for row in page]
        assert [row.position for row in first] == [1, 2, 3, 4]
        assert [row.position for row in rest] == [5, 6, 7, 8, 9, 10, 1, 2]
        assert [row.status for row in rest[-2:]] == [PROCESSING] * len(taken)

    def test_one_that_leaves_the_statuses_before_it_is_reached_is_not_seen(
        self, bench: Workbench, bench_app: OnStore
    ) -> None:
        job_id = bulk(bench, 10)
        held = take(bench, job_id, 5)
        walk = self.walk(bench_app, job_id, limit=4)
        assert [row.position for row in next(walk)] == [6, 7, 8, 9]
        end(bench, held[:2], WELL)
        assert [row.position for page in walk for row in page] == [10, 3, 4, 5]

    def test_one_that_changes_before_it_is_reached_is_seen_once_at_its_new_place(
        self, bench: Workbench, bench_app: OnStore
    ) -> None:
        job_id = bulk(bench, 10)
        held = take(bench, job_id, 5)
        walk = self.walk(bench_app, job_id, limit=4)
        assert [row.position for row in next(walk)] == [6, 7, 8, 9]
        end(bench, held[:2], LATER)
        rest = [row for page in walk for row in page]
        assert [row.position for row in rest] == [10, 3, 4, 5, 1, 2]
        assert [row.status for row in rest[-2:]] == [PENDING, PENDING]

    def test_only_what_changed_between_two_moments(self, bench: Workbench, bench_app: OnStore) -> None:
        job_id = bulk(bench, 10)
        begun = bench.clock.held()
        held = take(bench, job_id, 5)
        taken_at = bench.clock.held()
        end(bench, held[:2], WELL)
        asked = [
            TimeRange(latest=taken_at),
            TimeRange(taken_at, bench.clock.held()),
            TimeRange(bench.clock.held()),
            TimeRange(),
        ]
        found = [[row.position for row in bench_app.items.page(job_id, between=one)] for one in asked]
        assert found == [[6, 7, 8, 9, 10], [3, 4, 5], [1, 2], [6, 7, 8, 9, 10, 3, 4, 5, 1, 2]]
        assert bench_app.items.page(job_id, statuses=[PENDING], between=TimeRange(begun, begun)) == []

    def test_no_status_at_all_is_refused(self, bench: Workbench, bench_app: OnStore) -> None:
        with pytest.raises(InvalidInput) as refused:
            bench_app.items.page(bulk(bench, 1), statuses=[])
        assert refused.value.field == "statuses"


STEPS = st.lists(
    st.tuples(st.sampled_from(["read", "take", "done", "failed", "later", "released"]), st.integers(1, 6)), max_size=25
)
WANTED = st.sampled_from([(PENDING,), (PROCESSING,), OPEN, (PENDING, PROCESSING, DONE), tuple(ItemStatus)])
OUTCOMES = {"done": WELL, "failed": FAILED, "later": LATER, "released": outcomes.released()}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS, wanted=WANTED, count=st.integers(0, 20), limit=st.integers(1, 8), descending=st.booleans())
def test_no_item_slips_past_a_walk(
    bench: Workbench,
    steps: list[tuple[str, int]],
    wanted: tuple[ItemStatus, ...],
    count: int,
    limit: int,
    descending: bool,
) -> None:
    """Each example is a job of its own: pages are read and items change in any order, then the walk goes to its end."""
    bench_app, job_id = OnStore(bench.store, Path()), bulk(bench, count)
    bench.clock.advance(LONG)
    status = {row.id: row.status for row in bench_app.items.page(job_id)}
    stayed = {one for one, now in status.items() if now in wanted}
    changes: Counter[int] = Counter()
    held: list[ClaimedItem] = []
    seen: list[ItemRow] = []
    after: ItemCursor | None = None
    begun = False

    def read() -> int:
        nonlocal after, begun
        page = bench_app.items.page(job_id, statuses=wanted, after=after, limit=limit, descending=descending)
        begun = begun or bool(page)
        assert all(row.status is status[row.id] for row in page), "each is seen in the state it has"
        seen.extend(page)
        after = page[-1].place if page else after
        return len(page)

    def changed(some: Sequence[ClaimedItem], now: ItemStatus) -> None:
        if not begun:
            bench.clock.advance(LONG)
        for one in some:
            status[one.item_id] = now
            changes[one.item_id] += 1
        stayed.difference_update(one.item_id for one in some if now not in wanted)

    for what, size in steps:
        if what == "read":
            read()
        elif what == "take":
            taken = [one for one in take(bench, job_id, size) if one.role is ItemRole.ITEM]
            held += taken
            changed(taken, PROCESSING)
        elif held:
            some, held = held[:size], held[size:]
            end(bench, some, OUTCOMES[what])
            changed(some, OUTCOMES[what].status)
    while read():
        pass

    times = Counter(row.id for row in seen)
    assert {row.status for row in seen} <= set(wanted)
    assert stayed <= times.keys(), "one that was always among them was not seen"
    assert all(times[one] == 1 for one in stayed if not changes[one]), "an unchanged one was not seen exactly once"
    assert all(number <= 1 + changes[one] for one, number in times.items()), "one came again without a change"
    last_seen = {row.id: row.updated_at for row in seen}
    now = {row.id: row.updated_at for row in bench_app.items.page(job_id) if row.status in wanted}
    assert now == {one: last_seen.get(one) for one in now}, "one that changed after it was seen did not come again"
