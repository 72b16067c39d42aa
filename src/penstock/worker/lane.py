"""One kind's way through a worker: claim a slice, run it, write the outcomes back, again and again.

The lane's thread talks to the database for the kind; the runners make the calls meanwhile, and turn what was returned
or raised into outcomes. When a slice's outcomes come in, the next slice is claimed and handed to the runners before
they are written, or at the same time where a database server works beside us: so the handlers of one slice run while
the one before is recorded.

What can go wrong here, and what happens then: a claim that fails took nothing. A record that fails for want of the
database is kept and tried again, until it lands or the leases run out and somebody else has the items. A value the
database refuses is found by halving the batch, and only its item fails.
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

from penstock.errors import PenstockError, StoreRefused
from penstock.lifecycle import outcomes
from penstock.lifecycle.callers import Caller, worker
from penstock.lifecycle.job import Claimed
from penstock.lifecycle.kind import Kind
from penstock.lifecycle.payloads import JSON
from penstock.lifecycle.policy import RunsIn
from penstock.lifecycle.states import ItemRole, ItemStatus
from penstock.operations.claim import Claim, claim
from penstock.operations.record import Ended, SomeWereLate, record
from penstock.operations.sweep import mend_postponed
from penstock.operations.watermarks import Watermarks, look
from penstock.runners.contract import Call, EndedCall, Runner
from penstock.settings import Settings
from penstock.store.engine import Store
from penstock.worker.conclude import raised, returned
from penstock.worker.inbox import Inbox
from penstock.worker.machine import Machine
from penstock.worker.points import Points
from penstock.worker.steering import Steering
from penstock.worker.steps import Steps
from penstock.worker.telling import tell

RunnerFor = Callable[[Kind, RunsIn, Callable[[Sequence[EndedCall]], None]], Runner]
_LEAST_WAIT = 0.001
_LONGEST_SHUT_OUT = 0.25
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
        points: Points,
        machine: Machine,
        *,
        job_id: UUID | None = None,
    ) -> None:
        self.kind = kind
        self._job_id = job_id
        self.inbox = Inbox()
        self.idle = threading.Event()
        self._store = store
        self._settings = settings
        self._most = settings.max_payload_bytes
        self._caller: Caller = worker(worker_name)
        self._worker_name = worker_name
        self._runner_for = runner_for
        self._runners: dict[RunsIn, Runner] = {}
        self._by_role: dict[ItemRole, Runner] = {}
        self._points = points
        self._writer: Executor | None = None
        if not store.ways.in_our_process:
            self._writer = ThreadPoolExecutor(1, thread_name_prefix=f"penstock-writer-{kind.name}")
        self._held: dict[int, Call] = {}
        self._unwritten: list[Ended] = []
        self._stopping = threading.Event()
        self._pause = threading.Event()
        self._stop_at: float | None = None
        self._claim_again_at = 0.0
        self._in_line = True
        self._failures = 0
        self._begun = False
        self._shut_out = 0
        self._marks = Watermarks()
        self._items_runner = self._runner(ItemRole.ITEM)
        slots = self._items_runner.concurrency
        self.steering = Steering(kind, settings, store.pace, machine, slots=slots, most_slots=most_slots(kind, slots))
        self._steps = Steps(store, kind, settings, self.steering)
        self._busy_since: float | None = None

    # The loop -----------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Work until stopped and everything in hand is written back."""
        while not (self._stopping.is_set() and not self._held and not self._unwritten):
            try:
                self.run_once()
                self._failures = 0
            except Exception as error:  # noqa: BLE001 - a lane must outlive its own mistakes, and they are logged
                self._failures += 1
                wait = min(30.0, 0.1 * 2.0 ** min(self._failures, 10)) * (0.5 + random.random() / 2)
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
                self._pause.wait(min(wait, 1.0) if self._stopping.is_set() else wait)
        for runner in self._runners.values():
            runner.close()
        if self._writer is not None:
            self._writer.shutdown()

    def run_once(self) -> None:
        """Wait for something to do, and do it once."""
        ended = self.inbox.take(
            timeout=self._patience(), gather=self._settings.flush_ms / 1000.0, enough=self.steering.claim_size.setting
        )
        self._unwritten += ended
        if self.inbox.take_wake():
            self._claim_again_at = 0.0
        if self._stopping.is_set():
            self._give_back_late()
        due = not self._stopping.is_set() and self._has_room() and time.monotonic() >= self._due_at
        if due and self._unwritten and self._writer is not None:
            self._claim_while_writing(self._writer)
            return
        if due:
            self._claim()
        if self._unwritten:
            self._written(self._record(self._unwritten))

    def _claim_while_writing(self, writer: Executor) -> None:
        """A database server can do both at once; what each of them changes here, it changes in this thread."""
        writing = writer.submit(self._record, self._unwritten)
        try:
            self._claim()
        finally:
            self._written(writing.result())

    def _patience(self) -> float:
        """How long there is nothing to do, unless somebody says otherwise."""
        if self._unwritten:
            return 0.0
        if self._stopping.is_set():
            return 0.0 if not self._held else 0.05
        if not self._has_room():
            return self._settings.poll_seconds
        return max(0.0, min(self._due_at - time.monotonic(), self._settings.poll_seconds))

    @property
    def _due_at(self) -> float:
        """When to claim next; nobody's wake shortens a pause that the other side needs."""
        return max(self._claim_again_at, self.steering.claim_not_before)

    def _has_room(self) -> bool:
        """Is less than half a slice out, or a place in the runner free?"""
        out = len(self._held) - len(self._unwritten)
        return out <= self.steering.claim_size.setting // 2 or out < self.steering.slots

    # Claiming -----------------------------------------------------------------------------------------------------

    def _claim(self) -> None:
        if not self._begun:
            # The sweep comes later; what the clock has put off while nobody worked need not wait for it.
            self._store.write(lambda transaction: mend_postponed(transaction, self.kind))
            self._begun = True
        size = self.steering.claims()
        out = len(self._held) - len(self._unwritten)
        if self.steering.claim_size.average_item_ms is None:
            size = max(1, self.steering.slots - out)
        length = self.steering.lease_seconds(size + out)
        claimed = claim(
            self._store,
            self.kind.name,
            self._worker_name,
            size=size,
            lease_seconds=length,
            job_id=self._job_id,
            marks=self._marks,
        )
        now = time.monotonic()
        self._claim_again_at = now + self._wait_after(claimed)
        self._in_line = claimed.wait is not None
        if not claimed.items:
            self._rest()
            return
        self.idle.clear()
        if self._busy_since is None:
            self._busy_since = now
        self._start(claimed.items, now + length / 2)
        self._points.announce("claimed")
        if self._job_id is None and not self._store.ways.in_our_process and self._marks.look_due:
            look(self._store, self.kind.name, self._marks)

    def _wait_after(self, claimed: Claim) -> float:
        """How long until the next claim, if nobody says otherwise."""
        sure_in = self._marks.sure_in
        longest = self._settings.poll_seconds if sure_in is None else min(sure_in, self._settings.poll_seconds)
        wait = longest if claimed.wait is None else min(claimed.wait, longest)
        if claimed.items:
            self._shut_out = 0
            return wait
        # What is due but locked is asked for again soon: another claim is quick, somebody's transaction may not be.
        self._shut_out = min(self._shut_out + 1, 10) if claimed.wait == 0.0 else 0
        return max(wait, min(_LEAST_WAIT * 2.0**self._shut_out, _LONGEST_SHUT_OUT))

    def _start(self, items: Sequence[Claimed], renew_at: float) -> None:
        self.inbox.hand_out(len(items))
        for role, alike in groupby(items, _ROLE):
            runner = self._runner(role)
            calls = [self._steps.call(one, runner, renew_at) for one in alike]
            self._held.update((call.owner.item_id, call) for call in calls)
            runner.start(calls)

    def _runner(self, role: ItemRole) -> Runner:
        runner = self._by_role.get(role)
        if runner is None:
            place = self.kind.runs_in(role)
            runner = self._runners.get(place) or self._runner_for(self.kind, place, self._take_in)
            self._by_role[role] = self._runners[place] = runner
        return runner

    def _rest(self) -> None:
        """Nothing in hand, and nothing in line: idle until woken."""
        if not self._held and not self._in_line:
            self._busy_since = None
            self.idle.set()
            self._points.announce("idle")

    # Recording ----------------------------------------------------------------------------------------------------

    def _take_in(self, ended: Sequence[EndedCall]) -> None:
        """In the runner's thread, while this lane's is with the database."""
        self.inbox.put([self._conclude(*one) for one in ended])

    def _conclude(self, call: Call, value: JSON, error: BaseException | None) -> Ended:
        claimed: Claimed = call.owner
        if error is None:
            outcome = returned(self.kind, claimed, value, self._most)
        else:
            outcome = raised(self.kind, claimed, error)
        return Ended(claimed.item_id, claimed.lease, claimed.job_id, claimed.role, outcome)

    def _written(self, landed: Collection[int]) -> None:
        batch, self._unwritten = self._unwritten, []
        came_back = False
        for item_id, lease, _, _, outcome in batch:
            call = self._held.pop(item_id, None)
            if call is not None and call.owner.lease is not lease:
                self._held[item_id] = call  # a late outcome: we have claimed the item again meanwhile
            came_back = came_back or outcome.status is ItemStatus.PENDING
        now = time.monotonic()
        elapsed_ms = None
        if self._busy_since is not None:
            elapsed_ms = (now - self._busy_since) * 1000.0
            self._busy_since = now if self._held else None
        slots = self.steering.slots
        self.steering.recorded(
            [one.outcome for one in batch], elapsed_ms=elapsed_ms, waiting=len(self._held) >= slots or self._in_line
        )
        if self.steering.slots != slots:
            self._items_runner.resize(self.steering.slots)
        tell(self.kind.name, batch)
        lost = len(batch) - len(landed)
        if lost:
            _log.info("late outcomes changed nothing", kind=self.kind.name, items=lost)
        self._in_line = self._in_line or came_back
        if came_back or (self._in_line and not self._held):
            self._claim_again_at = 0.0  # nobody waits for us now: a claim later might be in somebody's way
        self._points.announce("recorded")
        self._rest()

    def _record(self, batch: list[Ended], *, all_ours: bool = True) -> set[int]:
        """Write a batch; when the database refuses a value, find the item it belongs to and fail that one."""
        try:
            return self._store.write(lambda transaction: record(transaction, batch, self._caller, all_ours=all_ours))
        except SomeWereLate:
            return self._record(batch, all_ours=False)
        except StoreRefused as error:
            if len(batch) > 1:
                middle = len(batch) // 2
                return self._record(batch[:middle]) | self._record(batch[middle:])
            one = batch[0]
            refused = outcomes.failed(f"the result could not be kept: {error}", "RESULT_NOT_STORABLE")
            _log.warning(
                "a result was refused by the database", kind=self.kind.name, item=one.item_id, error=str(error)
            )
            instead = Ended(one.item_id, one.lease, one.job_id, one.role, refused)
            return self._store.write(lambda transaction: record(transaction, [instead], self._caller))

    # What others ask of it ----------------------------------------------------------------------------------------

    def held(self) -> list[Call]:
        """What is in this worker's hands now, for whoever renews the leases."""
        return list(self._held.values())

    def drop(self, *, jobs: Collection[UUID] = (), items: Collection[int] = ()) -> None:
        """Stop the calls of jobs that were stopped, or of items that are not ours any more."""
        self._interrupt([one for one in self.held() if one.owner.job_id in jobs or one.owner.item_id in items])

    def stop(self, grace: float) -> None:
        """Claim nothing more; hand back what has not started, and after ``grace`` seconds what has."""
        self._stop_at = time.monotonic() + grace
        self._stopping.set()
        self._pause.set()
        for runner in self._runners.values():
            runner.stop_waiting()
        self.inbox.wake()

    def _give_back_late(self) -> None:
        """The grace is over: what still runs is stopped and handed back."""
        if self._stop_at is not None and time.monotonic() >= self._stop_at:
            self._stop_at = None
            self._interrupt(self.held())

    def _interrupt(self, chosen: Sequence[Call]) -> None:
        by_runner: dict[Runner, list[Call]] = {}
        for call in chosen:
            if call.runner is not None:
                by_runner.setdefault(call.runner, []).append(call)
        for runner, calls in by_runner.items():
            runner.stop(calls)
