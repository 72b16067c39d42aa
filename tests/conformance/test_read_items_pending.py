"""What waits, of one user or of all; how an item is summed up; how many there are, and what they failed with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import pytest
from sqlalchemy import func, select

from penstock.errors import InvalidInput
from penstock.lifecycle import outcomes
from penstock.lifecycle.callers import SYSTEM
from penstock.lifecycle.planned_item import Planned
from penstock.lifecycle.states import ACTIVE, ItemRole, ItemStatus
from penstock.operations import control
from penstock.operations.read_items import ItemRow, TimeRange
from penstock.store.tables import job_items, jobs
from penstock.testing.drive import Workbench
from tests.conformance.item_pages import DONE, FAILED, LATER, PENDING, PROCESSING, WELL, bulk, end, pages, take
from tests.on_store import OnStore


class TestPending:
    def test_ones_own_everybodys_and_those_of_a_kind(self, bench: Workbench, bench_app: OnStore) -> None:
        bulk(bench, 2, owner="ann")
        bulk(bench, 3, owner="bob")
        bulk(bench, 4, owner="ann", kind="again")
        bench.submit("single", {"title": "nobody's"})

        def counted(**asked: Any) -> Counter[tuple[str | None, str]]:
            walk = pages(lambda after: bench_app.items.pending(after=after, limit=3, **asked))
            rows = [row for page in walk for row in page]
            assert len({row.id for row in rows}) == len(rows)
            return Counter((row.user_id, row.kind) for row in rows)

        assert counted(user="ann") == {("ann", "bulk"): 2, ("ann", "again"): 4}
        assert counted(user="ann", kind="again") == {("ann", "again"): 4}
        assert counted(kind="bulk") == {("ann", "bulk"): 2, ("bob", "bulk"): 3}
        assert counted() == {("ann", "bulk"): 2, ("bob", "bulk"): 3, ("ann", "again"): 4, (None, "single"): 1}
        assert counted(user="nobody") == counted(kind="nothing") == {}

    def test_nothing_at_all_is_an_empty_page(self, bench_app: OnStore) -> None:
        assert bench_app.items.pending() == []
        assert bench_app.items.count_open() == {}

    def test_what_is_in_hand_is_there_and_what_is_over_is_not(self, bench: Workbench, bench_app: OnStore) -> None:
        job_id = bulk(bench, 6, owner="ann")
        held = take(bench, job_id, 4)
        end(bench, held[:1], WELL)
        assert [(row.position, row.status) for row in bench_app.items.pending(user="ann")] == [
            (5, PENDING), (6, PENDING), (2, PROCESSING), (3, PROCESSING), (4, PROCESSING),
        ]  # fmt: skip
        assert [row.position for row in bench_app.items.pending(statuses=[PROCESSING])] == [2, 3, 4]
        assert [row.locked_by for row in bench_app.items.pending(statuses=[PROCESSING])] == ["w1"] * 3
        assert [row.position for row in bench_app.items.pending(statuses=[PENDING])] == [5, 6]

    def test_of_jobs_that_are_over_nothing_waits_of_paused_ones_it_does(
        self, bench: Workbench, bench_app: OnStore
    ) -> None:
        canceled, paused, flowing = (bulk(bench, 3, owner="ann") for _ in range(3))
        failed = bench.submit("planned", owner="ann").job.id
        [plan] = bench.claim("planned")
        bench.plan(plan, [{"n": 1}, {"n": 2}])
        bench.record([plan], FAILED)
        bench.store.write(lambda one: control.cancel(one, canceled, SYSTEM))
        bench.store.write(lambda one: control.pause(one, paused, SYSTEM))
        assert bench.job(failed).finished
        for found in (bench_app.items.pending(), bench_app.items.pending(user="ann")):
            assert Counter(row.job_id for row in found) == {paused: 3, flowing: 3}

    def test_between_two_moments(self, bench: Workbench, bench_app: OnStore) -> None:
        bulk(bench, 2, owner="ann")
        bench.clock.advance(10)
        second = bench.clock.held()
        bulk(bench, 3, owner="ann")
        bench.clock.advance(10)
        third = bench.clock.held()
        bulk(bench, 4, owner="ann")
        asked = [TimeRange(latest=second), TimeRange(second, third), TimeRange(third)]
        for user in (None, "ann"):
            assert [len(bench_app.items.pending(user=user, between=one)) for one in asked] == [2, 3, 4]

    @pytest.mark.parametrize("status", sorted(set(ItemStatus) - {PENDING, PROCESSING}))
    def test_what_is_over_cannot_be_asked_for(self, bench_app: OnStore, status: ItemStatus) -> None:
        with pytest.raises(InvalidInput, match="PENDING or PROCESSING") as refused:
            bench_app.items.pending(statuses=[PENDING, status])
        assert refused.value.field == "statuses"


class TestSummaries:
    @pytest.fixture(autouse=True)
    def kinds_have_a_summary(self, bench: Workbench) -> None:
        bench.store.item_summary = lambda: (("brand", ("brand",)), ("sku", ("sku", "gtin")))

    def test_without_kinds_that_say_more_there_is_a_title_alone(self, bench: Workbench, bench_app: OnStore) -> None:
        bench.store.item_summary = tuple
        job_id = bench.submit("bulk", items=[{"title": "alone", "sku": "S"}]).job.id
        [row] = bench_app.items.page(job_id)
        assert (row.summary.title, row.summary.more) == ("alone", {})

    def test_a_separator_in_a_text_does_not_move_the_next_one(self, bench: Workbench, bench_app: OnStore) -> None:
        odd = {"title": "t", "brand": "a\x1fb", "sku": "c"}
        assert self.summaries(bench, bench_app, [odd]) == [("t", "a b", "c")]

    def summaries(self, bench: Workbench, bench_app: OnStore, items: Sequence[Any]) -> list[tuple[str | None, ...]]:
        job_id = bench.submit("bulk", items=items).job.id
        in_grid = [row.summary for row in bench_app.items.page(job_id)]
        assert [row.summary for row in bench_app.items.pending()] == in_grid
        return [(one.title, one.more["brand"], one.more["sku"]) for one in in_grid]

    def test_the_canonical_fields_go_before_the_input(self, bench: Workbench, bench_app: OnStore) -> None:
        given_ = {"title": "raw", "brand": "Raw & Co", "sku": "R-1", "price": 3}
        assert self.summaries(
            bench,
            bench_app,
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

    def test_an_input_of_another_shape_has_none(self, bench: Workbench, bench_app: OnStore) -> None:
        odd: list[Any] = ["title", 7, 1.5, True, None, ["title"], {}, {"title": None}]
        assert self.summaries(bench, bench_app, odd) == [(None, None, None)] * len(odd)

    def test_a_number_is_told_as_text(self, bench: Workbench, bench_app: OnStore) -> None:
        assert self.summaries(bench, bench_app, [{"title": 7, "sku": 4006381333931}]) == [("7", None, "4006381333931")]

    def test_it_is_cut_to_two_hundred_characters(self, bench: Workbench, bench_app: OnStore) -> None:
        long = "é" * 500
        [(title, brand, sku)] = self.summaries(
            bench, bench_app, [Planned({"title": long, "sku": long}, {"brand": long})]
        )
        assert title == brand == sku == "é" * 200

    def test_a_single_steps_comes_from_its_params(self, bench: Workbench, bench_app: OnStore) -> None:
        job_id = bench.submit("single", {"title": "one page", "sku": "S"}, owner="ann").job.id
        [row], [waiting] = bench_app.items.page(job_id), bench_app.items.pending(user="ann")
        assert (row.summary.title, row.summary.more) == ("one page", {"brand": None, "sku": "S"})
        assert waiting.summary == row.summary

    def test_a_huge_input_does_not_travel(self, bench: Workbench, bench_app: OnStore) -> None:
        job_id = bench.submit("bulk", items=[{"title": "heavy", "text": "x" * 990_000}]).job.id
        [row] = bench_app.items.page(job_id)
        assert row.summary.title == "heavy"
        assert "input" not in {one.name for one in fields(ItemRow)}
        assert len(repr(row)) < 1_000

    def test_the_grid_has_results_and_canonical_fields_and_the_waiting_list_has_not(
        self, bench: Workbench, bench_app: OnStore
    ) -> None:
        job_id = bench.submit("bulk", items=[Planned({"n": 1}, {"title": "a"}), {"n": 2}]).job.id
        end(bench, take(bench, job_id, 1), WELL)
        rows = bench_app.items.page(job_id)
        assert [(row.normalized, row.result) for row in rows] == [({"title": "a"}, {"ok": True}), (None, None)]
        assert bench_app.items.page(job_id, statuses=[DONE])[0].result == {"ok": True}
        assert [(row.normalized, row.result) for row in bench_app.items.pending()] == [(None, None)]


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

    def test_open_counts_are_what_counting_would_say(self, bench: Workbench, bench_app: OnStore) -> None:
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
        assert bench_app.items.count_open() == self.counted(bench) == expected
        assert bench_app.items.count_open(user="ann") == self.counted(bench, "ann") == {"bulk": 14, "single": 2}
        assert bench_app.items.count_open(user="bob") == self.counted(bench, "bob") == {}

    def test_a_kind_that_goes_on_with_nothing_left_is_named(self, bench: Workbench, bench_app: OnStore) -> None:
        job_id = bulk(bench, 2)
        end(bench, take(bench, job_id, 2), WELL)
        assert not bench.job(job_id).finished, "its finalize step is still to come"
        assert bench_app.items.count_open() == {"bulk": 0}

    def test_failures_are_grouped_by_status_and_code_the_most_frequent_first(
        self, bench: Workbench, bench_app: OnStore
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
        groups = bench_app.items.error_groups(job_id)
        assert [(one.status, one.error_code, one.count, one.example) for one in groups] == [
            (ItemStatus.NOT_FOUND, "GONE", 5, "not there"),
            (ItemStatus.ERROR, "BROKEN", 3, "it broke"),
            (ItemStatus.ERROR, "GONE", 1, "gone as well"),
        ]
        assert bench_app.items.error_groups(bulk(bench, 1)) == []
