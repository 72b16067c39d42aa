"""The runners of a process: one for each kind and place, and one event loop for all that are async."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence

from penstock.lifecycle.kind import Kind
from penstock.lifecycle.policy import RunsIn
from penstock.runners.contract import EndedCall, Runner
from penstock.runners.event_loop import EventLoopRunner, EventLoopThread
from penstock.runners.in_processes import ProcessRunner
from penstock.runners.threads import ThreadRunner
from penstock.settings import Settings

CONCURRENCY: Mapping[RunsIn, int] = {
    RunsIn.EVENT_LOOP: 32, RunsIn.THREADS: 8, RunsIn.PROCESSES: os.cpu_count() or 1,
}  # fmt: skip
"""How many calls a worker makes at once, unless the kind says otherwise."""


class KindRunners:
    """Makes the runners of lanes."""

    def __init__(self, settings: Settings, concurrency: Mapping[RunsIn, int] = CONCURRENCY) -> None:
        self._settings = settings
        self._concurrency = concurrency
        self._making = threading.Lock()
        self.loop_thread: EventLoopThread | None = None
        """Where coroutines run, once there is a kind that has some."""

    def make(self, kind: Kind, place: RunsIn, on_ended: Callable[[Sequence[EndedCall]], None]) -> Runner:
        """A runner for the steps of a kind that run in this place; called by lanes, in threads of their own."""
        concurrency = kind.policy.concurrency or self._concurrency[place]
        match place:
            case RunsIn.EVENT_LOOP:
                with self._making:
                    if self.loop_thread is None:
                        self.loop_thread = EventLoopThread()
                return EventLoopRunner(self.loop_thread, concurrency, on_ended)
            case RunsIn.THREADS:
                max_abandoned = self._settings.most_abandoned_threads
                return ThreadRunner(concurrency, on_ended, name=f"penstock-{kind.name}", max_abandoned=max_abandoned)
            case RunsIn.PROCESSES:
                return ProcessRunner(concurrency, on_ended, memory_bytes=kind.policy.memory_limit)
