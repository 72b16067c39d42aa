"""A worker: one lane for each kind, one heartbeat, one ear for new work, and the maintenance duties."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from uuid import UUID

import structlog

from penstock.lifecycle.callers import SYSTEM
from penstock.lifecycle.kind import Kind, Kinds
from penstock.lifecycle.policy import RunsIn
from penstock.lifecycle.states import JobState
from penstock.operations import outbox
from penstock.operations.inspect import count_by_state, get_job
from penstock.operations.outbox import Send
from penstock.operations.samples import Gauges, forget_samples, keep_samples
from penstock.operations.sweep import rescue_from, sweep
from penstock.operations.workers import SIGNING_SECONDS, appear, forget_workers, leave
from penstock.runners.contract import EndedCall, Runner
from penstock.runners.event_loop import EventLoopRunner, EventLoopThread
from penstock.runners.in_processes import ProcessRunner
from penstock.runners.threads import ThreadRunner
from penstock.settings import Settings
from penstock.store.engine import Store
from penstock.store.neighbours import Presence
from penstock.store.notices import stopped_jobs
from penstock.store.wakeups import Wakeups
from penstock.worker.lane import Lane
from penstock.worker.lease_keeper import LeaseKeeper
from penstock.worker.loop import Loop
from penstock.worker.machine import Machine
from penstock.worker.points import Points

_SWEEP_RESTS = 20.0
"""A pass that takes long, because dead entries cannot be removed, is made less often: a twentieth of the time."""
_CONCURRENCY = {RunsIn.EVENT_LOOP: 32, RunsIn.THREADS: 8, RunsIn.PROCESSES: os.cpu_count() or 1}
_IN_FLIGHT = (JobState.QUEUED, JobState.RUNNING, JobState.RETRYING)
_log = structlog.get_logger("penstock.worker")


class Worker:
    """Runs the jobs of some kinds until it is stopped."""

    def __init__(
        self,
        store: Store,
        kinds: Kinds,
        settings: Settings,
        *,
        send: Send,
        only: Sequence[str] | None = None,
        job_id: UUID | None = None,
        gauges: Mapping[str, Gauges] | None = None,
    ) -> None:
        self.name = f"{socket.gethostname()[:32]}:{os.getpid()}:{os.urandom(3).hex()}"
        self.points = Points()
        self._store = store
        self._kinds = kinds
        self._settings = settings
        self._send = send
        self._job_id = job_id
        self._gauges = gauges or {}
        self._chosen: list[Kind] = [kinds.get(name) for name in only] if only is not None else list(kinds)
        self._loop_thread: EventLoopThread | None = None
        self._lanes: list[Lane] = []
        self._threads: list[threading.Thread] = []
        self._duties: list[Loop] = []
        self._presence: Presence | None = None
        self._wakeups = Wakeups(store, self._heard)
        self._sampling = Loop("samples", settings.sweep_seconds, self._keep_samples)
        # A kickoff's worker lives for seconds: it would be gone before anybody saw it.
        self._signing = None if job_id is not None else Loop("signing", SIGNING_SECONDS, self._sign)
        self._stopped = threading.Event()
        self._over = threading.Event()

    @property
    def listening(self) -> threading.Event:
        """Set while work submitted elsewhere is heard of at once."""
        return self._wakeups.listening

    def start(self) -> None:
        """Begin to work, in threads of its own."""
        machine = Machine()
        for kind in self._chosen:
            self._lanes.append(
                Lane(
                    self._store,
                    kind,
                    self._settings,
                    self.name,
                    self._make_runner,
                    self.points,
                    machine,
                    job_id=self._job_id,
                )
            )
        keeper = LeaseKeeper(self._store, self._lanes)
        self._duties = [
            Loop("heartbeat", self._settings.heartbeat_seconds, keeper.beat),
            Loop("sweep", self._settings.sweep_seconds, self._sweep, rest=_SWEEP_RESTS),
            Loop("relay", self._settings.heartbeat_seconds, self._relay),
            self._sampling,
        ]
        looking_around = Loop("neighbours", self._settings.heartbeat_seconds, self._look_around)
        looking_around.run_once()  # whoever was here before us may have been killed
        self._duties.append(looking_around)
        self._presence = self._store.neighbours.settle(self.name)
        if self._signing is not None:
            self._signing.run_once()
            self._duties.append(self._signing)
        for lane in self._lanes:
            thread = threading.Thread(target=lane.run, name=f"penstock-lane-{lane.kind.name}", daemon=True)
            self._threads.append(thread)
            thread.start()
        for duty in self._duties:
            duty.start()
        self._wakeups.start(self._presence)
        _log.info("worker started", worker=self.name, kinds=[kind.name for kind in self._chosen])

    def stop(self, grace: float | None = None) -> None:
        """Claim nothing more, finish or hand back what is claimed, and let go of everything.

        A second call, from another thread, shortens the grace of the first.
        """
        if self._over.is_set():
            return
        seconds = self._settings.stop_grace_seconds if grace is None else grace
        for lane in self._lanes:
            lane.stop(seconds)
        if self._stopped.is_set():
            return
        self._stopped.set()
        for thread in self._threads:
            thread.join()
        self._wakeups.stop()
        for duty in self._duties:
            duty.stop()
        self._sampling.run_once()
        if self._signing is not None:
            Loop("signing out", SIGNING_SECONDS, self._sign_out).run_once()
        if self._loop_thread is not None:
            self._loop_thread.close()
        if self._presence is not None:
            self._presence.leave()
        self._over.set()
        _log.info("worker stopped", worker=self.name)

    def run(self, until: threading.Event) -> None:
        """Work until ``until`` is set."""
        self.start()
        try:
            until.wait()
        finally:
            self.stop()

    def run_until_idle(self, timeout: float | None = None, *, grace: float | None = None) -> bool:
        """Work until nothing of these kinds (or of the one job) waits or runs; False when that took longer than
        ``timeout`` seconds. ``grace`` is for what is in hand then.
        """
        self.start()
        try:
            return self._wait_until_idle(None if timeout is None else time.monotonic() + timeout)
        finally:
            self.stop(grace)

    def _wait_until_idle(self, deadline: float | None) -> bool:
        while True:
            for lane in self._lanes:
                left = None if deadline is None else deadline - time.monotonic()
                if not lane.idle.wait(left):
                    return False
            if not self._any_left():
                return True
            for lane in self._lanes:
                lane.idle.clear()
                lane.inbox.wake()

    def _any_left(self) -> bool:
        if self._job_id is not None:
            job_id = self._job_id
            return self._store.read(lambda one: get_job(one, job_id, SYSTEM)).state in _IN_FLIGHT
        names = {kind.name for kind in self._chosen}
        counts = self._store.read(count_by_state)
        return any(count for (kind, state), count in counts.items() if kind in names and state in _IN_FLIGHT)

    def _heard(self, notices: frozenset[str] | None) -> None:
        stopped = stopped_jobs(notices or ())
        for lane in self._lanes:
            if stopped:
                lane.drop(jobs=stopped)
            if notices is None or lane.kind.name in notices:
                lane.inbox.wake()

    def _look_around(self) -> None:
        """Take over from workers of this machine that were killed."""
        for name in self._store.neighbours.dead():
            rescued = rescue_from(self._store, self._kinds, name)
            self._store.neighbours.forget(name)
            _log.warning("a worker of this machine died", worker=name, items_taken_over=rescued)

    def _sweep(self) -> None:
        swept = sweep(self._store, self._kinds, stale_seconds=self._settings.stale_minutes * 60)
        if swept.total:
            _log.info("swept", **asdict(swept))
        self._store.write(outbox.forget_sent)
        self._store.write(forget_samples)
        self._store.write(forget_workers)
        self.points.announce("swept")

    def _keep_samples(self) -> None:
        """Write down what the lanes' controllers chose, and what they saw, of those that had something to do."""
        seen = {lane.kind.name: sample for lane in self._lanes if (sample := lane.steering.sample()) is not None}
        for kind, sample in seen.items():
            sample |= {"held": sum(len(lane.held()) for lane in self._lanes if lane.kind.name == kind)}
            if kind in self._gauges:
                sample |= {"gauges": self._gauges[kind]()}
        if seen:
            self._store.write(lambda one: keep_samples(one, self.name, seen))

    def _sign(self) -> None:
        """Say that this worker is there, and what it has in hand."""
        held = {lane.kind.name: len(lane.held()) for lane in self._lanes}
        self._store.write(lambda one: appear(one, self.name, {"kinds": list(held), "held": held}))
        self.points.announce("signed")

    def _sign_out(self) -> None:
        self._store.write(lambda one: leave(one, self.name), at_once=True)

    def _relay(self) -> None:
        while outbox.relay(self._store, self._send) == outbox.AT_ONCE:
            pass

    def _make_runner(self, kind: Kind, place: RunsIn, ended: Callable[[Sequence[EndedCall]], None]) -> Runner:
        concurrency = kind.policy.concurrency or _CONCURRENCY[place]
        match place:
            case RunsIn.EVENT_LOOP:
                if self._loop_thread is None:
                    self._loop_thread = EventLoopThread()
                return EventLoopRunner(self._loop_thread, concurrency, ended)
            case RunsIn.THREADS:
                return ThreadRunner(concurrency, ended, name=f"penstock-{kind.name}")
            case RunsIn.PROCESSES:
                return ProcessRunner(concurrency, ended, memory_bytes=kind.policy.memory_limit)
