"""Workers, a provider and a database in simulated time, driven by the real controllers.

Nothing here waits or reads a clock: a run of minutes takes milliseconds, and the same seed gives the same trace. Use it
to see what a controller does before a change of it meets real work.

>>> run = simulate(SCENARIOS["burst_of_429"], seed=1)
>>> run.finished_at is None, len(run.trace) > 100
(True, True)
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from penstock.worker.control.claim_size import ClaimSize
from penstock.worker.control.concurrency import Concurrency, ConcurrencySample
from penstock.worker.control.ingest_batch import IngestBatch, IngestSample
from penstock.worker.control.pressure import HostFigures, Pressure, PressureGauge
from penstock.worker.control.provider_delay import ProviderDelay

OverTime = Callable[[float], float]
"""A figure of the world as a function of simulated seconds."""


def always(value: float) -> OverTime:
    """A figure that does not change."""
    return lambda _now: value


def during(begin: float, end: float, inside: float, outside: float) -> OverTime:
    """A figure that is another one for a while.

    >>> [during(10, 20, 5.0, 1.0)(now) for now in (9, 10, 20)]
    [1.0, 5.0, 1.0]
    """
    return lambda now: inside if begin <= now < end else outside


@dataclass(frozen=True)
class World:
    """What the workers live in. Times in seconds, memory as a share of the limit, 0 calls a second for no limit."""

    item_seconds: OverTime = field(default_factory=lambda: always(0.1))
    item_factor: Callable[[float], float] = field(
        default_factory=lambda: always(1.0)
    )  # of how many items were started before, not of time
    error_probability: OverTime = field(default_factory=lambda: always(0.0))
    calls_per_second: OverTime = field(default_factory=lambda: always(0.0))
    retry_after: float = 5.0
    memory_per_item: OverTime = field(default_factory=lambda: always(0.0))
    memory_otherwise: float = 0.3
    cores: float = 1000.0
    claim_seconds: float = 0.02
    insert_seconds: OverTime = field(default_factory=lambda: always(0.003))
    insert_seconds_per_row: OverTime = field(default_factory=lambda: always(0.00005))
    items: int | None = None
    until: float = 180.0
    workers: int = 2
    max_at_once: int = 16


@dataclass(frozen=True)
class FixedSettings:
    """Settings that stay as they are, to compare with."""

    claim_size: int
    concurrency: int


class Moment(NamedTuple):
    """One worker's window: what was set, and what came of it."""

    time: float
    claim_size: int
    concurrency: int
    ingest_rows: int
    throughput: float
    throttled_share: float
    pressure: Pressure


@dataclass(frozen=True)
class Run:
    """What a simulation showed: a line for each window, and when the last item was done (None: not in time)."""

    trace: list[Moment]
    finished_at: float | None
    done: int
    throttled: int


class _Event(Enum):
    ENDED = 0
    CLAIMED = 1
    WAKE = 2
    WINDOW = 3


class _End(Enum):
    DONE = 0
    FAILED = 1
    THROTTLED = 2


@dataclass
class _Worker:
    """One worker's hands: what it holds, what runs, and what it counted since the last window."""

    slots: Concurrency
    size: ClaimSize
    provider: ProviderDelay
    batch: IngestBatch
    fixed_settings: FixedSettings | None
    gauge: PressureGauge = field(default_factory=PressureGauge)
    held_items: int = 0
    running: int = 0
    claiming: int = 0
    wake_at: float = -1.0
    was_full: bool = False
    counts: dict[_End, int] = field(default_factory=lambda: dict.fromkeys(_End, 0))
    unmeasured_ms: float = 0.0

    @property
    def concurrency(self) -> int:
        return self.fixed_settings.concurrency if self.fixed_settings else self.slots.setting

    @property
    def claim_size(self) -> int:
        return self.fixed_settings.claim_size if self.fixed_settings else self.size.under(self.gauge.setting)


class _Simulation:
    WINDOW = 1.0
    REFUSAL_SECONDS = 0.02

    def __init__(self, world: World, fixed_settings: FixedSettings | None, chance: random.Random) -> None:
        self.world = world
        self.chance = chance
        self.events: list[tuple[float, int, _Event, int, _End]] = []
        self.order = 0
        self.waiting = world.items
        self.done = 0
        self.accepted_calls = 0
        self.throttled_calls = 0
        self.tokens = 1.0
        self.tokens_at = 0.0
        self.trace: list[Moment] = []
        self.workers = [
            _Worker(
                slots=Concurrency(minimum=1, maximum=world.max_at_once, first=4),
                size=ClaimSize(target_ms=5000, safety=0.7, minimum=1, maximum=500, first=4),
                provider=ProviderDelay(chance=chance),
                batch=IngestBatch(),
                fixed_settings=fixed_settings,
            )
            for _ in range(world.workers)
        ]

    def run(self) -> Run:
        for number in range(len(self.workers)):
            self.later(0.0, _Event.WAKE, number)
            self.later(self.WINDOW, _Event.WINDOW, number)
        now = 0.0
        while self.events and now <= self.world.until:
            now, _, event, number, end = heapq.heappop(self.events)
            worker = self.workers[number]
            if event is _Event.ENDED:
                self.end(now, worker, end)
                if self.done == self.world.items:
                    return Run(self.trace, now, self.done, self.throttled_calls)
            elif event is _Event.CLAIMED:
                worker.held_items += worker.claiming
                worker.claiming = 0
            elif event is _Event.WINDOW:
                self.close_window(now, worker)
                self.later(now + self.WINDOW, _Event.WINDOW, number)
            self.start(now, worker, number)
        return Run(self.trace, None, self.done, self.throttled_calls)

    def later(self, at: float, event: _Event, number: int, end: _End = _End.DONE) -> None:
        self.order += 1
        heapq.heappush(self.events, (at, self.order, event, number, end))

    def start(self, now: float, worker: _Worker, number: int) -> None:
        while worker.held_items and worker.running < worker.concurrency:
            wait = worker.provider.ready_in(now)
            if wait > 0:
                if worker.wake_at != now + wait:
                    worker.wake_at = now + wait
                    self.later(worker.wake_at, _Event.WAKE, number)
                return
            worker.provider.take_slot(now)
            worker.held_items -= 1
            worker.running += 1
            end, seconds = self.call(now)
            self.later(now + seconds, _Event.ENDED, number, end)
        if worker.running >= worker.concurrency:
            worker.was_full = True
        elif not worker.claiming and self.waiting != 0:
            size = worker.claim_size if self.waiting is None else min(worker.claim_size, self.waiting)
            if self.waiting is not None:
                self.waiting -= size
            worker.claiming = size
            self.later(now + self.world.claim_seconds, _Event.CLAIMED, number)

    def call(self, now: float) -> tuple[_End, float]:
        """How a call that starts now will end, and after how long."""
        limit = self.world.calls_per_second(now)
        if limit > 0:
            # A quarter of a second's worth of calls may come at once.
            self.tokens = min(max(1.0, limit / 4), self.tokens + limit * (now - self.tokens_at))
            self.tokens_at = now
            if self.tokens < 1.0:
                return _End.THROTTLED, self.REFUSAL_SECONDS
            self.tokens -= 1.0
        failed = self.chance.random() < self.world.error_probability(now)
        running = sum(worker.running for worker in self.workers)
        slowdown = max(1.0, running / self.world.cores)
        factor = self.world.item_factor(self.accepted_calls)
        self.accepted_calls += 1
        seconds = self.world.item_seconds(now) * factor * slowdown * self.chance.uniform(0.8, 1.2)
        return (_End.FAILED if failed else _End.DONE), seconds

    def end(self, now: float, worker: _Worker, end: _End) -> None:
        worker.running -= 1
        worker.counts[end] += 1
        if end is _End.THROTTLED:
            worker.provider.note_answer(now, status=429, retry_after=self.world.retry_after)
            self.throttled_calls += 1
            worker.held_items += 1  # it is tried again, by whoever has it
        else:
            worker.provider.note_answer(now, status=200)
            if end is _End.FAILED and self.waiting is not None:
                self.waiting += 1
            self.done += end is _End.DONE

    def close_window(self, now: float, worker: _Worker) -> None:
        counts, worker.counts = worker.counts, dict.fromkeys(_End, 0)
        items = sum(counts.values())
        memory = self.world.memory_otherwise + worker.running * self.world.memory_per_item(now)
        pressure = worker.gauge.observe(HostFigures(cpu_share=0.0, memory_share=memory))
        worker.slots.observe(
            ConcurrencySample(
                items=items,
                elapsed_seconds=self.WINDOW,
                throttled=counts[_End.THROTTLED],
                errors=counts[_End.FAILED],
                waiting=worker.was_full,
                pressure=pressure,
            )
        )
        worker.was_full = worker.running >= worker.concurrency
        worker.unmeasured_ms += self.WINDOW * 1000.0
        if items - counts[_End.THROTTLED] > 0:
            worker.size.observe(elapsed_ms=worker.unmeasured_ms, items=items - counts[_End.THROTTLED])
            worker.unmeasured_ms = 0.0
        rows = worker.batch.setting
        insert_ms = 1000.0 * (self.world.insert_seconds(now) + rows * self.world.insert_seconds_per_row(now))
        worker.batch.observe(IngestSample(rows=rows, elapsed_ms=insert_ms * self.chance.uniform(0.9, 1.1)))
        self.trace.append(
            Moment(
                time=now,
                claim_size=worker.claim_size,
                concurrency=worker.concurrency,
                ingest_rows=worker.batch.setting,
                throughput=counts[_End.DONE] / self.WINDOW,
                throttled_share=counts[_End.THROTTLED] / items if items else 0.0,
                pressure=pressure,
            )
        )


def simulate(world: World, *, seed: int = 0, fixed_settings: FixedSettings | None = None) -> Run:
    """Run a world to its end, with the controllers or with settings that stay."""
    return _Simulation(world, fixed_settings, random.Random(seed)).run()


SCENARIOS: dict[str, World] = {
    "step_in_latency": World(item_seconds=during(90, 1e9, 5.0, 0.05), until=240, workers=1),
    "burst_of_429": World(calls_per_second=during(60, 75, 20.0, 0.0), retry_after=1.0, workers=1),
    "error_spike": World(error_probability=during(60, 75, 0.6, 0.01), workers=1),
    "memory_pressure": World(memory_per_item=during(60, 90, 0.1, 0.02), workers=1),
    "slow_database": World(insert_seconds_per_row=during(60, 90, 0.002, 0.00005), workers=1),
    "cost_and_throttle": World(
        # Cheap items under a strict limit, then dear ones: the best settings of one half are the worst of the other.
        item_seconds=always(0.04),
        item_factor=during(3000, 1e9, 100.0, 1.0),
        calls_per_second=always(100.0),
        retry_after=2.0,
        claim_seconds=0.005,
        items=4000,
        until=600,
        max_at_once=64,
    ),
}
"""The disturbances we tune for. The first five have work without end; the last runs until all is done."""
