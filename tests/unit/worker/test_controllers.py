"""The controllers of a lane, by a clock the test holds, and runners whose size changes under them."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any

import pytest

from penstock.lifecycle import outcomes
from penstock.lifecycle.kind import Kind
from penstock.lifecycle.policy import Policy
from penstock.runners.contract import Call, EndedCall, Runner
from penstock.runners.event_loop import EventLoopRunner, EventLoopThread
from penstock.runners.threads import ThreadRunner
from penstock.settings import load_settings
from penstock.store.latency import Latency
from penstock.worker.control.pressure import HostFigures, Pressure
from penstock.worker.controllers import Controllers, max_slots
from penstock.worker.host_load import HostLoad

PATIENCE = 30.0
WELL = outcomes.done("1")
THROTTLED = outcomes.retried("429", "HTTP_429", 1.0)
BROKEN = outcomes.failed("no", "NO")
UNFORESEEN = outcomes.retried("bug", "PROCESSING_ERROR", 1.0)
MISSING = outcomes.not_found("none", "NONE")


class Watch:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Calm(HostLoad):
    """A machine as short of something as the test says, whatever else runs on it."""

    short_of = Pressure.NONE

    def pressure(self, now: float) -> Pressure:
        return self.short_of


KIND = Kind.of("kind", lambda item: None, Policy())


class Wheel:
    """A steering, its clock and its machine."""

    def __init__(self, *, slots: int = 16, most: int = 64, kind: Kind = KIND) -> None:
        self.watch, self.machine, self.pace = Watch(), Calm(), Latency()
        self.controllers = Controllers(
            kind, load_settings(), self.pace, self.machine, slots=slots, max_slots=most, clock=self.watch
        )

    def goes(self, seconds: float, *ended: outcomes.Outcome, waiting: bool = True) -> int:
        """These ended after so many seconds; the answer is the slots then."""
        self.watch.now += seconds
        self.controllers.observe_record(ended, elapsed_ms=seconds * 1000.0, waiting=waiting)
        return self.controllers.slots


class TestSteering:
    def test_nothing_is_judged_before_the_window_is_over(self) -> None:
        wheel = Wheel()
        assert [wheel.goes(0.1, *[THROTTLED] * 10, *[WELL] * 10) for _ in range(4)] == [16] * 4
        assert wheel.goes(0.2, WELL) == 8, "then all of the window counts"
        assert [wheel.goes(0.1, *[THROTTLED] * 20) for _ in range(4)] == [8] * 4, "and the next one begins"

    def test_windows_in_which_all_was_refused_leave_a_quarter_each(self) -> None:
        wheel = Wheel(slots=64)
        assert [wheel.goes(1.0, *[THROTTLED] * 100) for _ in range(4)] == [16, 4, 1, 1]

    def test_work_that_goes_well_brings_more_slots_up_to_the_most(self) -> None:
        wheel = Wheel(slots=4, most=16)
        seen = [wheel.goes(1.0, *[WELL] * 10 * wheel.controllers.slots) for _ in range(12)]
        assert seen == sorted(seen)
        assert (seen[0] > 4, seen[-1]) == (True, 16)

    def test_no_more_slots_when_no_work_waits_for_one(self) -> None:
        wheel = Wheel(slots=4)
        assert {wheel.goes(1.0, *[WELL] * 40, waiting=False) for _ in range(6)} == {4}

    def test_answers_that_ask_for_patience_halve_them(self) -> None:
        wheel = Wheel()
        assert wheel.goes(1.0, *[WELL] * 30, *[THROTTLED] * 2) == 8

    def test_a_crowd_of_errors_halves_them_once_it_is_unusual(self) -> None:
        wheel = Wheel()
        before = wheel.goes(1.0, *[WELL] * 10)
        assert before >= 16
        assert wheel.goes(1.0, *[WELL] * 10, *[BROKEN] * 10) == before // 2

    @pytest.mark.parametrize("ended", [THROTTLED, BROKEN, UNFORESEEN, MISSING])
    def test_a_kind_whose_items_ask_many_hosts_is_not_slowed_down_by_one(self, ended: outcomes.Outcome) -> None:
        """Twelve pages that are not there say nothing about the thirteenth, which is another site's."""
        wheel = Wheel(most=16, kind=Kind.of("kind", lambda item: None, Policy(slows_down=False)))
        assert wheel.goes(1.0, *[WELL] * 10) == 16
        for _ in range(3):
            assert wheel.goes(1.0, *[ended] * 12) == 16
            assert wheel.controllers.claim_not_before == 0.0
        wheel.machine.short_of = Pressure.CPU
        assert wheel.goes(1.0, *[WELL] * 10) == 16
        wheel.machine.short_of = Pressure.MEMORY
        assert wheel.goes(1.0, *[WELL] * 10) == 12, "memory that runs out ends everybody's"

    @pytest.mark.parametrize("ended", [UNFORESEEN, MISSING, outcomes.released(), outcomes.skipped("s", "S")])
    def test_what_fewer_at_once_would_not_help_does_not(self, ended: outcomes.Outcome) -> None:
        wheel = Wheel()
        wheel.goes(1.0, *[WELL] * 10)
        assert wheel.goes(1.0, *[ended] * 10) >= 16

    def test_a_machine_under_pressure_gets_fewer_slots_and_smaller_claims(self) -> None:
        wheel = Wheel()
        assert wheel.controllers.claims() == 16
        wheel.machine.short_of = Pressure.MEMORY
        assert wheel.controllers.claims() == 8
        assert wheel.goes(1.0, *[WELL] * 10) == 12

    def test_what_was_put_off_does_not_make_items_look_cheap(self) -> None:
        wheel = Wheel()
        wheel.goes(1.0, *[WELL] * 10)
        assert wheel.controllers.claim_size.average_item_ms == 100.0
        postponed = outcomes.postponed("closed", "SHOP_CLOSED", 1.0)
        wheel.goes(1.0, *[THROTTLED] * 250, *[postponed] * 250)
        assert wheel.controllers.claim_size.average_item_ms == 100.0
        wheel.goes(1.0, *[WELL] * 200)
        assert wheel.controllers.claim_size.average_item_ms == 10.0, "the time of both seconds is that of the 200"

    def test_a_window_in_which_all_was_put_off_is_followed_by_a_pause_that_doubles(self) -> None:
        wheel = Wheel()
        pauses = []
        for _ in range(6):
            wheel.goes(1.0, *[THROTTLED] * 100)
            pauses.append(wheel.controllers.claim_not_before - wheel.watch.now)
        assert pauses == [0.5, 1.0, 2.0, 4.0, 4.0, 4.0]
        wheel.goes(1.0, *[THROTTLED] * 90, *[WELL] * 10)
        assert wheel.controllers.claim_not_before == 0.0, "something gets through again"

    @pytest.mark.parametrize("ended", [[THROTTLED] * 9, [BROKEN] * 100, [UNFORESEEN] * 100, [MISSING] * 100])
    def test_nothing_else_makes_it_pause(self, ended: list[outcomes.Outcome]) -> None:
        wheel = Wheel()
        wheel.goes(1.0, *ended)
        assert wheel.controllers.claim_not_before == 0.0

    def test_a_lease_grows_with_what_items_take(self) -> None:
        wheel = Wheel()
        settings = load_settings()
        assert wheel.controllers.lease_seconds(10) == pytest.approx(settings.lock_floor_ms / 1000.0)
        wheel.goes(100.0, WELL)
        assert wheel.controllers.lease_seconds(10) > settings.lock_floor_ms / 1000.0


class TestSamples:
    def test_there_is_none_when_nothing_happened(self) -> None:
        wheel = Wheel()
        wheel.watch.now += 10
        assert wheel.controllers.sample() is None
        wheel.goes(1.0)
        assert wheel.controllers.sample() is None, "a look that brought nothing is nothing either"

    def test_it_tells_the_settings_and_what_they_follow(self) -> None:
        wheel = Wheel()
        wheel.pace.wait_ms, wheel.pace.latency_ms = 1.25, 7.5
        wheel.goes(1.0, *[WELL] * 6, BROKEN, MISSING, THROTTLED, UNFORESEEN)
        wheel.controllers.note_persisted(30)
        wheel.watch.now += 1.0
        sample = wheel.controllers.sample()
        assert sample is not None
        assert sample.keys() == {
            "claim_size", "concurrency", "ingest_rows", "lease_seconds", "hold_off_seconds", "average_item_ms",
            "ingest_ms", "items_sec", "rows_sec", "error_rate", "not_found_rate", "retry_rate", "db_latency_ewma",
            "pool_wait_ms", "pressure",
        }  # fmt: skip
        rates = {name: sample[name] for name in ("items_sec", "rows_sec", "error_rate", "not_found_rate", "retry_rate")}
        assert rates == {
            "items_sec": 5.0, "rows_sec": 15.0, "error_rate": 0.1, "not_found_rate": 0.1, "retry_rate": 0.1,
        }  # fmt: skip
        assert (sample["db_latency_ewma"], sample["pool_wait_ms"], sample["pressure"]) == (7.5, 1.25, "none")
        assert (sample["concurrency"], sample["ingest_ms"]) == (8, None)
        assert sample["average_item_ms"] == 111.111, "nine were done in that second, and one was put off"

    def test_each_tells_only_what_is_new(self) -> None:
        wheel = Wheel()
        wheel.goes(1.0, WELL)
        assert wheel.controllers.sample() is not None
        assert wheel.controllers.sample() is None
        wheel.controllers.note_persisted(1)
        rows_alone = wheel.controllers.sample()
        assert rows_alone is not None
        assert (rows_alone["items_sec"], rows_alone["error_rate"]) == (0.0, 0.0)


def test_the_machine_is_read_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = HostLoad()
    readings: list[float] = []
    gauge = machine._gauge
    observe = gauge.observe

    def noted(figures: HostFigures) -> Pressure:
        readings.append(figures.memory_share)
        return observe(figures)

    monkeypatch.setattr(gauge, "observe", noted)
    assert [machine.pressure(at) for at in (100.0, 100.5, 100.9)] == [gauge.setting] * 3
    assert len(readings) == 1
    machine.pressure(101.0)
    assert len(readings) == 2
    assert all(0.0 < share < 1.5 for share in readings)
    assert machine.cores >= 1


def nothing(item: object) -> None:
    """Does it."""


def test_only_a_kind_that_says_nothing_may_grow() -> None:
    unsaid, said = (Kind.of("k", lambda item: None, Policy(concurrency=one)) for one in (None, 3))
    in_processes = Kind.of("k", nothing, Policy(runs_in="processes"))
    assert [max_slots(one, 8) for one in (unsaid, said, in_processes)] == [32, 8, 8]


# Runners that change their size ---------------------------------------------------------------------------------------


class Bay:
    """Calls that run until each is let go, and what is seen of them."""

    def __init__(self) -> None:
        self.begun: queue.Queue[tuple[int, int]] = queue.Queue()
        self.over: queue.Queue[int] = queue.Queue()
        self.times: Counter[int] = Counter()
        self.gates: list[Future[None]] = []
        self._lock = threading.Lock()
        self._running = 0

    def ended(self, reports: Sequence[EndedCall]) -> None:
        for call, result, error in reports:
            assert (result, error) == (call.owner, None)
            self.times[call.owner] += 1
            self.over.put(call.owner)

    def calls(self, count: int, function: Callable[[Any], Any]) -> list[Call]:
        first = len(self.gates)
        self.gates += [Future() for _ in range(count)]
        return [Call(number, function, number) for number in range(first, first + count)]

    def _enter(self, number: int) -> None:
        with self._lock:
            self._running += 1
            self.begun.put((number, self._running))

    def _leave(self) -> None:
        with self._lock:
            self._running -= 1

    def in_thread(self, number: int) -> int:
        self._enter(number)
        self.gates[number].result(PATIENCE)
        self._leave()
        return number

    async def on_loop(self, number: int) -> int:
        self._enter(number)
        await asyncio.wrap_future(self.gates[number])
        self._leave()
        return number

    def begin(self, count: int) -> list[tuple[int, int]]:
        """The next so many that begin: which, and how many ran then."""
        return [self.begun.get(timeout=PATIENCE) for _ in range(count)]

    def let_go(self, numbers: Sequence[int]) -> list[int]:
        """Let these end, one after the other; the answer is what ended."""
        ended = []
        for number in numbers:
            self.gates[number].set_result(None)
            ended.append(self.over.get(timeout=PATIENCE))
        return ended


Bays = tuple[Bay, Runner, Callable[[int], list[Call]]]


@pytest.fixture(params=["threads", "event loop"])
def bay(request: pytest.FixtureRequest) -> Iterator[Bays]:
    """A real runner of two places, and how to make calls for it."""
    bay = Bay()
    if request.param == "threads":
        threads = ThreadRunner(2, bay.ended, idle_seconds=PATIENCE)
        yield bay, threads, lambda count: bay.calls(count, bay.in_thread)
        threads.close()
    else:
        loop = EventLoopThread()
        yield bay, EventLoopRunner(loop, 2, bay.ended), lambda count: bay.calls(count, bay.on_loop)
        loop.close()


class TestResizing:
    def test_more_places_are_filled_and_fewer_are_kept_to(self, bay: Bays) -> None:
        hall, runner, calls = bay
        runner.start(calls(14))
        first = hall.begin(2)
        assert hall.begun.empty(), "more run than there are places"
        runner.resize(5)
        more = hall.begin(3)
        assert [running for _, running in first + more] == [1, 2, 3, 4, 5]
        runner.resize(1)
        running = [number for number, _ in first + more]
        assert hall.let_go(running) == running
        for _ in range(9):
            [(number, at_once)] = hall.begin(1)
            assert at_once == 1, "more ran at once than the new size"
            assert hall.let_go([number]) == [number]
        assert hall.times == dict.fromkeys(range(14), 1)
        assert hall.begun.empty()

    def test_down_and_up_again_loses_nothing(self, bay: Bays) -> None:
        hall, runner, calls = bay
        runner.start(calls(20))
        sizes = [3, 1, 4, 2, 5, 1, 2, 20]
        running = [number for number, _ in hall.begin(2)]
        done: list[int] = []
        for size in sizes:
            runner.resize(size)
            while len(running) < min(size, 20 - len(done)):
                running += [number for number, _ in hall.begin(1)]
            while len(running) > size - 1:
                done += hall.let_go([running.pop(0)])
        done += hall.let_go(running)
        assert sorted(done) == list(range(20))
        assert hall.times == dict.fromkeys(range(20), 1)

    def test_when_all_end_in_the_same_moment_what_waits_still_runs(self, bay: Bays) -> None:
        hall, runner, calls = bay
        runner.resize(4)
        runner.start(calls(10))
        running = [number for number, _ in hall.begin(4)]
        runner.resize(2)
        release_together(runner, [hall.gates[number] for number in running])
        assert {hall.over.get(timeout=PATIENCE) for _ in range(4)} == set(running)
        assert some_began(hall, runner), "there are free places, and nobody takes what waits"
        for _ in range(6):
            [(number, at_once)] = hall.begin(1)
            assert at_once <= 2
            hall.gates[number].set_result(None)
        assert {hall.over.get(timeout=PATIENCE) for _ in range(6)} == set(range(10)) - set(running)
        assert hall.times == dict.fromkeys(range(10), 1)


def release_together(runner: Runner, gates: Sequence[Future[None]]) -> None:
    """Let all of these go in one turn of the loop, where there is one."""

    def release() -> None:
        for gate in gates:
            gate.set_result(None)

    if isinstance(runner, EventLoopRunner):
        runner._slots.thread.loop.call_soon_threadsafe(release)
    else:
        release()


def some_began(hall: Bay, runner: Runner) -> bool:
    """Has something begun, once a loop has had turns enough? Threads are waited for by whoever asks what began."""
    if not isinstance(runner, EventLoopRunner):
        return True
    for _ in range(20):
        asyncio.run_coroutine_threadsafe(asyncio.sleep(0), runner._slots.thread.loop).result(PATIENCE)
    return not hall.begun.empty()
