"""Slices of work in a process that somebody else has started: a child of a Celery pool, say.

Such a process is lent to us for as long as a slice takes. So nothing is claimed but what the slice allows, in a name of
its own, and when the call returns everything is written. In between it is as in any worker: a lane claims, has calls
made and records; a heartbeat renews leases and drops what was stopped; a watchdog ends what hangs. Lanes, and what
their controllers have learned, are kept from slice to slice.

Plain functions run one at a time, as those who run such pools expect: how many run beside each other is the number of
processes. A kind that says a ``concurrency``, or is async, has as many calls at once in each of them.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Sequence

from penstock.lifecycle.kind import Kinds
from penstock.lifecycle.policy import RunsIn
from penstock.settings import Settings
from penstock.store.engine import Store
from penstock.worker.allowance import Allowance
from penstock.worker.dispatching import require_shared
from penstock.worker.failures import Failures, OnFailure
from penstock.worker.host_load import HostLoad
from penstock.worker.kind_runners import CONCURRENCY, KindRunners
from penstock.worker.lane import Lane
from penstock.worker.lane_samples import LaneSamples
from penstock.worker.lease_keeper import LeaseKeeper
from penstock.worker.loop import Loop
from penstock.worker.quarantine import App
from penstock.worker.solitude import Solitude
from penstock.worker.test_signals import TestSignals

_ONE_AT_A_TIME = {**CONCURRENCY, RunsIn.THREADS: 1, RunsIn.PROCESSES: 1}
_NAME = "slices"
"""Of a lane between two slices; what it claims has the name of the slice."""
_WATCH_SECONDS = 1.0
_LET_GO_SECONDS = 1.0
"""How long handlers that were given up have to notice it."""


class SliceWorker:
    """What one process has for the slices it is asked to work off; for any number of threads."""

    def __init__(
        self, store: Store, kinds: Kinds, settings: Settings, *, app: App, on_failure: Sequence[OnFailure] = ()
    ) -> None:
        require_shared(store)
        self._store = store
        self._kinds = kinds
        self._settings = settings
        self._app = app
        self._failures = Failures(on_failure)
        self._runners = KindRunners(settings, _ONE_AT_A_TIME)
        self._machine = HostLoad()
        self._lanes: list[Lane] = []
        self._free_lanes: defaultdict[str, list[Lane]] = defaultdict(list)
        self._taking = threading.Lock()
        self._solitude = Solitude(store, self._lanes)
        keeper = LeaseKeeper(store, self._lanes, timeout_grace=settings.timeout_grace_seconds)
        for duty in (
            Loop("heartbeat", settings.heartbeat_seconds, keeper.beat),
            Loop("watchdog", min(_WATCH_SECONDS, settings.timeout_grace_seconds), self._watch),
            Loop("samples", settings.sweep_seconds, LaneSamples(store, _process_name(), self._lanes).keep),
        ):
            duty.start()

    def work_off(self, kind: str, *, holder: str, items: int) -> int:
        """Claim up to so many items of a kind in the name of ``holder``, for the length of a slice, and have them run.

        The answer, when all outcomes are written, is how many there were.
        """
        seconds = self._settings.target_slice_ms / 1000.0 * self._settings.safety_factor
        allowance = Allowance(holder, items=min(items, self._settings.claim_max), seconds=seconds)
        lane = self._take_lane(kind)
        try:
            lane.work_off(allowance)
        finally:
            self._failures.flush()
            with self._taking:
                self._free_lanes[kind].append(lane)
        return allowance.claimed_items

    def has_hung_threads(self) -> bool:
        """Do calls still run that were given up, a moment after that? Only the end of this process ends them."""
        deadline = time.monotonic() + _LET_GO_SECONDS
        pause = threading.Event()
        while any(lane.executor.abandoned for lane in self._lanes):
            if time.monotonic() >= deadline:
                return True
            pause.wait(0.01)
        return False

    def is_idle(self) -> bool:
        """Does no thread of this process work off a slice?"""
        with self._taking:
            return sum(map(len, self._free_lanes.values())) == len(self._lanes)

    def _take_lane(self, kind: str) -> Lane:
        with self._taking:
            if self._free_lanes[kind]:
                return self._free_lanes[kind].pop()
            lane = Lane(
                self._store,
                self._kinds.get(kind),
                self._settings,
                _NAME,
                self._runners.make,
                TestSignals(),
                self._machine,
                self._failures,
                solitude=self._solitude,
                app=self._app,
                may_grow=False,
            )
            self._lanes.append(lane)
            return lane

    def _watch(self) -> None:
        if self._runners.loop_thread is not None:
            grace = self._settings.timeout_grace_seconds
            self._runners.loop_thread.look(patience=min(_WATCH_SECONDS, grace), grace=grace)
        for lane in tuple(self._lanes):
            lane.watch()


def _process_name() -> str:
    return f"{socket.gethostname()[:32]}:{os.getpid()}"
