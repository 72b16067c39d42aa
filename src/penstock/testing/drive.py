"""Driving the engine by hand, without a worker: each step is one call, and time passes only when a test says so."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any
from uuid import UUID

from penstock.clock import ManualClock
from penstock.errors import TransitionRefused
from penstock.lifecycle import outcomes
from penstock.lifecycle.callers import SYSTEM, Caller, worker
from penstock.lifecycle.job import ClaimedItem, Job, Submission
from penstock.lifecycle.kind import Kind, Kinds
from penstock.lifecycle.outcomes import Outcome
from penstock.lifecycle.payloads import JSON
from penstock.lifecycle.states import ACTIVE, ItemRole, JobState
from penstock.operations import control, read_jobs
from penstock.operations.claim import Care, claim
from penstock.operations.items import item_texts
from penstock.operations.maintenance import MaintenanceReport, sweep
from penstock.operations.plan import add_planned
from penstock.operations.record import ItemResult, record
from penstock.operations.request import Request
from penstock.operations.submit import submit, submit_created
from penstock.operations.watermarks import Watermarks
from penstock.store.engine import Store

LEASE = 30.0
"""Seconds a claim made here lasts."""

SUSPECT_DEATHS = 5
"""Deaths of workers that make an item a suspect."""

NEVER_STALE = 1e9
"""Keeps the sweep from mending what a defect broke: a test that drives wants to see it."""

MAX_BYTES = 1_000_000
"""The largest payload, in bytes."""


def unhurried_marks() -> Watermarks:
    """Marks by a clock that stands: how far back a lane looks then never depends on how busy the machine is."""
    return Watermarks(lambda: 0.0, long=math.inf)


def item_result(item: ClaimedItem, outcome: Outcome) -> ItemResult:
    """What a worker hands in for an item it holds."""
    return ItemResult(item.item_id, item.lease, item.job_id, item.role, outcome)


class Workbench:
    """A store, its kinds and a clock, with the operations as a test wants to say them."""

    def __init__(self, store: Store, clock: ManualClock, kinds: Iterable[Kind]) -> None:
        self.store = store
        self.clock = clock
        self.kinds = Kinds()
        for kind in kinds:
            self.kinds.add(kind)
        self._marks: defaultdict[tuple[str, str], Watermarks] = defaultdict(unhurried_marks)

    def submit(
        self, kind: str, params: JSON = None, *, items: Iterable[JSON] | None = None, **request: Any
    ) -> Submission:
        """Submit one job; the keywords are those of a Request."""
        return self.store.write(
            lambda transaction: submit(
                transaction, self.kinds.get(kind), params, Request(**request), items=items, max_bytes=MAX_BYTES
            )
        )

    def claim(self, kind: str, by: str = "w1", *, size: int = 10, lease: float = LEASE) -> list[ClaimedItem]:
        """Take items for a worker."""
        care, marks = Care(size, SUSPECT_DEATHS), self._marks[kind, by]
        return list(claim(self.store, kind, by, size=size, lease_seconds=lease, care=care, marks=marks).items)

    def record(self, items: Sequence[ClaimedItem], outcome: Outcome, by: str = "w1") -> set[int]:
        """Hand in the same outcome for each of the items."""
        return self.hand_in([(item, outcome) for item in items], by)

    def hand_in(self, pairs: Sequence[tuple[ClaimedItem, Outcome]], by: str = "w1") -> set[int]:
        """Hand in outcomes; the answer is the items they landed on."""
        return self.store.write(
            lambda transaction: record(transaction, [item_result(*pair) for pair in pairs], worker(by))
        )

    def plan(self, plan_item: ClaimedItem, inputs: Sequence[JSON]) -> int:
        """Add what a plan yields, behind what is there."""
        kind, after = self.kinds.get(plan_item.kind), self.job(plan_item.job_id).progress.total
        items = item_texts(inputs, MAX_BYTES, after)
        return self.store.write(lambda transaction: add_planned(transaction, kind, plan_item, items, after=after))

    def job(self, job_id: UUID, caller: Caller = SYSTEM) -> Job:
        """A job as it stands."""
        return self.store.read(lambda transaction: read_jobs.get_job(transaction, job_id, caller))

    def jobs(self) -> list[Job]:
        """All jobs."""
        return self.store.read(lambda transaction: read_jobs.list_jobs(transaction, SYSTEM, limit=100_000))

    def states(self, job_id: UUID) -> list[str]:
        """The states a job has been in, in order."""
        return [
            line.to_state.value for line in self.store.read(lambda transaction: read_jobs.history(transaction, job_id))
        ]

    def sweep(self, *, stale_seconds: float = NEVER_STALE) -> MaintenanceReport:
        """One maintenance pass."""
        return sweep(self.store, self.kinds, stale_seconds=stale_seconds, suspect_deaths=SUSPECT_DEATHS)

    def drain(self, kind: str, by: str = "w1") -> int:
        """Claim once and finish all of it well; the answer is how many items that were."""
        claimed_items = self.claim(kind, by, size=50)
        for item in claimed_items:
            if item.role is ItemRole.PLAN and not self.job(item.job_id).progress.total:
                self.plan(item, [{"n": 1}, {"n": 2}])
        if claimed_items:
            self.record(claimed_items, outcomes.done('{"ok":true}'), by)
        return len(claimed_items)

    def let_flow(self, job: Job) -> None:
        """Submit a job that is held, resume one that is paused."""
        if job.state is JobState.CREATED:
            self.store.write(lambda transaction: submit_created(transaction, self.kinds.get(job.kind), job.id, SYSTEM))
        elif job.state is JobState.PAUSED:
            self.store.write(lambda transaction: control.resume(transaction, job.id, SYSTEM))

    def drive_to_end(self, *, rounds: int = 100) -> list[Job]:
        """Submit what is held, resume what is paused and work everything off; the answer is what is still not over."""
        for _ in range(rounds):
            for job in self.jobs():
                with suppress(TransitionRefused):  # until another job of its key is over
                    self.let_flow(job)
            self.sweep()
            if not sum(self.drain(kind.name) for kind in self.kinds):
                if not any(job.state in ACTIVE for job in self.jobs()):
                    break
                self.clock.advance(LEASE + 1)
        return [job for job in self.jobs() if job.state in ACTIVE]
