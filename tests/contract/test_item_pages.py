"""Pages of items keep their promises while the items change, on every database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select

from penstock.errors import InvalidInput, JobNotFound
from penstock.lifecycle import outcomes
from penstock.lifecycle.callers import SYSTEM, owner
from penstock.lifecycle.job import ClaimedItem
from penstock.lifecycle.planned_item import Planned
from penstock.lifecycle.states import ACTIVE, ItemRole, ItemStatus
from penstock.operations import control
from penstock.operations.claim import claim
from penstock.operations.read_items import ItemCursor, ItemRow, TimeRange
from penstock.store.tables import job_items, jobs
from penstock.testing.drive import Workbench
from tests.on_store import OnStore

PENDING, PROCESSING, DONE = ItemStatus.PENDING, ItemStatus.PROCESSING, ItemStatus.DONE
OPEN = (PENDING, PROCESSING)
WELL = outcomes.done('{"ok":true}')
FAILED = outcomes.failed("no such thing", "NO")
LATER = outcomes.retried("later", "LATER", 5.0)
LONG = 60.0
"""Seconds after which a change is surely before a walk that begins then."""


@pytest.fixture
def eyes(bench: Workbench, tmp_path: Path) -> OnStore:
    """Looks at the store of the bench."""
    return OnStore(bench.store, tmp_path)


def bulk(bench: Workbench, count: int, *, kind: str = "bulk", **request: Any) -> UUID:
    """A job with so many items."""
    return bench.submit(kind, items=[{"title": f"row {n}"} for n in range(1, count + 1)], **request).job.id


def take(bench: Workbench, job_id: UUID, size: int, kind: str = "bulk") -> list[ClaimedItem]:
    """Claim items of this job, a second later."""
    bench.clock.advance(1)
    return list(claim(bench.store, kind, "w1", size=size, lease_seconds=1e6, job_id=job_id).items)


def end(bench: Workbench, held: Sequence[ClaimedItem], outcome: outcomes.Outcome) -> None:
    """Hand in an outcome for all of these, a second later."""
    bench.clock.advance(1)
    bench.record(held, outcome)


def pages(
    ask: Callable[[ItemCursor | None], list[ItemRow]], meanwhile: Callable[[], None] = lambda: None
) -> Iterator[list[ItemRow]]:
    """Page after page until one is empty; something may happen between two of them."""
    after: ItemCursor | None = None
    while page := ask(after):
        yield page
        after = page[-1].place
        meanwhile()


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
        self, bench: Workbench, eyes: OnStore, descending: bool
    ) -> None:
        job_id, other = bulk(bench, 60), bulk(bench, 3)
        meddler = Meddler(bench, job_id)
        walk = pages(
            lambda after: eyes.items.page(job_id, after=after, limit=7, descending=descending), meanwhile=meddler
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

    def test_a_job_without_items_has_an_empty_page(self, bench: Workbench, eyes: OnStore) -> None:
        job_id = bench.submit("planned").job.id
        assert len(bench.claim("planned")) == 1, "its plan step is a row too, but no item"
        assert eyes.items.page(job_id) == []
        assert eyes.items.page(job_id, descending=True) == []
        assert eyes.items.page(job_id, statuses=list(ItemStatus)) == []

    def test_behind_the_end_there_is_nothing(self, bench: Workbench, eyes: OnStore) -> None:
        job_id = bulk(bench, 3)
        assert eyes.items.page(job_id, after=ItemCursor(position=3)) == []
        assert eyes.items.page(job_id, after=ItemCursor(position=2**31 - 1)) == []
        assert eyes.items.page(job_id, after=ItemCursor(position=1), descending=True) == []

    @pytest.mark.parametrize("size", [0, -1, 1001])
    def test_a_page_size_out_of_bounds_is_refused(self, bench: Workbench, eyes: OnStore, size: int) -> None:
        job_id = bulk(bench, 3)
        questions: list[Callable[[], Any]] = [
            lambda: eyes.items.page(job_id, limit=size),
            lambda: eyes.items.page(job_id, limit=size, statuses=OPEN),
            lambda: eyes.items.pending(limit=size),
        ]
        for ask in questions:
            with pytest.raises(InvalidInput, match="1 to 1,000") as refused:
                ask()
            assert refused.value.field == "pageSize"

    def test_the_bounds_themselves_are_taken(self, bench: Workbench, eyes: OnStore) -> None:
        job_id = bulk(bench, 3)
        assert [len(eyes.items.page(job_id, limit=size)) for size in (1, 1000)] == [1, 3]

    def test_somebody_elses_job_is_not_there(self, bench: Workbench, eyes: OnStore) -> None:
        job_id = bulk(bench, 3, owner="ann")
        assert len(eyes.acting_as(owner("ann")).items.page(job_id)) == 3
        with pytest.raises(JobNotFound):
            eyes.acting_as(owner("bob")).items.page(job_id)
        with pytest.raises(JobNotFound):
            eyes.acting_as(owner("bob")).items.error_groups(job_id)


class TestByChange:
    def walk(
        self, eyes: OnStore, job_id: UUID, statuses: Sequence[ItemStatus] = OPEN, limit: int = 7
    ) -> Iterator[list[ItemRow]]:
        return pages(lambda after: eyes.items.page(job_id, statuses=statuses, after=after, limit=limit))

    @pytest.mark.parametrize("limit", [1, 7, 16, 50])
    def test_items_of_the_same_moment_are_neither_lost_nor_doubled(
        self, bench: Workbench, eyes: OnStore, limit: int
    ) -> None:
        job_id = bulk(bench, 33)
        seen = [row for page in self.walk(eyes, job_id, limit=limit) for row in page]
        assert len({row.updated_at for row in seen}) == 1, "they were to have changed at the same moment"
        assert [row.position for row in seen] == list(range(1, 34))

    def test_items_of_one_moment_in_several_statuses_are_merged_in_one_order(
        self, bench: Workbench, eyes: OnStore
    ) -> None:
        job_id = bulk(bench, 20)
        held = list(claim(bench.store, "bulk", "w1", size=10, lease_seconds=60, job_id=job_id).items)
        bench.hand_in([(one, WELL if n % 2 else FAILED) for n, one in enumerate(held)])
        wanted = (PENDING, DONE, ItemStatus.ERROR)
        seen = [row for page in self.walk(eyes, job_id, wanted, limit=3) for row in page]
        assert Counter(row.status for row in seen) == {PENDING: 10, DONE: 5, ItemStatus.ERROR: 5}
        assert [row.id for row in seen] == sorted(row.id for row in seen)

    def test_backwards_the_last_changed_come_first(self, bench: Workbench, eyes: OnStore) -> None:
        job_id = bulk(bench, 10)
        held = take(bench, job_id, 4)
        bench.clock.advance(LONG)
        back = pages(lambda after: eyes.items.page(job_id, statuses=OPEN, after=after, limit=3, descending=True))
        seen = [row for page in back for row in page]
        forth = [row for page in self.walk(eyes, job_id) for row in page]
        assert [row.id for row in seen] == [row.id for row in forth][::-1]
        assert {row.id for row in seen[:4]} == {one.item_id for one in held}

    def test_backwards_what_changes_meanwhile_comes_after_the_oldest(self, bench: Workbench, eyes: OnStore) -> None:
        job_id = bulk(bench, 10)
        bench.clock.advance(LONG)
        walk = pages(lambda after: eyes.items.page(job_id, statuses=OPEN, after=after, limit=4, descending=True))
        assert [row.position for row in next(walk)] == [10, 9, 8, 7]
        taken = take(bench, job_id, 2)
        rest = [row for page in walk for row in page]
        assert [row.position for row in rest] == [6, 5, 4, 3, 1, 2], "the two that were not reached yet have moved"
        assert [row.status for row in rest[-2:]] == [PROCESSING] * len(taken)

    def test_backwards_a_change_that_commits_late_is_not_missed(self, bench: Workbench, eyes: OnStore) -> None:
        """Its transaction stamped it before the walk began, and others saw it afterwards."""
        job_id = bulk(bench, 10)
        bench.clock.advance(LONG)
        walk = pages(lambda after: eyes.items.page(job_id, statuses=OPEN, after=after, limit=4, descending=True))
        assert [row.position for row in next(walk)] == [10, 9, 8, 7]
        bench.clock.advance(-3)
        take(bench, job_id, 1)
        assert [row.position for page in walk for row in page] == [6, 5, 4, 3, 2, 1]

    def test_backwards_what_changed_just_before_comes_twice_and_is_known_by_its_moment(
        self, bench: Workbench, eyes: OnStore
    ) -> None:
        job_id = bulk(bench, 4)
        bench.clock.advance(LONG)
        take(bench, job_id, 1)
        bench.clock.advance(1)
        walk = pages(lambda after: eyes.items.page(job_id, statuses=OPEN, after=after, limit=2, descending=True))
        seen = [row for page in walk for row in page]
        assert [row.position for row in seen] == [1, 4, 3, 2, 1]
        assert seen[0].updated_at == seen[-1].updated_at

    def test_backwards_a_place_made_by_hand_is_refused(self, bench: Workbench, eyes: OnStore) -> None:
        job_id = bulk(bench, 4)
        row = eyes.items.page(job_id, statuses=OPEN, limit=2, descending=True)[-1]
        by_hand = ItemCursor(row.updated_at, row.id)
        with pytest.raises(InvalidInput, match="place") as refused:
            eyes.items.page(job_id, statuses=OPEN, after=by_hand, descending=True)
        assert refused.value.field == "after"
        assert eyes.items.page(job_id, statuses=OPEN, after=by_hand, limit=1)[0].position == row.position + 1

    def test_one_that_changes_after_it_was_seen_comes_again_at_the_end(self, bench: Workbench, eyes: OnStore) -> None:
        job_id = bulk(bench, 10)
        walk = self.walk(eyes, job_id, limit=4)
        first = next(walk)
        taken = take(bench, job_id, 2)
        rest = [row for page in walk for row in page]
        assert [row.position for row in first] == [1, 2, 3, 4]
        assert [row.position for row in rest] == [5, 6, 7, 8, 9, 10, 1, 2]
        assert [row.status for row in rest[-2:]] == [PROCESSING] * len(taken)

    def test_one_that_leaves_the_statuses_before_it_is_reached_is_not_seen(
        self, bench: Workbench, eyes: OnStore
    ) -> None:
        job_id = bulk(bench, 10)
        held = take(bench, job_id, 5)
        walk = self.walk(eyes, job_id, limit=4)
        assert [row.position for row in next(walk)] == [6, 7, 8, 9]
        end(bench, held[:2], WELL)
        assert [row.position for page in walk for row in page] == [10, 3, 4, 5]

    def test_one_that_changes_before_it_is_reached_is_seen_once_at_its_new_place(
        self, bench: Workbench, eyes: OnStore
    ) -> None:
        job_id = bulk(bench, 10)
        held = take(bench, job_id, 5)
        walk = self.walk(eyes, job_id, limit=4)
        assert [row.position for row in next(walk)] == [6, 7, 8, 9]
        end(bench, held[:2], LATER)
        rest = [row for page in walk for row in page]
        assert [row.position for row in rest] == [10, 3, 4, 5, 1, 2]
        assert [row.status for row in rest[-2:]] == [PENDING, PENDING]

    def test_only_what_changed_between_two_moments(self, bench: Workbench, eyes: OnStore) -> None:
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
        found = [[row.position for row in eyes.items.page(job_id, between=one)] for one in asked]
        assert found == [[6, 7, 8, 9, 10], [3, 4, 5], [1, 2], [6, 7, 8, 9, 10, 3, 4, 5, 1, 2]]
        assert eyes.items.page(job_id, statuses=[PENDING], between=TimeRange(begun, begun)) == []

    def test_no_status_at_all_is_refused(self, bench: Workbench, eyes: OnStore) -> None:
        with pytest.raises(InvalidInput) as refused:
            eyes.items.page(bulk(bench, 1), statuses=[])
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
    eyes, job_id = OnStore(bench.store, Path()), bulk(bench, count)
    bench.clock.advance(LONG)
    status = {row.id: row.status for row in eyes.items.page(job_id)}
    stayed = {one for one, now in status.items() if now in wanted}
    changes: Counter[int] = Counter()
    held: list[ClaimedItem] = []
    seen: list[ItemRow] = []
    after: ItemCursor | None = None
    begun = False

    def read() -> int:
        nonlocal after, begun
        page = eyes.items.page(job_id, statuses=wanted, after=after, limit=limit, descending=descending)
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
    now = {row.id: row.updated_at for row in eyes.items.page(job_id) if row.status in wanted}
    assert now == {one: last_seen.get(one) for one in now}, "one that changed after it was seen did not come again"


class TestPending:
    def test_ones_own_everybodys_and_those_of_a_kind(self, bench: Workbench, eyes: OnStore) -> None:
        bulk(bench, 2, owner="ann")
        bulk(bench, 3, owner="bob")
        bulk(bench, 4, owner="ann", kind="again")
        bench.submit("single", {"title": "nobody's"})

        def counted(**asked: Any) -> Counter[tuple[str | None, str]]:
            walk = pages(lambda after: eyes.items.pending(after=after, limit=3, **asked))
            rows = [row for page in walk for row in page]
            assert len({row.id for row in rows}) == len(rows)
            return Counter((row.user_id, row.kind) for row in rows)

        assert counted(user="ann") == {("ann", "bulk"): 2, ("ann", "again"): 4}
        assert counted(user="ann", kind="again") == {("ann", "again"): 4}
        assert counted(kind="bulk") == {("ann", "bulk"): 2, ("bob", "bulk"): 3}
        assert counted() == {("ann", "bulk"): 2, ("bob", "bulk"): 3, ("ann", "again"): 4, (None, "single"): 1}
        assert counted(user="nobody") == counted(kind="nothing") == {}

    def test_nothing_at_all_is_an_empty_page(self, eyes: OnStore) -> None:
        assert eyes.items.pending() == []
        assert eyes.items.count_open() == {}

    def test_what_is_in_hand_is_there_and_what_is_over_is_not(self, bench: Workbench, eyes: OnStore) -> None:
        job_id = bulk(bench, 6, owner="ann")
        held = take(bench, job_id, 4)
        end(bench, held[:1], WELL)
        assert [(row.position, row.status) for row in eyes.items.pending(user="ann")] == [
            (5, PENDING), (6, PENDING), (2, PROCESSING), (3, PROCESSING), (4, PROCESSING),
        ]  # fmt: skip
        assert [row.position for row in eyes.items.pending(statuses=[PROCESSING])] == [2, 3, 4]
        assert [row.locked_by for row in eyes.items.pending(statuses=[PROCESSING])] == ["w1"] * 3
        assert [row.position for row in eyes.items.pending(statuses=[PENDING])] == [5, 6]

    def test_of_jobs_that_are_over_nothing_waits_of_paused_ones_it_does(self, bench: Workbench, eyes: OnStore) -> None:
        canceled, paused, flowing = (bulk(bench, 3, owner="ann") for _ in range(3))
        failed = bench.submit("planned", owner="ann").job.id
        [plan] = bench.claim("planned")
        bench.plan(plan, [{"n": 1}, {"n": 2}])
        bench.record([plan], FAILED)
        bench.store.write(lambda one: control.cancel(one, canceled, SYSTEM))
        bench.store.write(lambda one: control.pause(one, paused, SYSTEM))
        assert bench.job(failed).finished
        for found in (eyes.items.pending(), eyes.items.pending(user="ann")):
            assert Counter(row.job_id for row in found) == {paused: 3, flowing: 3}

    def test_between_two_moments(self, bench: Workbench, eyes: OnStore) -> None:
        bulk(bench, 2, owner="ann")
        bench.clock.advance(10)
        second = bench.clock.held()
        bulk(bench, 3, owner="ann")
        bench.clock.advance(10)
        third = bench.clock.held()
        bulk(bench, 4, owner="ann")
        asked = [TimeRange(latest=second), TimeRange(second, third), TimeRange(third)]
        for user in (None, "ann"):
            assert [len(eyes.items.pending(user=user, between=one)) for one in asked] == [2, 3, 4]

    @pytest.mark.parametrize("status", sorted(set(ItemStatus) - {PENDING, PROCESSING}))
    def test_what_is_over_cannot_be_asked_for(self, eyes: OnStore, status: ItemStatus) -> None:
        with pytest.raises(InvalidInput, match="PENDING or PROCESSING") as refused:
            eyes.items.pending(statuses=[PENDING, status])
        assert refused.value.field == "statuses"


class TestSummaries:
    @pytest.fixture(autouse=True)
    def kinds_have_a_summary(self, bench: Workbench) -> None:
        bench.store.item_summary = lambda: (("brand", ("brand",)), ("sku", ("sku", "gtin")))

    def test_without_kinds_that_say_more_there_is_a_title_alone(self, bench: Workbench, eyes: OnStore) -> None:
        bench.store.item_summary = tuple
        job_id = bench.submit("bulk", items=[{"title": "alone", "sku": "S"}]).job.id
        [row] = eyes.items.page(job_id)
        assert (row.summary.title, row.summary.more) == ("alone", {})

    def test_a_separator_in_a_text_does_not_move_the_next_one(self, bench: Workbench, eyes: OnStore) -> None:
        odd = {"title": "t", "brand": "a\x1fb", "sku": "c"}
        assert self.summaries(bench, eyes, [odd]) == [("t", "a b", "c")]

    def summaries(self, bench: Workbench, eyes: OnStore, items: Sequence[Any]) -> list[tuple[str | None, ...]]:
        job_id = bench.submit("bulk", items=items).job.id
        in_grid = [row.summary for row in eyes.items.page(job_id)]
        assert [row.summary for row in eyes.items.pending()] == in_grid
        return [(one.title, one.more["brand"], one.more["sku"]) for one in in_grid]

    def test_the_canonical_fields_go_before_the_input(self, bench: Workbench, eyes: OnStore) -> None:
        given_ = {"title": "raw", "brand": "Raw & Co", "sku": "R-1", "price": 3}
        assert self.summaries(
            bench,
            eyes,
            [
                Planned(given_, {"title": "Kettle", "brand": "Acme", "sku": "K-1"}),
                Planned(given_, {"title": "Kettle"}),
                Planned(given_),
                given_,
                {"name": "by name", "gtin": "4006381333931"},
                {"url": "https://example.org/a"},
            ],
        ) == [
            ("Kettle", "Acme", "K-1"),
            ("Kettle", "Raw & Co", "R-1"),
            ("raw", "Raw & Co", "R-1"),
            ("raw", "Raw & Co", "R-1"),
            ("by name", None, "4006381333931"),
            ("https://example.org/a", None, None),
        ]

    def test_an_input_of_another_shape_has_none(self, bench: Workbench, eyes: OnStore) -> None:
        odd: list[Any] = ["title", 7, 1.5, True, None, ["title"], {}, {"title": None}]
        assert self.summaries(bench, eyes, odd) == [(None, None, None)] * len(odd)

    def test_a_number_is_told_as_text(self, bench: Workbench, eyes: OnStore) -> None:
        assert self.summaries(bench, eyes, [{"title": 7, "sku": 4006381333931}]) == [("7", None, "4006381333931")]

    def test_it_is_cut_to_two_hundred_characters(self, bench: Workbench, eyes: OnStore) -> None:
        long = "é" * 500
        [(title, brand, sku)] = self.summaries(bench, eyes, [Planned({"title": long, "sku": long}, {"brand": long})])
        assert title == brand == sku == "é" * 200

    def test_a_single_steps_comes_from_its_params(self, bench: Workbench, eyes: OnStore) -> None:
        job_id = bench.submit("single", {"title": "one page", "sku": "S"}, owner="ann").job.id
        [row], [waiting] = eyes.items.page(job_id), eyes.items.pending(user="ann")
        assert (row.summary.title, row.summary.more) == ("one page", {"brand": None, "sku": "S"})
        assert waiting.summary == row.summary

    def test_a_huge_input_does_not_travel(self, bench: Workbench, eyes: OnStore) -> None:
        job_id = bench.submit("bulk", items=[{"title": "heavy", "text": "x" * 990_000}]).job.id
        [row] = eyes.items.page(job_id)
        assert row.summary.title == "heavy"
        assert "input" not in {one.name for one in fields(ItemRow)}
        assert len(repr(row)) < 1_000

    def test_the_grid_has_results_and_canonical_fields_and_the_waiting_list_has_not(
        self, bench: Workbench, eyes: OnStore
    ) -> None:
        job_id = bench.submit("bulk", items=[Planned({"n": 1}, {"title": "a"}), {"n": 2}]).job.id
        end(bench, take(bench, job_id, 1), WELL)
        rows = eyes.items.page(job_id)
        assert [(row.normalized, row.result) for row in rows] == [({"title": "a"}, {"ok": True}), (None, None)]
        assert eyes.items.page(job_id, statuses=[DONE])[0].result == {"ok": True}
        assert [(row.normalized, row.result) for row in eyes.items.pending()] == [(None, None)]


class TestCounting:
    def counted(self, bench: Workbench, user: str | None = None) -> dict[str, int]:
        """The same, by looking at every row."""
        asked = (
            select(job_items.c.kind, func.count())
            .join(jobs, jobs.c.id == job_items.c.job_id)
            .where(
                jobs.c.state.in_([one.value for one in ACTIVE]),
                job_items.c.status.in_([PENDING.value, PROCESSING.value]),
                job_items.c.role == ItemRole.ITEM.value,
            )
            .group_by(job_items.c.kind)
        )
        if user is not None:
            asked = asked.where(jobs.c.user_id == user)
        with bench.store.engine.connect() as connection:
            return {row.kind: row[1] for row in connection.execute(asked)}

    def test_open_counts_are_what_counting_would_say(self, bench: Workbench, eyes: OnStore) -> None:
        first, second, third = (bulk(bench, count, owner="ann") for count in (10, 7, 5))
        again = bulk(bench, 6, kind="again", owner="bob")
        bulk(bench, 4, kind="again", hold=True)
        bench.submit("single", {"n": 1}, owner="ann")
        bench.submit("single", {"n": 2}, owner="ann", unique_key="shared")
        bench.submit("single", {"n": 2}, owner="bob", unique_key="shared")
        held = take(bench, first, 6)
        bench.hand_in([(held[0], WELL), (held[1], FAILED), (held[2], LATER), (held[3], outcomes.released())])
        bench.hand_in([(held[4], outcomes.skipped("s", "S"))])
        end(bench, take(bench, again, 50, kind="again"), WELL)
        bench.store.write(lambda one: control.pause(one, second, SYSTEM))
        bench.store.write(lambda one: control.cancel(one, third, SYSTEM))
        expected = {"bulk": 7 + 7, "again": 4, "single": 2}
        assert eyes.items.count_open() == self.counted(bench) == expected
        assert eyes.items.count_open(user="ann") == self.counted(bench, "ann") == {"bulk": 14, "single": 2}
        assert eyes.items.count_open(user="bob") == self.counted(bench, "bob") == {}

    def test_a_kind_that_goes_on_with_nothing_left_is_named(self, bench: Workbench, eyes: OnStore) -> None:
        job_id = bulk(bench, 2)
        end(bench, take(bench, job_id, 2), WELL)
        assert not bench.job(job_id).finished, "its finalize step is still to come"
        assert eyes.items.count_open() == {"bulk": 0}

    def test_failures_are_grouped_by_status_and_code_the_most_frequent_first(
        self, bench: Workbench, eyes: OnStore
    ) -> None:
        job_id, other = bulk(bench, 12), bulk(bench, 2)
        held = take(bench, job_id, 12)
        missing, gone = outcomes.not_found("not there", "GONE"), outcomes.failed("it broke", "BROKEN")
        end(bench, held[:3], gone)
        end(bench, held[3:8], missing)
        end(bench, held[8:9], outcomes.failed("gone as well", "GONE"))
        end(bench, held[9:10], LATER)
        end(bench, held[10:], WELL)
        end(bench, take(bench, other, 2), gone)
        groups = eyes.items.error_groups(job_id)
        assert [(one.status, one.error_code, one.count, one.example) for one in groups] == [
            (ItemStatus.NOT_FOUND, "GONE", 5, "not there"),
            (ItemStatus.ERROR, "BROKEN", 3, "it broke"),
            (ItemStatus.ERROR, "GONE", 1, "gone as well"),
        ]
        assert eyes.items.error_groups(bulk(bench, 1)) == []
