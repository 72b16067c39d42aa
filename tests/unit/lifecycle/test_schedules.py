"""When a schedule's ticks are, also where clocks are changed, and which of those that were missed are run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest

from penstock.errors import ConfigurationError
from penstock.lifecycle.schedules import MOST_TICKS, CatchUp, Schedule


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def ticks(cron: str, after: str, count: int, zone: str = "Europe/Berlin") -> list[str]:
    schedule = Schedule("s", cron, "k", zone=zone)
    return [tick.strftime("%m-%d %H:%M") for tick in islice(schedule.ticks(utc(after)), count)]


@pytest.mark.parametrize(
    ("cron", "after", "expected"),
    [
        # At 2:00 on March 29th it is 3:00 in Berlin: 2:30 is not there, and comes at the change, 1:00 UTC.
        ("30 2 * * *", "2026-03-27T12:00", ["03-28 01:30", "03-29 01:00", "03-30 00:30"]),
        ("0 * * * *", "2026-03-29T00:00", ["03-29 01:00", "03-29 02:00", "03-29 03:00"]),
        # At 3:00 on October 25th it is 2:00 again: 2:30 comes twice, and is one tick; every hour is every hour.
        ("30 2 * * *", "2026-10-24T12:00", ["10-25 00:30", "10-26 01:30"]),
        ("0 * * * *", "2026-10-25T00:00", ["10-25 01:00", "10-25 02:00", "10-25 03:00"]),
        # Asked in the second of the two hours, it is not found in the first one again.
        ("30 2 * * *", "2026-10-25T01:15", ["10-26 01:30"]),
    ],
)
def test_clocks_are_changed(cron: str, after: str, expected: list[str]) -> None:
    assert ticks(cron, after, len(expected)) == expected


def test_no_tick_is_the_moment_it_is_asked_from() -> None:
    assert ticks("0 3 * * *", "2026-01-01T03:00", 1, "UTC") == ["01-02 03:00"]


NOW = utc("2026-05-01T12:00:30")


@pytest.mark.parametrize(
    ("catch_up", "waited_for", "expected"),
    [
        (CatchUp.ONE, "2026-05-01T12:00", ["12:00"]),
        (CatchUp.ONE, "2026-05-01T11:57", ["12:00"]),  # the one in time stands for those before
        (CatchUp.ALL, "2026-05-01T11:57", ["11:57", "11:58", "11:59", "12:00"]),
        (CatchUp.NONE, "2026-05-01T11:57", ["12:00"]),
    ],
)
def test_what_is_due(catch_up: CatchUp, waited_for: str, expected: list[str]) -> None:
    due = Schedule("s", "* * * * *", "k", catch_up=catch_up).due(utc(waited_for), NOW)
    assert [tick.strftime("%H:%M") for tick in due.ticks] == expected
    assert due.next_tick == utc("2026-05-01T12:01")


@pytest.mark.parametrize(
    ("catch_up", "expected"), [(CatchUp.ONE, ["10:00"]), (CatchUp.ALL, ["09:00", "10:00"]), (CatchUp.NONE, [])]
)
def test_where_nothing_is_in_time(catch_up: CatchUp, expected: list[str]) -> None:
    due = Schedule("s", "0 * * * *", "k", catch_up=catch_up).due(utc("2026-05-01T09:00"), utc("2026-05-01T10:59"))
    assert [tick.strftime("%H:%M") for tick in due.ticks] == expected
    assert due.next_tick == utc("2026-05-01T11:00")


def test_a_year_of_minutes_is_made_good_for_in_stretches() -> None:
    schedule = Schedule("s", "* * * * *", "k", catch_up=CatchUp.ALL)
    first = utc("2025-05-01T00:00")
    due = schedule.due(first, NOW)
    assert len(due.ticks) == MOST_TICKS
    assert due.next_tick == first + timedelta(minutes=MOST_TICKS)


def test_what_is_kept_is_the_same_schedule() -> None:
    schedule = Schedule("s", "0 3 * * *", "k", {"of": "day"}, "Asia/Tokyo", CatchUp.ALL, "ann", "Title", 3, "key")
    assert Schedule.from_json("s", schedule.as_json()) == schedule


@pytest.mark.parametrize(
    ("cron", "zone", "code"),
    [
        ("0 25 * * *", "UTC", "CRON_NOT_UNDERSTOOD"),
        ("often", "UTC", "CRON_NOT_UNDERSTOOD"),
        ("* * * * * *", "UTC", "CRON_NOT_UNDERSTOOD"),
        ("0 0 30 2 *", "UTC", "CRON_NOT_UNDERSTOOD"),
        ("0 3 * * *", "Europe/Atlantis", "TIME_ZONE_UNKNOWN"),
        ("0 3 * * *", "../etc/passwd", "TIME_ZONE_UNKNOWN"),
        ("0 3 * * *", "", "TIME_ZONE_UNKNOWN"),
    ],
)
def test_what_is_no_schedule_is_refused(cron: str, zone: str, code: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        Schedule("s", cron, "k", zone=zone)
    assert refused.value.code == code
