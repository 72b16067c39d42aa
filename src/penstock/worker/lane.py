"""One kind's way through a worker: claim a slice, run it, write the outcomes back, again and again.

The lane's thread talks to the database for the kind; the runners make the calls meanwhile, and turn what was returned
or raised into outcomes. When a slice's outcomes come in, the next slice is claimed and handed to the runners before
they are written, or at the same time where a database server works beside us: so the handlers of one slice run while
the one before is recorded.

What can go wrong here, and what happens then: a claim that fails took nothing. A record that fails for want of the
database is kept and tried again, until it lands or the leases run out and somebody else has the items. Between two such
tries there is a second at most, and none once anybody in this process has reached the database. What else can keep an
outcome from being written is the :mod:`penstock.worker.recorder`'s.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from itertools import groupby
from operator import attrgetter
from uuid import UUID

import structlog

from penstock.errors import PenstockError, Stopped, StoreLocked, StoreRefused, StoreUnavailable
from penstock.lifecycle import outcomes
from penstock.lifecycle.callers import worker
from penstock.lifecycle.job import ClaimedItem
from penstock.lifecycle.kind import Kind
from penstock.lifecycle.outcomes import Outcome
from penstock.lifecycle.policy import RunsIn
from penstock.lifecycle.states import ItemRole, ItemStatus
from penstock.operations.claim import Care, Claim, claim
from penstock.operations.maintenance import mend_postponed
from penstock.operations.record import ItemResult
from penstock.operations.watermarks import Watermarks, look
from penstock.runners.contract import Call, EndedCall, Runner, Unread
from penstock.settings import Settings
from penstock.store.engine import Store
from penstock.worker.call_outcome import outcome_of_call
from penstock.worker.calls import Calls
from penstock.worker.completion_buffer import CompletionBuffer
from penstock.worker.concluding import AnswerReader
from penstock.worker.controllers import Controllers
from penstock.worker.failures import Failure, Failures, failure_of
from penstock.worker.host_load import HostLoad
from penstock.worker.quarantine import App, Quarantine
from penstock.worker.recorder import Recorded, Recorder
from penstock.worker.slice_log import log_slice
from penstock.worker.solitude import Solitude
from penstock.worker.test_signals import TestSignals
from penstock.worker.watchdog import watch

RunnerFor = Callable[[Kind, RunsIn, Callable[[Sequence[EndedCall]], None]], Runner]
_LEAST_WAIT = 0.001
_LONGEST_SHUT_OUT = 0.25
_FIRST_WAIT = 0.1
_LONGEST_WAIT = 30.0
_LONGEST_WAIT_FOR_STORE = 1.0
"""Many jobs may wait behind a database that was away, and somebody behind each of them."""
_LET_GO_SECONDS = 1.0
"""After a stopping lane has interrupted a call, how long it waits for the runner to say so."""
_SOLITUDE_LOOKED_FOR = 0.05
"""How often a lane that waits to be alone looks whether it is."""
_ROLE = attrgetter("role")
_log = structlog.get_logger("penstock.lane")


def most_slots(kind: Kind, slots: int) -> int:
    """How far the concurrency may grow: to what the kind says; what none says may grow, but not processes."""
    if kind.policy.concurrency is not None or kind.runs_in(ItemRole.ITEM) is RunsIn.PROCESSES:
        return slots
    return 4 * slots


class Lane:
    """Everything one worker does for one kind."""

    def __init__(
        self,
        store: Store,
        kind: Kind,
        settings: Settings,
        worker_name: str,
        runner_for: RunnerFor,
        signals: TestSignals,
        machine: HostLoad,
        failures: Failures,
        *,
        solitude: Solitude,
        app: App | None = None,
        job_id: UUID | None = None,
        poll_seconds: Callable[[], float] | None = None,
    ) -> None:
        self.kind = kind
        self._poll_seconds = poll_seconds or (lambda: settings.poll_seconds)
        self._solitude = solitude
        self._quarantine = Quarantine(kind, app, self.take_in)
        self._careful = False
        self._apart: set[int] = set()
        self._job_id = job_id
        self.completions = CompletionBuffer()
        self.idle = threading.Event()
        self._store = store
        self._settings = settings
        self._most = settings.max_payload_bytes
        self._recorder = Recorder(store, kind.name, worker(worker_name))
        self._worker_name = worker_name
        self._runner_for = runner_for
        self._runners: dict[RunsIn, Runner] = {}
        self._by_role: dict[ItemRole, Runner] = {}
        self._points = signals
        self._told_of = failures
        self.late_outcomes = 0
        """Outcomes that came when the item was somebody else's already, since the worker began."""
        self.store_errors = 0
        """How often the database failed this lane, since the worker began."""
        self._writer: Executor | None = None
        if store.dialect.writes_beside_others:
            self._writer = ThreadPoolExecutor(1, thread_name_prefix=f"penstock-writer-{kind.name}")
        self._held: dict[int, Call] = {}
        self._unwritten: list[ItemResult] = []
        self._stopping = threading.Event()
        self._pause = threading.Event()
        self._stop_at: float | None = None
        self._interrupted = False
        self._concluding = AnswerReader(self._conclude_apart, name=f"penstock-outcomes-{kind.name}")
        self.missing: set[Call] = set()
        self._claim_again_at = 0.0
        self._in_line = True
        self._failures = 0
        self._begun = False
        self._shut_out = 0
        self._marks = Watermarks()
        self._items_runner = self._runner(ItemRole.ITEM)
        slots = self._items_runner.concurrency
        self.controllers = Controllers(
            kind, settings, store.latency, machine, slots=slots, most_slots=most_slots(kind, slots)
        )
        self._steps = Calls(store, kind, settings, self.controllers)
        self._busy_since: float | None = None

    # The loop -----------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Work until stopped and everything in hand is written back."""
        while not self._is_over():
            try:
                self.run_once()
                self._failures = 0
            except BaseException as error:  # noqa: BLE001 - a lane must outlive its own mistakes, and they are logged
                self._failures += 1
                self.store_errors += isinstance(error, StoreUnavailable | StoreRefused)
                away = isinstance(error, StoreUnavailable)
                longest = _LONGEST_WAIT_FOR_STORE if away else _LONGEST_WAIT
                wait = min(longest, _FIRST_WAIT * 2.0 ** min(self._failures, 10)) * (0.5 + random.random() / 2)
                unforeseen = None if isinstance(error, PenstockError) else error
                _log.warning(
                    "the lane's work failed; trying again",
                    kind=self.kind.name,
                    error=str(error),
                    wait=wait,
                    exc_info=unforeseen,
                )
                self._points.announce("failed")
                if self._stopping.is_set() and self._failures > 3:
                    break  # the leases will run out, and another worker goes on
                self._wait_after_failure(min(wait, 1.0) if self._stopping.is_set() else wait, away=away)
        for runner in self.runners:
            runner.close()
        if self._writer is not None:
            self._writer.shutdown()

    def _is_over(self) -> bool:
        """Is nothing left to do? What somebody else's transaction keeps us from writing is left when the time is up."""
        if not self._stopping.is_set():
            return False
        if not self._held and not self._unwritten:
            return True
        if self.in_progress() or self._stop_at is None or time.monotonic() < self._stop_at + _LET_GO_SECONDS:
            return False
        _log.warning("outcomes could not be written; their items run again", kind=self.kind.name, items=len(self._held))
        return True

    def _wait_after_failure(self, seconds: float, *, away: bool) -> None:
        """Wait; whoever reaches the database meanwhile wakes a lane that waits for it."""
        if away and not self._stopping.is_set():
            self.completions.wait_for_wake(seconds)
        else:
            self._pause.wait(seconds)

    def run_once(self) -> None:
        """Wait for something to do, and do it once."""
        ended = self.completions.take(
            timeout=self._patience(),
            gather=self._settings.flush_ms / 1000.0,
            enough=self.controllers.claim_size.setting,
        )
        self._unwritten += ended
        if self.completions.take_wake():
            self._claim_again_at = 0.0
        self._solitude.look(self, stopping=self._stopping.is_set())
        if self._stopping.is_set():
            self._wind_down()
        due = not self._stopping.is_set() and self._has_room() and time.monotonic() >= self._due_at
        writes = bool(self._unwritten) and not self._recorder.due_in(self._unwritten)
        if due and writes and self._writer is not None:
            self._claim_while_writing(self._writer)
            return
        if due:
            self._claim()
        if writes:
            self._written(self._recorder.record(self._unwritten), self._calls_of(self._unwritten))

    def _claim_while_writing(self, writer: Executor) -> None:
        """A database server can do both at once; what each of them changes here, it changes in this thread."""
        # The claim may take an item again whose failed try has just been recorded: these are the calls before it.
        calls = self._calls_of(self._unwritten)
        writing = writer.submit(self._recorder.record, self._unwritten)
        try:
            self._claim()
        finally:
            self._written(writing.result(), calls)

    def _calls_of(self, ended: Sequence[ItemResult]) -> list[Call | None]:
        """The calls that ended so; None for one that is not ours any more, or that we have claimed again since."""
        calls = [self._held.get(one.item_id) for one in ended]
        return [
            call if call is not None and call.owner.lease is one.lease else None
            for call, one in zip(calls, ended, strict=True)
        ]

    def _patience(self) -> float:
        """How long there is nothing to do, unless somebody says otherwise."""
        longest = self._poll_seconds()
        if self._unwritten:
            longest = min(longest, self._recorder.due_in(self._unwritten))
        if self._stopping.is_set():
            return min(longest, 0.05) if self._held else 0.0
        if self._solitude.waits(self):
            return min(longest, _SOLITUDE_LOOKED_FOR)
        if not self._has_room():
            return longest
        return max(0.0, min(self._due_at - time.monotonic(), longest))

    @property
    def _due_at(self) -> float:
        """When to claim next; nobody's wake shortens a pause that the other side needs."""
        return max(self._claim_again_at, self.controllers.claim_not_before)

    def _has_room(self) -> bool:
        """Is less than half a slice out, or a place in the runner free? With care, only the latter counts."""
        if self._solitude.wanted or self._items_runner.is_exhausted:
            return False
        out = self._out()
        if self._careful:
            return out < self.controllers.slots
        return out <= self.controllers.claim_size.setting // 2 or out < self.controllers.slots

    def _out(self) -> int:
        """How much the kind's runner has to do; what is quarantined has a place of its own."""
        return max(0, self._in_hand - len(self._apart))

    @property
    def _in_hand(self) -> int:
        """How many items are held whose outcome is not known yet."""
        return max(0, len(self._held) - len(self._unwritten))

    # Claiming -----------------------------------------------------------------------------------------------------

    def _claim(self) -> None:
        if not self._begun:
            # The sweep comes later; what the clock has put off while nobody worked need not wait for it.
            self._store.write(lambda transaction: mend_postponed(transaction, self.kind), bounded=True)
            self._begun = True
        size = self.controllers.claims()
        out = self._out()
        if self.controllers.claim_size.average_item_ms is None:
            size = max(1, self.controllers.slots - out)
        length = self.controllers.lease_seconds(size + out)
        claimed = claim(
            self._store,
            self.kind.name,
            self._worker_name,
            size=size,
            lease_seconds=length,
            care=Care(self.controllers.slots - out, self._settings.suspect_deaths),
            job_id=self._job_id,
            marks=self._marks,
        )
        self._careful = claimed.careful
        now = time.monotonic()
        self._claim_again_at = now + self._wait_after(claimed)
        self._in_line = claimed.wait is not None
        if not claimed.items:
            self._rest()
            return
        self.idle.clear()
        if self._busy_since is None:
            self._busy_since = now
        if claimed.suspect_deaths:
            self._start_suspect(claimed.items[0], claimed.suspect_deaths, now + length / 2)
        else:
            self._start(claimed.items, now + length / 2)
        self._points.announce("claimed")
        if self._job_id is None and self._store.dialect.claims_in_one_statement and self._marks.look_due:
            look(self._store, self.kind.name, self._marks)

    def _wait_after(self, claimed: Claim) -> float:
        """How long until the next claim, if nobody says otherwise."""
        sure_in = self._marks.sure_in
        longest = self._poll_seconds() if sure_in is None else min(sure_in, self._poll_seconds())
        wait = longest if claimed.wait is None else min(claimed.wait, longest)
        if claimed.items:
            self._shut_out = 0
            return wait
        # What is due but locked is asked for again soon: another claim is quick, somebody's transaction may not be.
        self._shut_out = min(self._shut_out + 1, 10) if claimed.wait == 0.0 else 0
        return max(wait, min(_LEAST_WAIT * 2.0**self._shut_out, _LONGEST_SHUT_OUT))

    def _start(self, items: Sequence[ClaimedItem], renew_at: float) -> None:
        self.completions.hand_out(len(items))
        for role, alike in groupby(items, _ROLE):
            self._start_alike(role, list(alike), renew_at)

    def _start_alike(self, role: ItemRole, items: Sequence[ClaimedItem], renew_at: float) -> None:
        """Start items of one role. What fails here (the kind has lost a step, say) is the outcome of these items."""
        calls = [self._steps.call(one, renew_at) for one in items]
        self._held.update((call.owner.item_id, call) for call in calls)
        try:
            runner = self._runner(role)
            for call in calls:
                call.runner = runner
            runner.start(calls)
        except Exception as error:  # noqa: BLE001 - whatever keeps a call from starting is its outcome
            self.take_in([(call, None, error) for call in calls])

    def _start_suspect(self, item: ClaimedItem, deaths: int, renew_at: float) -> None:
        """In a process of its own, if the kind's runner has none for it anyway; where there can be none, alone."""
        if self.kind.runs_in(item.role) is RunsIn.PROCESSES:
            self._start([item], renew_at)
            return
        _log.warning(
            "an item is a suspect and is run alone", kind=self.kind.name, item=item.item_id, worker_deaths=deaths
        )
        self.completions.hand_out(1)
        call = self._steps.call(item, renew_at)
        self._held[item.item_id] = call
        try:
            apart = self._quarantine.call(item, deaths, renew_at)
            if apart is None or apart.runner is None:
                call.runner = self._runner(item.role)
                self._solitude.ask(self, call)
                return
            self._held[item.item_id] = call = apart
            self._apart.add(item.item_id)
            apart.runner.start([apart])
        except Exception as error:  # noqa: BLE001 - whatever keeps a call from starting is its outcome
            self.take_in([(call, None, error)])

    def _runner(self, role: ItemRole) -> Runner:
        runner = self._by_role.get(role)
        if runner is None:
            place = self.kind.runs_in(role)
            runner = self._runners.get(place) or self._runner_for(self.kind, place, self.take_in)
            self._by_role[role] = runner
            # Another thread may be going through those there are: it keeps the ones it has begun with.
            self._runners = {**self._runners, place: runner}
        return runner

    def _rest(self) -> None:
        """Nothing in hand, and nothing in line: idle until woken."""
        if not self._held and not self._in_line:
            self._busy_since = None
            self.idle.set()
            self._points.announce("idle")

    # Recording ----------------------------------------------------------------------------------------------------

    def take_in(self, ended: Sequence[EndedCall]) -> None:
        """In the runner's thread, while this lane's is with the database."""
        concluded: list[ItemResult] = []
        for one in ended:
            if self._asks_somebody(one):
                self._concluding.put(one)
            else:
                concluded += self._conclude(one)
        self.completions.put(concluded)

    def _asks_somebody(self, ended: EndedCall) -> bool:
        """Does concluding it run code that is not ours, and that others must not wait for?"""
        _, value, error = ended
        if error is None:
            return type(value) is Unread
        return self.kind.classify is not None and type(error) is not Stopped

    def _conclude(self, ended: EndedCall) -> Sequence[ItemResult]:
        call, value, error = ended
        apart = self._quarantine.judge if self._quarantine.has(call) else None
        return self._ending(call, outcome_of_call(self.kind, call, value, error, self._most, apart=apart))

    def _conclude_apart(self, ended: EndedCall) -> None:
        self.completions.put(self._conclude(ended))

    def _ending(self, call: Call, outcome: Outcome) -> Sequence[ItemResult]:
        """The end of a call; nothing when it has ended already."""
        claimed: ClaimedItem = call.owner
        if not call.end():
            if outcome != outcomes.released():  # of one that was told to stop, that is what is expected
                _log.info(
                    "a call that was given up has ended, which changes nothing",
                    kind=self.kind.name,
                    job=str(claimed.job_id),
                    item=claimed.item_id,
                )
            return ()
        return (ItemResult(claimed.item_id, claimed.lease, claimed.job_id, claimed.role, outcome),)

    def put_off(self, call: Call, why: str, delay: float) -> None:
        """A call that was not made: its item comes again later."""
        self.end(call, outcomes.postponed(why, "POSTPONED", delay))

    def _written(self, recorded: Recorded, calls: Sequence[Call | None]) -> None:
        batch, self._unwritten = self._unwritten, recorded.left
        if recorded.left:
            left = {(one.item_id, one.lease) for one in recorded.left}
            written = [pair for pair in zip(batch, calls, strict=True) if (pair[0].item_id, pair[0].lease) not in left]
            if not written:
                return
            batch, calls = [one for one, _ in written], [call for _, call in written]
        landed = recorded.landed
        came_back = False
        suspects = bool(self._apart) or self._solitude.wanted
        failures: list[Failure] = []
        for (item_id, _, _, _, outcome), call in zip(batch, calls, strict=True):
            if call is not None:
                if self._held.get(item_id) is call:
                    del self._held[item_id]
                    self._apart.discard(item_id)
                if suspects:
                    self._solitude.leave(call)
                if item_id in landed and (failure := failure_of(call.owner, outcome)) is not None:
                    failures.append(failure)
            came_back = came_back or outcome.status is ItemStatus.PENDING
        now = time.monotonic()
        elapsed_ms = None
        if self._busy_since is not None:
            elapsed_ms = (now - self._busy_since) * 1000.0
            self._busy_since = now if self._in_hand else None
        slots = self.controllers.slots
        self.controllers.recorded(
            [one.outcome for one in batch], elapsed_ms=elapsed_ms, waiting=self._in_hand >= slots or self._in_line
        )
        if self.controllers.slots != slots:
            self._items_runner.resize(self.controllers.slots)
        log_slice(self.kind.name, batch)
        self._told_of.report(failures)
        lost = len(batch) - len(landed)
        if lost:
            self.late_outcomes += lost
            _log.warning("late outcomes changed nothing", kind=self.kind.name, items=lost)
        self._in_line = self._in_line or came_back
        if came_back or (self._in_line and not self._in_hand):
            self._claim_again_at = 0.0  # nobody waits for us now: a claim later might be in somebody's way
        self._points.announce("recorded")
        self._rest()

    # What others ask of it ----------------------------------------------------------------------------------------

    def held(self) -> list[Call]:
        """What is in this worker's hands now, for whoever renews the leases."""
        return list(self._held.values())

    def in_progress(self) -> list[Call]:
        """The same, but for those whose outcome only waits for the end of somebody else's transaction."""
        waiting = self._recorder.waiting
        return [call for call in self.held() if call.owner.item_id not in waiting]

    def drop(self, *, jobs: Collection[UUID] = (), items: Collection[int] = ()) -> None:
        """Stop the calls of jobs that were stopped, or of items that are not ours any more."""
        self._interrupt([one for one in self.held() if one.owner.job_id in jobs or one.owner.item_id in items])

    def stop(self, grace: float) -> None:
        """Claim nothing more; hand back what has not started, and after ``grace`` seconds what has."""
        self._stop_at = time.monotonic() + grace
        self._stopping.set()
        self._pause.set()
        self._stop_waiting()
        self.completions.wake()

    @property
    def runners(self) -> tuple[Runner, ...]:
        """The runners there are now; the lane's thread may add one at any time."""
        apart = self._quarantine.runner
        return tuple(self._runners.values()) if apart is None else (*self._runners.values(), apart)

    @property
    def set_aside(self) -> Call | None:
        """The call that waits until this lane has the worker for itself; no runner knows it yet."""
        return self._solitude.waiting_call(self)

    @property
    def abandoned(self) -> int:
        """Calls that were given up and still run."""
        return sum(runner.abandoned for runner in self.runners) + self._concluding.abandoned

    def watch(self) -> None:
        """One look of the watchdog at what is in hand; in its thread."""
        watch(self, self._concluding, self._settings.timeout_grace_seconds)

    def end(self, call: Call, outcome: Outcome) -> None:
        """End a call whatever its runner does; in any thread."""
        self.completions.put(self._ending(call, outcome))

    def overrun(self, call: Call, error: BaseException) -> None:
        """A call was ended from outside for this reason; the kind may know better what that means."""
        self.take_in([(call, None, error)])

    def hand_back(self) -> None:
        """Write how everything in hand ended, or hand it back; for when the lane's own thread hangs, in another."""
        ended = {
            one.item_id: one for one in (*self._unwritten, *self.completions.take(timeout=0.0, gather=0.0, enough=0))
        }
        for call in self.held():
            for one in self._ending(call, outcomes.released()):
                ended.setdefault(one.item_id, one)
        if ended and self._recorder.record(list(ended.values())).left:
            raise StoreLocked("somebody's open transaction has jobs of which outcomes are to be written")
        self._held.clear()  # should the lane's thread come back, it has nothing more to wait for

    def _stop_waiting(self) -> None:
        for runner in self.runners:
            runner.stop_waiting()

    def _wind_down(self) -> None:
        """Start nothing more; when the grace is over, stop what still runs and hand it back."""
        self._stop_waiting()  # once more: a runner may have been added, or a call started, while we were told to stop
        if self._stop_at is None or time.monotonic() < self._stop_at:
            return
        if not self._interrupted:
            self._interrupted = True
            self._interrupt(self.held())
        if time.monotonic() >= self._stop_at + _LET_GO_SECONDS:
            self._let_go()

    def _let_go(self) -> None:
        """What could not be stopped is handed back all the same: its runner hangs, or what is made of its answer."""
        left = [call for call in self.held() if call.is_open]
        if left:
            _log.warning("handlers did not stop; their items are handed back", kind=self.kind.name, items=len(left))
        for call in left:
            if call.runner is not None:
                call.runner.abandon(call)
            self.end(call, outcomes.released())

    def _interrupt(self, chosen: Sequence[Call]) -> None:
        by_runner: dict[Runner, list[Call]] = {}
        for call in chosen:
            if call.runner is not None:
                by_runner.setdefault(call.runner, []).append(call)
        for runner, calls in by_runner.items():
            runner.stop(calls)
