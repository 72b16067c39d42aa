"""A worker's duty: what was submitted for later is released, and each schedule's job is submitted, when its time comes.

Every worker does it: whoever sees first that a time has come does what is due, in one transaction.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from penstock.lifecycle.kind import Kinds
from penstock.lifecycle.schedules import Schedule
from penstock.operations.delayed_jobs import release_due
from penstock.operations.schedules import declare, submit_due
from penstock.store.engine import Store

SECONDS = 1.0
"""How often it looks: so late a job may come."""


class Scheduler:
    """Does what is due by now."""

    def __init__(self, store: Store, kinds: Kinds, schedules: Iterable[Schedule], *, max_bytes: int) -> None:
        self._store = store
        self._kinds = kinds
        self._new_schedules = tuple(schedules)
        self._max_bytes = max_bytes

    def look(self) -> None:
        """One turn; the first one writes down what this program declares."""
        if self._new_schedules:
            self._store.write(partial(declare, schedules=self._new_schedules, max_bytes=self._max_bytes), bounded=True)
            self._new_schedules = ()
        release_due(self._store, self._kinds)
        submit_due(self._store, self._kinds, max_bytes=self._max_bytes)
