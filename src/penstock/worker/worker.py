"""A worker: one lane for each kind, one heartbeat, one listener for new work, and the maintenance duties.

**Stopping** has a deadline that nothing can move: the grace for what runs, and a few seconds to hand back the rest and
to let go. A handler, a gauge or a subscriber that hangs is left behind in its thread, which does not keep the process.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any
from uuid import UUID

import structlog

from penstock.lifecycle.callers import SYSTEM
from penstock.lifecycle.error_text import describe_error
from penstock.lifecycle.kind import Kind, Kinds
from penstock.lifecycle.schedules import Schedule
from penstock.lifecycle.states import FLOWING
from penstock.lifecycle.transport import Consumer, Transport
from penstock.operations import outbox
from penstock.operations.forgotten_kinds import ForgottenKinds
from penstock.operations.maintenance import LastLook, holds_any, rescue_from, sweep
from penstock.operations.prune import PruneRules
from penstock.operations.read_jobs import any_in_flight, get_job
from penstock.operations.samples import Gauges
from penstock.operations.unsubscribed import UnsubscribedMessages
from penstock.operations.workers import SIGNING_SECONDS, appear, leave
from penstock.settings import Settings
from penstock.store.engine import Store
from penstock.store.notices import stopped_jobs
from penstock.store.notifier import DEAF_POLL_SECONDS, Notifier
from penstock.store.peers import Presence
from penstock.worker.bounded_call import BoundedCall
from penstock.worker.dispatching import Dispatcher
from penstock.worker.duties.pruner import PRUNER_RESTS, PRUNER_SECONDS, Pruner
from penstock.worker.duties.scheduler import SECONDS as SCHEDULER_SECONDS
from penstock.worker.duties.scheduler import Scheduler
from penstock.worker.failures import LAST_WORDS_SECONDS, Failures, OnFailure
from penstock.worker.host_load import HostLoad
from penstock.worker.kind_runners import KindRunners
from penstock.worker.lane import Lane
from penstock.worker.lane_samples import LaneSamples
from penstock.worker.lease_keeper import LeaseKeeper
from penstock.worker.loop import Loop
from penstock.worker.quarantine import App
from penstock.worker.solitude import Solitude
from penstock.worker.test_signals import TestSignals
from penstock.worker.watchdog import look_at_duties

_SWEEP_RESTS = 20.0
"""A pass that takes long, because dead entries cannot be removed, is made less often: a twentieth of the time."""
STOP_SECONDS = 5.0
"""After its grace, how long a stopping worker takes at most."""
_LAST_SECONDS = 2.0
_BLOCKED_SECONDS = 5.0
_WATCH_SECONDS = 1.0
_BEATS_TO_RENEW = 2.0
"""How many heartbeats a living worker needs to renew its leases once it can."""
_FIRST_LOOK_SECONDS = 0.01
_LONGEST_LOOK_SECONDS = 0.25
"""How often to check whether items that others hold have ended, at first and after a while."""
_log = structlog.get_logger("penstock.worker")


class Worker:
    """Runs the jobs of some kinds until it is stopped."""

    def __init__(
        self,
        store: Store,
        kinds: Kinds,
        settings: Settings,
        *,
        transport: Transport,
        only: Sequence[str] | None = None,
        job_id: UUID | None = None,
        gauges: Mapping[str, Gauges] | None = None,
        app: App | None = None,
        on_failure: Sequence[OnFailure] = (),
        on_sweep: Sequence[Callable[[], None]] = (),
        dispatchers: Sequence[Dispatcher] = (),
        prune_rules: PruneRules | None = None,
        schedules: Sequence[Schedule] = (),
    ) -> None:
        self.name = f"{socket.gethostname()[:32]}:{os.getpid()}:{os.urandom(3).hex()}"
        self.signals = TestSignals()
        self._store = store
        self._kinds = kinds
        self._settings = settings
        self._transport = transport
        self._job_id = job_id
        self._app = app
        self._failures = Failures(on_failure)
        self._on_sweep = on_sweep
        self._consumer: Consumer | None = None
        self._chosen_kinds: list[Kind] = [kinds.get(name) for name in only] if only is not None else list(kinds)
        self._runners = KindRunners(settings)
        self._dispatchers = dispatchers
        self._lanes: list[Lane] = []
        self._samples = LaneSamples(store, self.name, self._lanes, gauges)
        self.solitude = Solitude(store, self._lanes)
        self._threads: list[threading.Thread] = []
        self._duties: list[Loop] = []
        self._presence: Presence | None = None
        self._wakeups = Notifier(store, self._on_notices)
        self._sampling = Loop("samples", settings.sweep_seconds, self._sample)
        # A kickoff's worker lives for seconds: it would be gone before anybody saw it.
        self._signing = None if job_id is not None else Loop("signing", SIGNING_SECONDS, self._sign)
        # Nor does such a one prune: it is there for one job.
        self._pruner = (
            None if job_id is not None or prune_rules is None else Pruner(store, prune_rules, settings.files_directory)
        )
        self._news = threading.Event()
        self._stop_event = threading.Event()
        self._over = threading.Event()
        self._deadline = 0.0
        self._hanging: set[str] = set()
        self._unsubscribed = UnsubscribedMessages()
        self._forgotten_kinds = ForgottenKinds()
        self._scheduler = Scheduler(store, kinds, schedules, max_bytes=settings.max_payload_bytes)
        self._last_look = LastLook(_BEATS_TO_RENEW * settings.heartbeat_seconds)

    @property
    def listening(self) -> threading.Event:
        """Set while notices of work submitted elsewhere arrive."""
        return self._wakeups.listening

    def start(self) -> None:
        """Begin to work, in threads of its own."""
        self._start(consumes=True)

    def _start(self, *, consumes: bool) -> None:
        machine = HostLoad()
        for kind in self._chosen_kinds:
            self._lanes.append(
                Lane(
                    self._store,
                    kind,
                    self._settings,
                    self.name,
                    self._runners.make,
                    self.signals,
                    machine,
                    self._failures,
                    solitude=self.solitude,
                    app=self._app,
                    job_id=self._job_id,
                    poll_seconds=self._poll_seconds,
                )
            )
        keeper = LeaseKeeper(self._store, self._lanes, timeout_grace=self._settings.timeout_grace_seconds)
        self._duties = [
            Loop("heartbeat", self._settings.heartbeat_seconds, keeper.beat),
            Loop("watchdog", min(_WATCH_SECONDS, self._settings.timeout_grace_seconds), self._watch),
            Loop("sweep", self._settings.sweep_seconds, self._sweep, rest=_SWEEP_RESTS),
            Loop("relay", self._settings.heartbeat_seconds, self._relay),
            self._sampling,
        ]
        if self._pruner is not None and consumes:
            self._duties.append(Loop("pruner", PRUNER_SECONDS, self._prune, rest=PRUNER_RESTS))
        # Who works for a while only leaves messages of others to those who stay.
        self._consumer = self._transport.open_consumer() if consumes and self._job_id is None else None
        if self._consumer is not None:
            self._duties += [
                Loop("messages", 0.0, self._consumer.poll),
                Loop("subscribers", 0.0, self._consumer.handle),
            ]
        if self._job_id is None:
            scheduling = Loop("scheduler", SCHEDULER_SECONDS, self._scheduler.look)
            scheduling.run_once()  # what came due while nobody worked
            self._duties.append(scheduling)
        looking_around = Loop("neighbours", self._settings.heartbeat_seconds, self._look_around)
        looking_around.run_once()  # whoever was here before us may have been killed
        self._duties.append(looking_around)
        self._presence = self._store.peers.settle(self.name)
        if self._signing is not None:
            self._signing.run_once()
            self._duties.append(self._signing)
        for lane in self._lanes:
            thread = threading.Thread(target=lane.run, name=f"penstock-lane-{lane.kind.name}", daemon=True)
            self._threads.append(thread)
            thread.start()
        for duty in self._duties:
            duty.start()
        for dispatcher in self._dispatchers:
            dispatcher.start()
        self._wakeups.start(self._presence)
        _log.info("worker started", worker=self.name, kinds=[kind.name for kind in self._chosen_kinds])

    def stop(self, grace: float | None = None) -> bool:
        """Claim nothing more, finish or hand back what is claimed, and let go of everything.

        It takes the grace and a few seconds at most, whatever hangs. False when something in hand could not be handed
        back: its leases run out by themselves then. A second call, from another thread, shortens the grace of the
        first and returns at once.
        """
        if self._over.is_set():
            return True
        seconds = self._settings.stop_grace_seconds if grace is None else grace
        self._deadline = time.monotonic() + seconds + STOP_SECONDS
        for lane in self._lanes:
            lane.stop(seconds)
        if self._stop_event.is_set():
            return True
        self._stop_event.set()
        for dispatcher in self._dispatchers:
            dispatcher.stop()
        handed_back = self._join_lanes()
        for duty in self._duties:
            duty.stop()
        threads: Sequence[Loop | Dispatcher] = (*self._duties, *self._dispatchers)
        for thread in threads:
            if not thread.join(self._share()):
                _log.warning("a duty hangs, and is left behind", duty=thread.name)
        last: list[tuple[str, Callable[[], None]]] = [("wakeups", self._wakeups.stop), ("samples", self._last_sample)]
        if self._consumer is not None:
            last.append(("messages", self._consumer.close))
        if self._signing is not None:
            last.append(("signing out", self._sign_out))
        if self._presence is not None:
            last.append(("presence", self._presence.leave))
        for name, action in last:
            self._do_last(name, action)
        # It bounds its own waits, and half of the time that is left is more than its share as long as nothing hangs.
        self._failures.close(max(0.1, min(LAST_WORDS_SECONDS, (self._deadline - time.monotonic()) / 2)))
        if self._runners.loop_thread is not None:
            self._runners.loop_thread.close(self._share())
        self._over.set()
        _log.info("worker stopped", worker=self.name, abandoned=sum(lane.executor.abandoned for lane in self._lanes))
        return handed_back

    def _share(self) -> float:
        """How long one of the last steps may take: a part of the time left, so that the others get some."""
        return max(0.1, min(_LAST_SECONDS, (self._deadline - time.monotonic()) / 2))

    def _join_lanes(self) -> bool:
        """Wait for the lanes; what one that hangs still holds is handed back without it."""
        handed_back = True
        for lane, thread in zip(self._lanes, self._threads, strict=False):
            # In small steps: a second call of stop may bring the deadline forward.
            while thread.is_alive() and time.monotonic() < self._deadline - _LAST_SECONDS:
                thread.join(0.1)
            if thread.is_alive():
                _log.error(
                    "a lane hangs, and is left behind", kind=lane.kind.name, items=len(lane.executor.calls_in_hand())
                )
                handed_back &= self._do_last("hand back", lane.hand_back)
            elif lane.executor.calls_in_hand():
                handed_back = False
        return handed_back

    def _do_last(self, name: str, action: Callable[[], None]) -> bool:
        """Run a last step that may fail or hang; it is not repeated."""
        try:
            BoundedCall(action, name=name)(self._share())
        except BaseException as error:  # noqa: BLE001 - nothing keeps a worker from stopping, and it is logged
            _log.warning("not done while stopping", what=name, error=describe_error(error))
            return False
        return True

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
        self._start(consumes=False)
        try:
            return self._wait_until_idle(None if timeout is None else time.monotonic() + timeout)
        finally:
            self.stop(grace)

    def _wait_until_idle(self, deadline: float | None) -> bool:
        """Until the lanes are idle and nothing is left.

        What is left then is somebody else's: an item in another worker's hands, a follower of such a job. Its end is
        not announced, so it is looked for, less and less often while nothing is heard.
        """
        wait = _FIRST_LOOK_SECONDS
        while True:
            for lane in self._lanes:
                if not lane.idle.wait(_seconds_left(deadline)):
                    return False
            if not self._any_left():
                return True
            self._over.wait(_bound_wait(_FIRST_LOOK_SECONDS, deadline))  # however much there is to hear
            if self._news.wait(_bound_wait(wait, deadline)):
                wait = _FIRST_LOOK_SECONDS
            else:
                wait = min(2.0 * wait, _LONGEST_LOOK_SECONDS)
            self._news.clear()
            for lane in self._lanes:
                lane.idle.clear()
                lane.completions.wake()

    def _any_left(self) -> bool:
        if self._job_id is not None:
            job_id = self._job_id
            job = self._store.read(lambda transaction: get_job(transaction, job_id, SYSTEM), single_statement=True)
            return job.state in FLOWING
        names = [kind.name for kind in self._chosen_kinds]
        return self._store.read(lambda transaction: any_in_flight(transaction, names), single_statement=True)

    def _poll_seconds(self) -> float:
        """How often a lane polls for work: more often while no notices arrive."""
        usual = self._settings.poll_seconds
        return usual if self._wakeups.listening.is_set() else min(usual, DEAF_POLL_SECONDS)

    def _on_notices(self, notices: frozenset[str] | None) -> None:
        job_ids = stopped_jobs(notices or ())
        for lane in self._lanes:
            if job_ids:
                lane.executor.drop(jobs=job_ids)
            if notices is None or lane.kind.name in notices:
                lane.completions.wake()
                self._news.set()
        for dispatcher in self._dispatchers:
            if notices is None or not notices.isdisjoint(dispatcher.kinds):
                dispatcher.wake()
        if job_ids:
            self._news.set()

    def _look_around(self) -> None:
        """Take over from workers of this machine that were killed."""
        for name in self._store.peers.dead():
            rescue_from(self._store, self._kinds, name, self._settings.suspect_deaths)
            if not holds_any(self._store, name):  # of a job that somebody has locked: the next look comes by again
                self._store.peers.forget(name)

    def _sweep(self) -> None:
        swept = sweep(
            self._store,
            self._kinds,
            stale_seconds=self._settings.stale_minutes * 60,
            suspect_deaths=self._settings.suspect_deaths,
            last_look=self._last_look,
        )
        if swept.total:
            (_log.warning if swept.leases_expired else _log.info)("swept", **asdict(swept))
        days = self._settings.unsubscribed_message_days
        self._unsubscribed.look_after(self._store, self._transport.topics(), days=days)
        self._forgotten_kinds.look(self._store, [kind.name for kind in self._kinds])
        for hook in self._on_sweep:
            self._call_hook(hook)
        self.signals.announce("swept")

    def _prune(self) -> None:
        if self._pruner is not None and self._pruner.run():
            self.signals.announce("pruned")

    def _call_hook(self, hook: Callable[[], None]) -> None:
        """What an application does in a pass; nothing but a line in the log, where that fails."""
        try:
            hook()
        except BaseException as error:  # noqa: BLE001 - the next pass tries again, and other hooks have theirs
            _log.warning("what an application does in each sweep failed", error=describe_error(error))

    def _sample(self) -> None:
        self._failures.flush()
        self._samples.keep()

    def _last_sample(self) -> None:
        self._sampling.run_once()

    def _watch(self) -> None:
        """Check everything the lanes hold; see :mod:`penstock.worker.watchdog`."""
        if self._runners.loop_thread is not None:
            grace = self._settings.timeout_grace_seconds
            self._runners.loop_thread.look(patience=min(_BLOCKED_SECONDS, grace), grace=grace)
        for lane in self._lanes:
            lane.watch()
        look_at_duties(self._duties, self._hanging)
        self.signals.announce("watched")

    def _sign(self) -> None:
        """Record that this worker is alive, what it holds, what it gave up that still runs, and how its lanes are set:
        of those that have nothing to do there are no samples.
        """
        held_items = {lane.kind.name: len(lane.executor.calls_in_hand()) for lane in self._lanes}
        abandoned = {lane.kind.name: lane.executor.abandoned for lane in self._lanes}
        topics = sorted(self._transport.topics())
        lanes = self._samples.idle_figures()
        dispatched_kinds = (kind for dispatcher in self._dispatchers for kind in dispatcher.kinds)
        kinds = list(dict.fromkeys((*held_items, *dispatched_kinds)))
        data: dict[str, Any] = {
            "kinds": kinds, "held": held_items, "abandoned": abandoned, "topics": topics, "lanes": lanes,
        }  # fmt: skip
        health = None if self._consumer is None else self._consumer.health()
        if health is not None:
            data["transport"] = asdict(health)
        self._store.write(lambda transaction: appear(transaction, self.name, data), bounded=True)
        self.signals.announce("signed")

    def _sign_out(self) -> None:
        self._store.write(lambda transaction: leave(transaction, self.name), bounded=True)

    def _relay(self) -> None:
        # As long as something goes: how many one pass takes depends on how large they are.
        while outbox.relay_through(self._store, self._transport) and not self._stop_event.is_set():
            pass


def _seconds_left(deadline: float | None) -> float | None:
    return None if deadline is None else deadline - time.monotonic()


def _bound_wait(seconds: float, deadline: float | None) -> float:
    seconds_left = _seconds_left(deadline)
    return seconds if seconds_left is None else min(seconds, seconds_left)
