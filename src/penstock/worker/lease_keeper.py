"""Extending leases while handlers run, and telling the lanes which ones they have lost.

Every heartbeat asks which of the jobs in hand were stopped (their handlers are stopped), and extends the leases that
have used up half of their time. What is held past its time limit and the watchdog's grace is extended no more: if
nothing else ends it, its lease does. A worker that cannot reach the database extends nothing; its leases run out and
others take over, and what it then still writes is fenced off.

A heartbeat waits for nobody: an item whose row somebody has locked is asked for again with the next one. What goes
wrong with one lane's is no reason to let the leases of the others run out.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import structlog

from penstock.operations.heartbeat import extend, find_stopped_jobs
from penstock.runners.contract import Call
from penstock.store.engine import Store
from penstock.worker.lane import Lane

_log = structlog.get_logger("penstock.lane")


class LeaseKeeper:
    """The heartbeats of a worker's lanes."""

    def __init__(self, store: Store, lanes: Sequence[Lane], *, timeout_grace: float) -> None:
        self._store = store
        self._lanes = lanes
        self._timeout_grace = timeout_grace

    def beat(self) -> None:
        """One heartbeat for each lane; the first error, if there is one, is raised after the last."""
        failure: Exception | None = None
        for lane in self._lanes:
            calls = lane.executor.calls_in_hand()
            if calls:
                try:
                    self._beat_for(lane, calls)
                except Exception as error:  # noqa: BLE001 - whatever it is, it is raised when the others are done
                    failure = failure or error
        if failure is not None:
            raise failure

    def _beat_for(self, lane: Lane, calls: Sequence[Call]) -> None:
        job_ids = {call.owner.job_id for call in calls}
        stopped_jobs = self._store.read(
            lambda transaction: find_stopped_jobs(transaction, job_ids), single_statement=True
        )
        if stopped_jobs:
            lane.executor.drop(jobs=stopped_jobs)
        now = time.monotonic()
        due = [call for call in calls if call.renew_at <= now and call.owner.job_id not in stopped_jobs]
        due = [call for call in due if not self._is_overdue(call, now)]
        if not due:
            return
        length = lane.controllers.lease_seconds(len(calls))
        items = [call.owner for call in due]
        not_extended = self._store.write(lambda transaction: extend(transaction, items, length), bounded=True)
        for call in due:
            if call.owner.item_id not in not_extended.row_locked:
                call.renew_at = time.monotonic() + length / 2
        if not_extended.lost:
            _log.warning(
                "leases were lost: others have the items now", kind=lane.kind.name, items=len(not_extended.lost)
            )
            lane.executor.drop(items=not_extended.lost)

    def _is_overdue(self, call: Call, now: float) -> bool:
        """Does it run past its time limit? One that has ended, and waits to be written, does not."""
        return call.is_open and call.deadline is not None and now >= call.deadline + self._timeout_grace
