"""Keeping leases while handlers run, and telling the lanes what is not theirs any more.

Every heartbeat asks which of the jobs in hand were stopped (their handlers are stopped), and extends the leases that
have used up half of their time. What is held past its time limit and the watchdog's grace is extended no more: if
nothing else ends it, its lease does. A worker that cannot reach the database extends nothing; its leases run out and
others take over, and what it then still writes is fenced off.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import structlog

from penstock.operations.heartbeat import extend, stopped
from penstock.runners.contract import Call
from penstock.store.engine import Store
from penstock.worker.lane import Lane

_log = structlog.get_logger("penstock.lane")


class LeaseKeeper:
    """One heartbeat for all lanes of a worker."""

    def __init__(self, store: Store, lanes: Sequence[Lane], *, timeout_grace: float) -> None:
        self._store = store
        self._lanes = lanes
        self._timeout_grace = timeout_grace

    def beat(self) -> None:
        """One heartbeat."""
        for lane in self._lanes:
            held = lane.held()
            if held:
                self._beat_for(lane, held)

    def _beat_for(self, lane: Lane, held: Sequence[Call]) -> None:
        job_ids = {one.owner.job_id for one in held}
        gone = self._store.read(lambda transaction: stopped(transaction, job_ids), at_once=True)
        if gone:
            lane.drop(jobs=gone)
        now = time.monotonic()
        due = [one for one in held if one.renew_at <= now and one.owner.job_id not in gone]
        due = [one for one in due if one.deadline is None or now < one.deadline + self._timeout_grace]
        if not due:
            return
        length = lane.steering.lease_seconds(len(held))
        claimed = [one.owner for one in due]
        lost = self._store.write(lambda transaction: extend(transaction, claimed, length))
        for one in due:
            one.renew_at = time.monotonic() + length / 2
        if lost:
            _log.warning("leases were lost: others have the items now", kind=lane.kind.name, items=len(lost))
            lane.drop(items=lost)
