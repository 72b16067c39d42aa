"""Each tick of a schedule is one job, whoever looks first, and however it ends."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from penstock.errors import InvalidInput
from penstock.lifecycle.callers import admin
from penstock.lifecycle.schedules import CatchUp, Schedule
from penstock.operations import schedules
from penstock.operations.schedules import ScheduleStatus
from penstock.testing.drive import MAX_BYTES, Workbench
from tests.conformance.steps import history, write

pytestmark = pytest.mark.usefixtures("rows_are_true_in_the_end")
HOURLY = Schedule("hourly", "0 * * * *", "single", {"n": 1}, owner="ann")


def declare(bench: Workbench, *declared: Schedule) -> None:
    write(bench, schedules.declare, declared, max_bytes=MAX_BYTES)


def due(bench: Workbench) -> int:
    return schedules.submit_due(bench.store, bench.kinds, max_bytes=MAX_BYTES)


def status(bench: Workbench, name: str = "hourly") -> ScheduleStatus:
    found: ScheduleStatus = write(bench, schedules.get_schedule, name)
    return found


def at(hour: int, day: int = 1) -> datetime:
    return datetime(2026, 1, day, hour, tzinfo=UTC)


def run_at(bench: Workbench) -> list[datetime | None]:
    return [job.run_at for job in reversed(bench.jobs())]


def test_each_tick_is_one_job(bench: Workbench) -> None:
    declare(bench, HOURLY)
    assert (due(bench), status(bench).next_at) == (0, at(1))
    bench.clock.advance(3_600)
    assert (due(bench), due(bench)) == (1, 0)
    bench.clock.advance(3_599)
    assert due(bench) == 0
    bench.clock.advance(1)
    assert due(bench) == 1
    assert run_at(bench) == [at(1), at(2)]
    [first, second] = bench.claim("single")
    assert (first.input, second.input, first.user_id) == ({"n": 1}, {"n": 1}, "ann")
    shown = status(bench)
    assert (shown.last_at, shown.next_at, shown.last_error) == (at(2), at(3), None)
    assert shown.last_job_id == max(bench.jobs(), key=lambda job: job.run_at or at(0)).id


@pytest.mark.parametrize(("catch_up", "made_good"), [(CatchUp.ONE, [3]), (CatchUp.ALL, [1, 2, 3]), (CatchUp.NONE, [])])
def test_ticks_that_were_missed(bench: Workbench, catch_up: CatchUp, made_good: list[int]) -> None:
    declare(bench, Schedule("hourly", "0 * * * *", "single", catch_up=catch_up))
    bench.clock.advance(3.5 * 3_600)  # nobody was there
    assert due(bench) == len(made_good)
    assert sorted(tick for tick in run_at(bench) if tick) == [at(hour) for hour in made_good]
    assert status(bench).next_at == at(4)


def test_declared_again_it_goes_on_as_it_was(bench: Workbench) -> None:
    declare(bench, HOURLY)
    bench.clock.advance(2_000)
    declare(bench, HOURLY)
    assert status(bench).next_at == at(1)
    declare(bench, Schedule("hourly", "30 * * * *", "single"))
    assert (status(bench).next_at, status(bench).schedule.params) == (at(1).replace(hour=1, minute=30), None)


def test_paused_it_stays_so_and_what_came_meanwhile_was_not_wanted(bench: Workbench) -> None:
    declare(bench, HOURLY)
    write(bench, schedules.pause, "hourly")
    bench.clock.advance(2.5 * 3_600)
    declare(bench, HOURLY)  # a program starts anew
    assert (due(bench), status(bench).is_paused, status(bench).next_at) == (0, True, None)
    write(bench, schedules.resume, "hourly")
    write(bench, schedules.resume, "hourly")
    assert (due(bench), status(bench).next_at) == (0, at(3))
    bench.clock.advance(0.5 * 3_600)
    assert due(bench) == 1


def test_run_by_hand_it_keeps_its_ticks_and_the_history_says_who(bench: Workbench) -> None:
    declare(bench, HOURLY)
    write(bench, schedules.pause, "hourly")
    bench.clock.advance(600)
    job = write(bench, schedules.run_now, bench.kinds, "hourly", admin("root"), max_bytes=MAX_BYTES)
    assert (job.user_id, job.run_at, job.title) == ("ann", bench.clock.held(), "hourly")
    assert history(bench, job.id)[0].actor_id == "root"
    assert (status(bench).last_job_id, status(bench).is_paused) == (job.id, True)


def test_with_a_key_no_second_job_comes_beside_the_first(bench: Workbench) -> None:
    declare(bench, Schedule("hourly", "0 * * * *", "single", unique_key="one"))
    for _ in range(2):
        bench.clock.advance(3_600)
        assert due(bench) == 1
    assert run_at(bench) == [at(1)]
    bench.drive_to_end()
    bench.clock.advance(3_600)
    assert due(bench) == 1
    assert run_at(bench) == [at(1), at(3)]


def test_what_cannot_be_submitted_is_said_and_keeps_no_other(bench: Workbench) -> None:
    declare(bench, HOURLY, Schedule("broken", "0 * * * *", "single", "x" * 100))
    bench.clock.advance(3_600)
    assert schedules.submit_due(bench.store, bench.kinds, max_bytes=50) == 1
    broken = status(bench, "broken")
    assert "PAYLOAD_TOO_LARGE" in str(broken.last_error)
    assert (broken.next_at, broken.last_at) == (at(2), None)
    bench.clock.advance(3_600)
    assert due(bench) == 2
    assert status(bench, "broken").last_error is None


def test_a_kind_that_is_not_known_here_is_left_to_others(bench: Workbench) -> None:
    declare(bench, Schedule("theirs", "0 * * * *", "elsewhere"))
    bench.clock.advance(3_600)
    assert (due(bench), status(bench, "theirs").next_at) == (0, at(1))


@pytest.mark.parametrize("verb", [schedules.pause, schedules.resume, schedules.remove, schedules.get_schedule])
def test_one_that_is_not_there_is_said(bench: Workbench, verb: Any) -> None:
    with pytest.raises(InvalidInput) as refused:
        write(bench, verb, "nothing")
    assert refused.value.code == "SCHEDULE_UNKNOWN"


def test_a_removed_one_is_gone_until_it_is_declared_again(bench: Workbench) -> None:
    declare(bench, HOURLY)
    write(bench, schedules.remove, "hourly")
    bench.clock.advance(3_600)
    assert due(bench) == 0
    assert bench.store.read(schedules.list_schedules) == []
