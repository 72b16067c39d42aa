"""Each question to a retailer is on record before its item ends, in as few transactions as can be."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

import pytest

from penstock.errors import StoreUnavailable
from penstock_apps.products.repository import BatchWriter, SearchEvent
from penstock_apps.products.retailer import sample_csv
from tests.applications.products.conftest import Market


def event(item: int, query: str = "kettle") -> SearchEvent:
    at = datetime(2024, 5, 1, 12, tzinfo=UTC)
    return SearchEvent(UUID(int=1), item, "ada", "csv", "demo", "sku", query, "FOUND", 1, 3.5, at)


def test_every_question_of_a_table_is_on_record_and_attempts_ask_in_other_ways(market: Market) -> None:
    taken = market.take(("products.csv", sample_csv()))
    market.work()
    events = market.events(taken)
    assert Counter(one.outcome for one in events)["FOUND"] == 36
    assert len(events) == len(market.shop.calls)
    assert {(one.job_id, one.user_id, one.kind, one.provider) for one in events} == {
        (taken.job.id, "ada", "csv", "demo")
    }
    lost = [
        (one.strategy, one.query, one.attempt) for one in events if "XYZ-1" in one.query or one.query == "4006381333931"
    ]
    assert lost == [("sku", "XYZ-1", 1), ("gtin", "4006381333931", 2)]
    assert all(one.latency_ms > 0 and one.at.tzinfo is not None for one in events)


def test_events_are_kept_cut_to_size_and_read_in_pages(market: Market) -> None:
    records = market.products.repository
    records.add([event(1, "k" * 900), event(2), event(3)])
    first = records.of_job(UUID(int=1), limit=2)
    assert [(one.item_id, len(one.query)) for one in first] == [(1, 500), (2, 6)]
    assert [one.item_id for one in records.of_job(UUID(int=1), after=first[-1].id)] == [3]
    assert records.of_job(UUID(int=2)) == []


def test_what_comes_while_one_is_written_shares_the_next_transaction() -> None:
    written: list[list[int]] = []
    begun, go_on = threading.Event(), threading.Event()

    def write(events: Sequence[SearchEvent]) -> None:
        begun.set()
        assert go_on.wait(10)
        written.append([one.item_id for one in events])

    async def ten_items() -> None:
        writes = BatchWriter(write)
        first = writes.hand_in([event(0)])
        assert await asyncio.to_thread(begun.wait, 10)
        others = [writes.hand_in([event(at)]) for at in range(1, 10)]
        assert not first.done()
        go_on.set()
        await asyncio.gather(first, *others, writes.hand_in([]))

    asyncio.run(ten_items())
    assert written == [[0], list(range(1, 10))]


def test_a_write_that_fails_is_told_to_all_who_shared_it_and_the_next_one_goes_on() -> None:
    failures = [StoreUnavailable("away")]
    written: list[int] = []

    def write(events: Sequence[SearchEvent]) -> None:
        if failures:
            raise failures.pop()
        written.extend(one.item_id for one in events)

    async def three_items() -> list[object]:
        writes = BatchWriter(write)
        shared = [writes.hand_in([event(1)]), writes.hand_in([event(2)])]
        told: list[object] = list(await asyncio.gather(*shared, return_exceptions=True))
        await writes.hand_in([event(3)])
        return told

    first, second = asyncio.run(three_items())
    assert isinstance(first, StoreUnavailable)
    assert first is second
    assert written == [3]


def test_an_item_that_was_stopped_does_not_hold_the_others_up() -> None:
    written: list[int] = []

    async def two_items() -> None:
        writes = BatchWriter(lambda events: written.extend(one.item_id for one in events))
        stopped, other = writes.hand_in([event(1)]), writes.hand_in([event(2)])
        stopped.cancel()
        await other
        with pytest.raises(asyncio.CancelledError):
            await stopped

    asyncio.run(two_items())
    assert written == [1, 2]
