"""Writing a lane's outcomes: as many together as possible; what is locked waits while the others are written.

What can keep outcomes from being written, and what happens then:

- Some are late: others have the items now. The database names those that landed.
- The database refuses a value. The batch is halved until the item is found, and only that one fails. Where it refuses
  that as well, no value is to blame (a right was taken away, say): then it is as if the database were away.
- Somebody's open transaction has a job. The outcomes of free jobs are written without waiting, and those of locked jobs
  are tried again, at most a second later, until that transaction has ended. Meanwhile the lane still holds their items,
  so the heartbeat renews their leases, and no handler is run twice.
- The record takes longer than the server allows (``statement_timeout``). It is halved, and so are the next ones; what
  is too slow even alone waits like what is locked.
- The database is away. That is the lane's to wait for; what was written before it went is not forgotten.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

import structlog

from penstock.errors import StoreLocked, StoreRefused, StoreUnavailable
from penstock.lifecycle import outcomes
from penstock.lifecycle.callers import Caller
from penstock.operations.record import ItemResult, LeaseLost, record, record_free
from penstock.store.engine import Store

_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 1.0
_REST = 4.0
"""After a slow try the pause is so many times its length: most of the time is for other outcomes."""
_MAX_BATCH = 10_000
"""How many outcomes are written at once; fewer after the server has found that too slow."""
_TOO_SLOW = ("STATEMENT_TIMEOUT", "DB_TIMEOUT")
_log = structlog.get_logger("penstock.lane")


class Recorded(NamedTuple):
    """What became of a batch."""

    landed_ids: set[int]
    """The ids of the items whose outcome is in the database now."""
    unwritten: list[ItemResult]
    """What is still to be written; all else was written, or came too late."""


@dataclass(slots=True)
class _Turn:
    """One try to write a batch, part by part."""

    todo: deque[tuple[Sequence[ItemResult], bool]] = field(default_factory=deque)
    """What comes next, and whether it is known that somebody has locked some of it."""
    landed_ids: set[int] = field(default_factory=set)
    blocked_results: list[ItemResult] = field(default_factory=list)
    """What waits for another transaction's lock."""
    unwritten: list[ItemResult] = field(default_factory=list)
    """What could not be written because the database was away."""
    refusals: dict[int, ItemResult] = field(default_factory=dict)
    """What the database refused, by item; a failure is written instead."""
    has_written: bool = False
    took: float = 0.0
    """Seconds for what was known to be locked."""

    def add(self, parts: Sequence[Sequence[ItemResult]], *, is_locked: bool) -> None:
        """Write these next."""
        self.todo.extendleft((part, is_locked) for part in reversed(parts))

    def give_up(self, batch: Sequence[ItemResult]) -> None:
        """Give up this batch, and those still to be written."""
        self.unwritten += [result for part in (batch, *(some for some, _ in self.todo)) for result in part]
        self.todo.clear()


class Recorder:
    """Writes the outcomes of one lane."""

    def __init__(self, store: Store, kind: str, caller: Caller) -> None:
        self._store = store
        self._kind = kind
        self._caller = caller
        self._batch_limit = _MAX_BATCH
        self._locked_jobs: frozenset[UUID] = frozenset()
        self.waiting: frozenset[int] = frozenset()
        """The items whose outcome waits for the end of another transaction."""
        self._pause = _FIRST_PAUSE
        self._again_at = 0.0

    def due_in(self, unwritten: Sequence[ItemResult]) -> float:
        """In how many seconds some of this can be tried: now, unless all of it waits for another transaction."""
        if any(result.job_id not in self._locked_jobs for result in unwritten):
            return 0.0
        return max(0.0, self._again_at - time.monotonic())

    def record(self, batch: Sequence[ItemResult]) -> Recorded:
        """Write what can be written now. An error of the database is raised only when nothing could be."""
        turn = _Turn()
        free = batch
        if self._locked_jobs:
            free = [result for result in batch if result.job_id not in self._locked_jobs]
            waiting = [result for result in batch if result.job_id in self._locked_jobs]
            if waiting and time.monotonic() >= self._again_at:
                turn.add([waiting], is_locked=True)
            else:
                turn.blocked_results += waiting
        turn.add(
            [free[first : first + self._batch_limit] for first in range(0, len(free), self._batch_limit)],
            is_locked=False,
        )
        while turn.todo:
            self._write_next(turn)
        self._keep(turn)
        return Recorded(turn.landed_ids, turn.unwritten + turn.blocked_results)

    def _write_next(self, turn: _Turn) -> None:
        batch, is_locked = turn.todo.popleft()
        began_at = time.monotonic()
        try:
            landed_ids, blocked_results = self._write(batch, is_locked=is_locked)
        except StoreLocked:
            if is_locked:
                turn.blocked_results += batch
            else:
                turn.add([batch], is_locked=True)
        except StoreRefused as error:
            if len(batch) > 1:
                turn.add(_halves(batch), is_locked=is_locked)
            elif batch[0].item_id not in turn.refusals:
                turn.refusals[batch[0].item_id] = batch[0]
                turn.add([[self._refuse(batch[0], error)]], is_locked=is_locked)
            elif turn.has_written:
                turn.give_up([turn.refusals[batch[0].item_id]])
            else:
                raise
        except StoreUnavailable as error:
            if error.code in _TOO_SLOW:
                self._batch_limit = max(1, len(batch) // 2)
            if error.code == "STATEMENT_TIMEOUT":
                if len(batch) > 1:
                    turn.add(_halves(batch), is_locked=is_locked)
                else:
                    turn.blocked_results += batch
            elif turn.has_written:
                turn.give_up(batch)
            else:
                raise
        else:
            turn.landed_ids |= landed_ids
            turn.blocked_results += blocked_results
            turn.has_written = True
            if len(batch) == self._batch_limit:
                self._batch_limit = min(_MAX_BATCH, self._batch_limit + max(1, self._batch_limit // 10))
        if is_locked:
            turn.took += time.monotonic() - began_at

    def _write(self, batch: Sequence[ItemResult], *, is_locked: bool) -> tuple[set[int], Sequence[ItemResult]]:
        """One transaction; the answer is the ids of the items that landed, and what is locked."""
        if is_locked:
            return self._store.write(lambda transaction: record_free(transaction, batch, self._caller), bounded=True)
        try:
            return self._store.write(
                lambda transaction: record(transaction, batch, self._caller, all_ours=True), bounded=True
            ), ()
        except LeaseLost:
            return self._store.write(lambda transaction: record(transaction, batch, self._caller), bounded=True), ()

    def _keep(self, turn: _Turn) -> None:
        """Remember what waits, and when to try it again."""
        locked_jobs = frozenset(result.job_id for result in turn.blocked_results)
        fresh = locked_jobs - self._locked_jobs
        if fresh:
            _log.warning(
                "outcomes wait: another open transaction has locked their jobs",
                kind=self._kind,
                items=len(turn.blocked_results),
                jobs=len(locked_jobs),
                first=str(min(fresh)),
            )
        if turn.took:
            self._pause = min(_LONGEST_PAUSE, self._pause * 2) if self._locked_jobs else _FIRST_PAUSE
            self._again_at = time.monotonic() + max(self._pause, _REST * turn.took)
        self._locked_jobs = locked_jobs
        self.waiting = frozenset(result.item_id for result in turn.blocked_results)

    def _refuse(self, result: ItemResult, error: StoreRefused) -> ItemResult:
        _log.warning("a result was refused by the database", kind=self._kind, item=result.item_id, error=str(error))
        outcome = outcomes.failed(f"the result could not be kept: {error}", "RESULT_NOT_STORABLE")
        return ItemResult(result.item_id, result.lease, result.job_id, result.role, outcome)


def _halves(batch: Sequence[ItemResult]) -> list[Sequence[ItemResult]]:
    middle = len(batch) // 2
    return [batch[:middle], batch[middle:]]
