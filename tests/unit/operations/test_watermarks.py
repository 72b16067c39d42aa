"""What a lane remembers of its line: how far back it looks, and when."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from penstock.operations.watermarks import Reach, Watermarks
from penstock.store.queries.line import FirstTurn

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def seen(
    now: datetime,
    number: int,
    oldest: int,
    *,
    priority: int = 0,
    first: datetime | None = None,
    unheard: int | None = None,
    microseconds: int = 0,
) -> FirstTurn:
    """What a look answers for one priority."""
    return FirstTurn(priority, first, unheard, now, number, oldest, microseconds)


class Lane:
    """Marks with a clock of the test's own."""

    def __init__(self, *priorities: int) -> None:
        self.time = 0.0
        self.marks = Watermarks(lambda: self.time)
        self.marks.learn(priorities)

    def look(self, *turns: FirstTurn, reach: Reach = Reach.SURE) -> float | None:
        return self.marks.observe(turns, reach)

    def since(self) -> float:
        """Where claims begin, in seconds from noon."""
        [(_, moment)] = self.marks.claim_looks()
        return (moment - NOON).total_seconds()


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def test_a_look_that_nobody_writes_beside_settles_the_one_before() -> None:
    lane = Lane(0)
    lane.look(seen(at(10), number=100, oldest=100))
    assert lane.since() == 9.0, "a second behind the clock, while nothing is settled"
    lane.look(seen(at(10.2), number=105, oldest=101))
    assert lane.since() == pytest.approx(9.9), "the look before, and a little grace"


def test_an_open_transaction_keeps_what_is_settled_and_claims_follow_the_clock() -> None:
    lane = Lane(0)
    lane.look(seen(at(0), number=100, oldest=100))
    lane.look(seen(at(1), number=110, oldest=105))
    lane.look(seen(at(60), number=900, oldest=105))
    assert lane.since() == 59.0
    assert lane.marks.looks(Reach.SURE)[0][1] == at(-0.1), "what commits late is looked for from here"


def test_a_job_that_is_still_in_line_keeps_the_mark() -> None:
    lane = Lane(0)
    for second in (10, 11, 12):
        lane.look(seen(at(second), number=second, oldest=second, first=at(3)))
    assert lane.since() == 3.0


def test_a_near_look_moves_nothing_but_where_claims_begin() -> None:
    lane = Lane(0)
    lane.look(seen(at(0), number=1, oldest=1))
    lane.look(seen(at(1), number=2, oldest=2))
    sure = lane.marks.looks(Reach.SURE)
    lane.look(seen(at(9), number=3, oldest=3), reach=Reach.NEAR)
    assert lane.marks.looks(Reach.SURE) == sure
    assert lane.since() > 0


def test_quick_looks_go_far_and_slow_ones_rest() -> None:
    lane = Lane(0)
    assert lane.marks.reach() is Reach.WHOLE, "the first"
    lane.look(seen(at(0), 1, 1), reach=Reach.WHOLE)
    assert lane.marks.reach() is Reach.SURE
    lane.time += 1.0
    assert lane.marks.reach() is Reach.WHOLE, "each second"
    lane.look(seen(at(1), 2, 2, microseconds=500_000), reach=Reach.WHOLE)
    lane.time += 400.0
    assert lane.marks.reach() is Reach.SURE, "a slow one takes a thousandth of the time"
    lane.look(seen(at(2), 3, 3, microseconds=100_000))
    assert lane.marks.reach() is Reach.NEAR
    lane.look(seen(at(3), 4, 4), reach=Reach.NEAR)
    assert lane.marks.sure_in == pytest.approx(2.0), "what a near look cannot say is asked when it may be"
    lane.time += 2.1
    assert lane.marks.reach() is Reach.SURE


def test_what_is_due_is_due_and_what_is_not_says_when() -> None:
    lane = Lane(0)
    assert lane.look(seen(at(0), 1, 1)) is None
    assert lane.look(seen(at(0), 2, 2, first=at(-5))) == 0.0
    assert lane.look(seen(at(0), 3, 3, first=at(7))) == 7.0
    assert not lane.marks.asks_for_priorities
    assert lane.look(seen(at(0), 4, 4, unheard=9)) == 0.0
    assert lane.marks.asks_for_priorities


def test_the_gaps_between_priorities_are_looked_at_but_not_by_a_near_look() -> None:
    lane = Lane(0, 5)
    assert [(priority, above) for priority, _, above in lane.marks.looks(Reach.SURE)] == [
        (5, 32768), (0, 5), (-32769, 0)
    ]  # fmt: skip
    assert all(priority == above for priority, _, above in lane.marks.looks(Reach.NEAR))


def test_a_clock_that_went_back_is_forgotten_about() -> None:
    lane = Lane(0)
    lane.look(seen(at(0), 1, 1))
    assert lane.look(seen(at(-900), 2, 2)) == 0.0
    assert lane.marks.asks_for_priorities
    assert lane.marks.claim_looks() == []


def test_of_very_many_priorities_those_in_line_are_kept() -> None:
    lane = Lane(*range(100))
    rows = [seen(at(0), 1, 1, priority=number, first=at(0) if number < 70 else None) for number in range(100)]
    lane.look(*rows, reach=Reach.WHOLE)
    assert {priority for priority, _ in lane.marks.claim_looks()} == set(range(70))
