"""The controllers of one lane: the signals they get and the settings they answer.

The controllers themselves are pure (``penstock.worker.control``); here they are given samples of the real world, and
their settings are kept to be seen: in ``/metrics``, in a job's answer and in the lane's samples in the database.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from penstock.lifecycle.kind import Kind
from penstock.lifecycle.outcomes import Outcome
from penstock.lifecycle.policy import RunsIn
from penstock.lifecycle.states import ItemRole, ItemStatus
from penstock.settings import Settings
from penstock.store.latency import Latency
from penstock.worker.control.claim_size import ClaimSize
from penstock.worker.control.concurrency import Concurrency, ConcurrencySample
from penstock.worker.control.hold_off import HoldOff
from penstock.worker.control.ingest_batch import IngestBatch
from penstock.worker.control.lease_length import lease_seconds
from penstock.worker.control.pressure import Pressure
from penstock.worker.host_load import HostLoad

_WINDOW_SECONDS = 0.5
"""The least time over which the concurrency is judged."""
_UNFORESEEN = "PROCESSING_ERROR"


def max_slots(kind: Kind, slots: int) -> int:
    """How far the concurrency may grow: to what the kind says; what none says may grow, but not processes."""
    if kind.policy.concurrency is not None or kind.runs_in(ItemRole.ITEM) is RunsIn.PROCESSES:
        return slots
    return 4 * slots


class Controllers:
    """The controllers of one lane."""

    def __init__(
        self,
        kind: Kind,
        settings: Settings,
        latency: Latency,
        machine: HostLoad,
        *,
        slots: int,
        max_slots: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._kind = kind
        self._slows_down = kind.policy.slows_down
        self._settings = settings
        self._pace = latency
        self._machine = machine
        self._clock = clock
        self.claim_size = ClaimSize(
            target_ms=settings.target_slice_ms,
            safety=settings.safety_factor,
            minimum=settings.claim_min,
            maximum=settings.claim_max,
            first=slots,
        )
        self.concurrency = Concurrency(maximum=max_slots, first=slots, cores=machine.cores)
        self.ingest = IngestBatch(
            min_rows=settings.ingest_min_rows,
            max_rows=settings.ingest_max_rows,
            max_batch_bytes=settings.ingest_max_batch_bytes,
            p50_ms=settings.db_p50_ms,
            p95_ms=settings.db_p95_ms,
        )
        self.hold_off = HoldOff()
        self.claim_not_before = 0.0
        """By the clock; zero unless nearly everything is put off."""
        self._lease = settings.lock_floor_ms / 1000.0
        self._elapsed_ms = 0.0
        self._window = _Window(clock())
        self._sample_window = _Window(clock())

    @property
    def slots(self) -> int:
        """How many items may run at once now."""
        return self.concurrency.setting

    def claims(self) -> int:
        """How many items to claim now."""
        return max(1, self.claim_size.under(self._machine.pressure(self._clock())))

    def lease_seconds(self, items: int) -> float:
        """How long a lease on so many items should last."""
        self._lease = lease_seconds(
            self.claim_size.average_item_ms,
            items,
            timeout=self._kind.policy.timeout,
            floor_ms=self._settings.lock_floor_ms,
            cap_ms=self._settings.lock_cap_ms,
        )
        return self._lease

    def observe_record(self, outcomes: Sequence[Outcome], *, elapsed_ms: float | None, waiting: bool) -> None:
        """These outcomes were written; ``elapsed_ms`` is how long the lane was busy with them."""
        if elapsed_ms is not None:
            self._observe_cost(outcomes, elapsed_ms)
        self._window.count(outcomes)
        self._sample_window.count(outcomes)
        now = self._clock()
        elapsed = now - self._window.since
        if elapsed >= _WINDOW_SECONDS:
            self.concurrency.observe(
                ConcurrencySample(
                    items=self._window.items,
                    elapsed_seconds=elapsed,
                    throttled=self._window.put_off if self._slows_down else 0,
                    errors=self._window.errors if self._slows_down else 0,
                    waiting=waiting,
                    pressure=self._pressure(now),
                )
            )
            if self._slows_down:
                pause = self.hold_off.observe(items=self._window.items, put_off=self._window.put_off)
                self.claim_not_before = now + pause if pause else 0.0
            self._window = _Window(now)

    def _pressure(self, now: float) -> Pressure:
        """What the machine is short of; processor time is not what a kind needs that waits for others' hosts."""
        pressure = self._machine.pressure(now)
        return Pressure.NONE if pressure is Pressure.CPU and not self._slows_down else pressure

    def _observe_cost(self, outcomes: Sequence[Outcome], elapsed_ms: float) -> None:
        """What was put off is not done: it would make items look cheap, and claims grow, just when somebody is busy."""
        self._elapsed_ms += elapsed_ms
        done = sum(not _put_off(outcome) for outcome in outcomes)
        if done:
            self.claim_size.observe(elapsed_ms=self._elapsed_ms, items=done)
            self._elapsed_ms = 0.0

    def sample(self) -> dict[str, Any] | None:
        """What happened since the last sample, and the settings now; None when nothing did."""
        now = self._clock()
        window, self._sample_window = self._sample_window, _Window(now)
        return self._figures(window, now) if window.items or window.rows else None

    def idle_figures(self) -> dict[str, Any]:
        """The settings now, with the rates of a lane that has nothing to do."""
        now = self._clock()
        return self._figures(_Window(now), now)

    def _figures(self, window: _Window, now: float) -> dict[str, Any]:
        elapsed = max(now - window.since, 1e-6)
        average = self.claim_size.average_item_ms
        return {
            "claim_size": self.claim_size.setting,
            "concurrency": self.concurrency.setting,
            "ingest_rows": self.ingest.setting,
            "lease_seconds": round(self._lease, 1),
            "hold_off_seconds": self.hold_off.setting,
            "average_item_ms": None if average is None else round(average, 3),
            "ingest_ms": None if self.ingest.latency_ms is None else round(self.ingest.latency_ms, 1),
            "items_sec": round(window.items / elapsed, 1),
            "rows_sec": round(window.rows / elapsed, 1),
            "error_rate": round(window.errors / window.items, 4) if window.items else 0.0,
            "not_found_rate": round(window.not_found / window.items, 4) if window.items else 0.0,
            "retry_rate": round(window.put_off / window.items, 4) if window.items else 0.0,
            "db_latency_ewma": round(self._pace.latency_ms, 2),
            "pool_wait_ms": round(self._pace.wait_ms, 2),
            "pressure": self._machine.pressure(now).value,
        }

    def note_persisted(self, rows: int) -> None:
        """So many planned items were written."""
        self._sample_window.rows += rows


class _Window:
    """Counts since a moment."""

    __slots__ = ("errors", "items", "not_found", "put_off", "rows", "since")

    def __init__(self, since: float) -> None:
        self.since = since
        self.items = self.errors = self.not_found = self.put_off = self.rows = 0

    def count(self, outcomes: Sequence[Outcome]) -> None:
        for outcome in outcomes:
            match outcome.status:
                case ItemStatus.ERROR:
                    self.errors += 1
                case ItemStatus.NOT_FOUND:
                    self.not_found += 1
                case ItemStatus.PENDING if _put_off(outcome):
                    self.put_off += 1
        self.items += len(outcomes)


def _put_off(outcome: Outcome) -> bool:
    """Did the other side ask for patience, or not answer? That is what fewer at once may help."""
    return outcome.status is ItemStatus.PENDING and outcome.error is not None and outcome.code != _UNFORESEEN
