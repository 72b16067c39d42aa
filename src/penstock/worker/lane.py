"""One kind's way through a worker: claim a slice, run it, write the outcomes back, again and again.

The lane's thread talks to the database for the kind; its :mod:`penstock.worker.executor` has the calls made meanwhile,
and turns what was returned or raised into outcomes. When a slice's outcomes come in, the next slice is claimed and
handed to the runners before they are written, or at the same time where a database server works beside us: so the
handlers of one slice run while the one before is recorded.

What can go wrong here, and what happens then: a claim that fails took nothing. A record that fails for want of the
database is kept and tried again, until it lands or the leases run out and somebody else has the items. Between two such
tries there is a second at most, and none once anybody in this process has reached the database. What else can keep an
outcome from being written is the :mod:`penstock.worker.recorder`'s.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from uuid import UUID

import structlog

from penstock.errors import StoreLocked
from penstock.lifecycle import outcomes
from penstock.lifecycle.callers import worker
from penstock.lifecycle.kind import Kind
from penstock.lifecycle.states import ItemStatus
from penstock.operations.claim import Care, Claim, claim
from penstock.operations.maintenance import mend_postponed
from penstock.operations.record import ItemResult
from penstock.operations.watermarks import Watermarks, look
from penstock.runners.contract import Call
from penstock.settings import Settings
from penstock.store.engine import Store
from penstock.worker.allowance import Allowance
from penstock.worker.calls import Calls
from penstock.worker.controllers import Controllers, max_slots
from penstock.worker.executor import ItemExecutor, RunnerFor
from penstock.worker.failures import Failure, Failures, failure_of
from penstock.worker.host_load import HostLoad
from penstock.worker.quarantine import App
from penstock.worker.recorder import Recorded, Recorder
from penstock.worker.setbacks import Setback, Setbacks
from penstock.worker.slice_log import log_slice
from penstock.worker.solitude import Solitude
from penstock.worker.test_signals import TestSignals
from penstock.worker.watchdog import watch

_LEAST_WAIT = 0.001
_LONGEST_SHUT_OUT = 0.25
_LET_GO_SECONDS = 1.0
"""After a stopping lane has interrupted a call, how long it waits for the runner to say so."""
_SOLITUDE_LOOKED_FOR = 0.05
"""How often a lane that waits to be alone looks whether it is."""
_log = structlog.get_logger("penstock.lane")


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
        may_grow: bool = True,
    ) -> None:
        """A lane that may not grow never makes more calls at once than its kind says, or its runner to begin with."""
        self.kind = kind
        self._poll_seconds = poll_seconds or (lambda: settings.poll_seconds)
        self._solitude = solitude
        self.executor = ItemExecutor(kind, runner_for, app, max_result_bytes=settings.max_payload_bytes)
        self.completions = self.executor.completions
        self._careful = False
        self._job_id = job_id
        self.idle = threading.Event()
        self._store = store
        self._settings = settings
        self._recorder = Recorder(store, kind.name, worker(worker_name))
        self._worker_name = worker_name
        self._signals = signals
        self._failure_hooks = failures
        self.late_outcomes = 0
        """Outcomes that came when the item was somebody else's already, since the worker began."""
        self.setbacks = Setbacks(kind.name)
        self._writer: Executor | None = None
        if store.dialect.writes_beside_others:
            self._writer = ThreadPoolExecutor(1, thread_name_prefix=f"penstock-writer-{kind.name}")
        self._unwritten: list[ItemResult] = []
        self._stopping = threading.Event()
        self._pause = threading.Event()
        self._stop_at: float | None = None
        self._has_interrupted = False
        self.missing: set[Call] = set()
        self._claim_again_at = 0.0
        self._in_line = True
        self._has_begun = False
        self._shut_out = 0
        self._marks = Watermarks()
        slots = self.executor.items_runner.concurrency
        self.controllers = Controllers(
            kind, settings, store.latency, machine, slots=slots, max_slots=max_slots(kind, slots) if may_grow else slots
        )
        self._calls = Calls(store, kind, settings, self.controllers)
        self._busy_since: float | None = None
        self._allowance: Allowance | None = None

    # The loop -----------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Work until stopped and everything in hand is written back."""
        while not self._is_over():
            setback = self._try_once()
            if setback is not None:
                if self._stopping.is_set() and self.setbacks.in_a_row > 3:
                    break  # the leases will run out, and another worker goes on
                self._wait_after_failure(setback)
        self.executor.close()
        if self._writer is not None:
            self._writer.shutdown()

    def work_off(self, allowance: Allowance) -> None:
        """Claim what is allowed, in the caller's thread, and return when the outcomes of all of it are written.

        What was claimed is tried to be written as :meth:`run` does. A claim that fails is not tried again.
        """
        self._worker_name = allowance.holder
        self._recorder = Recorder(self._store, self.kind.name, worker(allowance.holder))
        self._allowance = allowance
        self._claim_again_at = 0.0
        while self.executor or self._unwritten or (allowance.items_left and time.monotonic() >= self._due_at):
            setback = self._try_once()
            if setback is not None:
                allowance.end()
                if self.executor or self._unwritten:
                    self._wait_after_failure(setback)

    def _try_once(self) -> Setback | None:
        """One turn."""
        try:
            self.run_once()
        except BaseException as error:  # noqa: BLE001 - a lane must outlive its own mistakes, and they are logged
            setback = self.setbacks.note(error)
            self._signals.announce("failed")
            return setback
        self.setbacks.forget()
        return None

    def _is_over(self) -> bool:
        """Is nothing left to do? What somebody else's transaction keeps us from writing is left when the time is up."""
        if not self._stopping.is_set():
            return False
        if not self.executor and not self._unwritten:
            return True
        if self.in_progress() or self._stop_at is None or time.monotonic() < self._stop_at + _LET_GO_SECONDS:
            return False
        _log.warning(
            "outcomes could not be written; their items run again", kind=self.kind.name, items=len(self.executor)
        )
        return True

    def _wait_after_failure(self, setback: Setback) -> None:
        """Wait; whoever reaches the database meanwhile wakes a lane that waits for it."""
        if self._stopping.is_set():
            self._pause.wait(min(setback.wait, 1.0))
        elif setback.is_away:
            self.completions.wait_for_wake(setback.wait)
        else:
            self._pause.wait(setback.wait)

    def run_once(self) -> None:
        """Wait for something to do, and do it once."""
        results = self.completions.take(
            timeout=self._patience(),
            gather=self._settings.flush_ms / 1000.0,
            enough=self.controllers.claim_size.setting,
        )
        self._unwritten += results
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
            self._take_record(self._recorder.record(self._unwritten), self.executor.calls_of(self._unwritten))

    def _claim_while_writing(self, writer: Executor) -> None:
        """A database server can do both at once; what each of them changes here, it changes in this thread."""
        # The claim may take an item again whose failed try has just been recorded: these are the calls before it.
        calls = self.executor.calls_of(self._unwritten)
        writing = writer.submit(self._recorder.record, self._unwritten)
        try:
            self._claim()
        finally:
            self._take_record(writing.result(), calls)

    def _patience(self) -> float:
        """How long there is nothing to do, unless somebody says otherwise."""
        longest = self._poll_seconds()
        if self._unwritten:
            longest = min(longest, self._recorder.due_in(self._unwritten))
        if self._stopping.is_set():
            return min(longest, 0.05) if self.executor else 0.0
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
        if self._solitude.is_wanted or self.executor.items_runner.is_exhausted:
            return False
        if self._allowance is not None and not self._allowance.items_left:
            return False
        out = self._out()
        if self._careful:
            return out < self.controllers.slots
        return out <= self.controllers.claim_size.setting // 2 or out < self.controllers.slots

    def _out(self) -> int:
        """How much the items' runner has to do; a plan beside it, or what is quarantined, has a place of its own."""
        return max(0, self._in_hand - self.executor.calls_elsewhere)

    @property
    def _in_hand(self) -> int:
        """How many items are held whose outcome is not known yet."""
        return max(0, len(self.executor) - len(self._unwritten))

    # Claiming -----------------------------------------------------------------------------------------------------

    def _claim(self) -> None:
        if not self._has_begun:
            # The sweep comes later; what the clock has put off while nobody worked need not wait for it.
            self._store.write(lambda transaction: mend_postponed(transaction, self.kind), bounded=True)
            self._has_begun = True
        size = self.controllers.claims()
        out = self._out()
        if self.controllers.claim_size.average_item_ms is None:
            size = max(1, self.controllers.slots - out)
        if self._allowance is not None:
            size = min(size, self._allowance.items_left)
        length = self.controllers.lease_seconds(size + out)
        claim_result = claim(
            self._store,
            self.kind.name,
            self._worker_name,
            size=size,
            lease_seconds=length,
            care=Care(self.controllers.slots - out, self._settings.suspect_deaths),
            job_id=self._job_id,
            marks=self._marks,
        )
        self._careful = claim_result.careful
        if self._allowance is not None:
            self._allowance.note_claim(len(claim_result.items), any_more=claim_result.wait == 0.0)
        now = time.monotonic()
        self._claim_again_at = now + self._wait_after(claim_result)
        self._in_line = claim_result.wait is not None
        if not claim_result.items:
            self._rest()
            return
        self.idle.clear()
        if self._busy_since is None:
            self._busy_since = now
        calls = [self._calls.call(item, now + length / 2) for item in claim_result.items]
        if not claim_result.suspect_deaths:
            self.executor.start(calls)
        elif not self.executor.start_suspect(calls[0], claim_result.suspect_deaths):
            self._solitude.ask(self, calls[0])
        self._signals.announce("claimed")
        if self._job_id is None and self._store.dialect.claims_in_one_statement and self._marks.look_due:
            look(self._store, self.kind.name, self._marks)

    def _wait_after(self, claim_result: Claim) -> float:
        """How long until the next claim, if nobody says otherwise."""
        sure_in = self._marks.sure_in
        longest = self._poll_seconds() if sure_in is None else min(sure_in, self._poll_seconds())
        wait = longest if claim_result.wait is None else min(claim_result.wait, longest)
        if claim_result.items:
            self._shut_out = 0
            return wait
        # What is due but locked is asked for again soon: another claim is quick, somebody's transaction may not be.
        self._shut_out = min(self._shut_out + 1, 10) if claim_result.wait == 0.0 else 0
        return max(wait, min(_LEAST_WAIT * 2.0**self._shut_out, _LONGEST_SHUT_OUT))

    def _rest(self) -> None:
        """Nothing in hand, and nothing in line: idle until woken."""
        if not self.executor and not self._in_line:
            self._busy_since = None
            self.idle.set()
            self._signals.announce("idle")

    # Recording ----------------------------------------------------------------------------------------------------

    def _take_record(self, record: Recorded, calls: Sequence[Call | None]) -> None:
        batch, self._unwritten = self._unwritten, record.unwritten
        if record.unwritten:
            unwritten = {(result.item_id, result.lease) for result in record.unwritten}
            pairs = zip(batch, calls, strict=True)
            written_pairs = [pair for pair in pairs if (pair[0].item_id, pair[0].lease) not in unwritten]
            if not written_pairs:
                return
            batch, calls = [result for result, _ in written_pairs], [call for _, call in written_pairs]
        landed_ids = record.landed_ids
        came_back = False
        suspects = self._solitude.is_wanted
        failures: list[Failure] = []
        for (item_id, _, _, _, outcome), call in zip(batch, calls, strict=True):
            if call is not None:
                self.executor.forget(call)
                if suspects:
                    self._solitude.leave(call)
                if item_id in landed_ids and (failure := failure_of(call.owner, outcome)) is not None:
                    failures.append(failure)
            came_back = came_back or outcome.status is ItemStatus.PENDING
        now = time.monotonic()
        elapsed_ms = None
        if self._busy_since is not None:
            elapsed_ms = (now - self._busy_since) * 1000.0
            self._busy_since = now if self._in_hand else None
        slots = self.controllers.slots
        self.controllers.observe_record(
            [result.outcome for result in batch], elapsed_ms=elapsed_ms, waiting=self._in_hand >= slots or self._in_line
        )
        if self.controllers.slots != slots:
            self.executor.items_runner.resize(self.controllers.slots)
        log_slice(self.kind.name, batch)
        self._failure_hooks.report(failures)
        lost = len(batch) - len(landed_ids)
        if lost:
            self.late_outcomes += lost
            _log.warning("late outcomes changed nothing", kind=self.kind.name, items=lost)
        self._in_line = self._in_line or came_back
        if came_back or (self._in_line and not self._in_hand):
            self._claim_again_at = 0.0  # nobody waits for us now: a claim later might be in somebody's way
        self._signals.announce("recorded")
        self._rest()

    # What others ask of it ----------------------------------------------------------------------------------------

    def in_progress(self) -> list[Call]:
        """The same, but for those whose outcome only waits for the end of somebody else's transaction."""
        waiting = self._recorder.waiting
        return [call for call in self.executor.calls_in_hand() if call.owner.item_id not in waiting]

    def stop(self, grace: float) -> None:
        """Claim nothing more; hand back what has not started, and after ``grace`` seconds what has."""
        self._stop_at = time.monotonic() + grace
        self._stopping.set()
        self._pause.set()
        self.executor.stop_waiting()
        self.completions.wake()

    @property
    def set_aside(self) -> Call | None:
        """The call that waits until this lane has the worker for itself; no runner knows it yet."""
        return self._solitude.waiting_call(self)

    def watch(self) -> None:
        """One look of the watchdog at what is in hand; in its thread."""
        watch(self, self._settings.timeout_grace_seconds)

    def hand_back(self) -> None:
        """Write how everything in hand ended, or hand it back; for when the lane's own thread hangs, in another."""
        results = {
            result.item_id: result
            for result in (*self._unwritten, *self.completions.take(timeout=0.0, gather=0.0, enough=0))
        }
        for call in self.executor.calls_in_hand():
            for result in self.executor.end_call(call, outcomes.released()):
                results.setdefault(result.item_id, result)
        if results and self._recorder.record(list(results.values())).unwritten:
            raise StoreLocked("somebody's open transaction has jobs of which outcomes are to be written")
        self.executor.forget_all()  # should the lane's thread come back, it has nothing more to wait for

    def _wind_down(self) -> None:
        """Start nothing more; when the grace is over, stop what still runs and hand it back."""
        # Once more: a runner may have been added, or a call started, while we were told to stop.
        self.executor.stop_waiting()
        if self._stop_at is None or time.monotonic() < self._stop_at:
            return
        if not self._has_interrupted:
            self._has_interrupted = True
            self.executor.interrupt(self.executor.calls_in_hand())
        if time.monotonic() >= self._stop_at + _LET_GO_SECONDS:
            self.executor.give_up()
