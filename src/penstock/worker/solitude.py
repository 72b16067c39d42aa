"""One lane at a time may have the worker for itself: for a suspect that cannot be run in a process of its own.

The lane that asks gets the worker when all lanes have brought in what they hold, but for outcomes that wait for the end
of somebody else's transaction; meanwhile none of them claims. What it then runs is all that can bring the worker down,
and its row says so: the lease under which it runs alone. If the worker dies under that lease, the rescuer knows that it
was this item, or somebody outside, and blames it the second time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.operations.heartbeat import note_alone
from penstock.runners.contract import Call
from penstock.store.engine import Store

if TYPE_CHECKING:
    from penstock.worker.lane import Lane

_PATIENCE = 60.0
"""How long the other lanes may take to finish what they hold."""
_LATER = 30.0
"""When a suspect is tried again that could not be alone."""
_NOT_ALONE = "it must run alone, and others were still at work"


class Solitude:
    """Which lane has, or waits to have, the worker for itself."""

    def __init__(self, store: Store, lanes: Sequence[Lane]) -> None:
        self._store = store
        self._lanes = lanes
        self._lock = threading.Lock()
        self._lane: Lane | None = None
        self._call: Call | None = None
        self._has_begun = False
        self._until = 0.0

    @property
    def is_wanted(self) -> bool:
        """Does some lane have the worker for itself, or wait for that? Then no lane claims."""
        return self._lane is not None

    def waits(self, lane: Lane) -> bool:
        """Does this lane wait for the others?"""
        return self._lane is lane and not self._has_begun

    def waiting_call(self, lane: Lane) -> Call | None:
        """What this lane will run once it is alone."""
        return self._call if self.waits(lane) else None

    def ask(self, lane: Lane, call: Call) -> None:
        """Run this call as soon as nothing else runs; a second suspect comes later."""
        with self._lock:
            free = self._lane is None
            if free:
                self._lane, self._call, self._has_begun = lane, call, False
                self._until = time.monotonic() + _PATIENCE
        if not free:
            lane.executor.put_off(call, _NOT_ALONE, _LATER)

    def look(self, lane: Lane, *, stopping: bool) -> None:
        """In the lane's own thread, now and then: start when all other lanes hold nothing."""
        call = self._call
        if call is None or not self.waits(lane):
            return
        if stopping or call.stop.set:
            self._has_begun = True
            lane.executor.put_off(call, "stopped before it started", 0.0)
        elif all(other.in_progress() == ([call] if other is lane else []) for other in self._lanes):
            self._store.write(lambda transaction: note_alone(transaction, call.owner), bounded=True)
            self._has_begun = True
            if call.runner is not None:
                call.runner.start([call])
        elif time.monotonic() >= self._until:
            self._has_begun = True
            lane.executor.put_off(call, _NOT_ALONE, _LATER)

    def leave(self, call: Call | None) -> None:
        """The call is over: all lanes continue."""
        if call is None or call is not self._call:
            return
        with self._lock:
            self._lane = self._call = None
        for lane in self._lanes:
            lane.completions.wake()
