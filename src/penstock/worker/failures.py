"""Reporting failures: a bounded number of log lines, and the hooks that an application has registered.

A job of a hundred thousand items that all fail must not write as many tracebacks. For each kind and code the first
few failures of a minute are logged with the end of their traceback; the others are counted, and the count is logged
when the minute is over. Hooks hear of every failure, in a thread of their own and after the commit: one that raises is
logged, one that hangs holds up no lane; what does not fit into the queue before it is dropped, counted and logged.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

import structlog

from penstock.lifecycle.job import ClaimedItem
from penstock.lifecycle.outcomes import Outcome
from penstock.lifecycle.states import ItemRole, ItemStatus

_LOGGED_EACH = 3
_WINDOW_SECONDS = 60.0
_MAX_CODES = 1_000
_TRACEBACK_LINES = 20
_MAX_WAITING = 1_000
LAST_WORDS_SECONDS = 5.0
"""What hooks get when the worker stops: the first report of some libraries takes a second or two by itself."""
_log = structlog.get_logger("penstock.items")


@dataclass(frozen=True, slots=True)
class Failure:
    """A try that ended in an error, as it was recorded."""

    job_id: UUID
    kind: str
    owner: str | None
    role: ItemRole
    """Was it an item, the plan or the finalize step?"""
    position: int
    """The item's place in its job, from 1."""
    attempt: int
    code: str | None
    error: str
    traceback: str | None
    will_retry: bool
    """Is it tried again? If not, this was the last try."""
    exception: BaseException | None
    """What the handler raised; None where nothing was raised in this process."""


OnFailure = Callable[[Failure], object]
"""Called with every failure."""


def failure_of(item: ClaimedItem, outcome: Outcome) -> Failure | None:
    """The failure of an outcome; None where it is none: done, not found, skipped, put off."""
    retried = outcome.status is ItemStatus.PENDING and outcome.counts
    if outcome.error is None or not (retried or outcome.status is ItemStatus.ERROR):
        return None
    return Failure(
        job_id=item.job_id,
        kind=item.kind,
        owner=item.user_id,
        role=item.role,
        position=item.position,
        attempt=item.attempt,
        code=outcome.code,
        error=outcome.error,
        traceback=outcome.traceback,
        will_retry=retried,
        exception=outcome.exception,
    )


class Failures:
    """Reports the failures of one worker."""

    def __init__(self, hooks: Sequence[OnFailure] = ()) -> None:
        self._log = FailureLog()
        self._hooks = _HookThread(hooks) if hooks else None

    def report(self, failures: Sequence[Failure]) -> None:
        """Report failures that were recorded; this never blocks."""
        for failure in failures:
            self._log.add(failure)
            if self._hooks is not None:
                self._hooks.put(failure)

    def flush(self) -> None:
        """Log what was only counted, where its minute is over."""
        self._log.flush()

    def close(self, seconds: float = LAST_WORDS_SECONDS) -> None:
        """Log what was only counted; hooks get so many seconds for what they have not received yet."""
        self._log.flush(at_end=True)
        if self._hooks is not None:
            self._hooks.close(seconds)


@dataclass(slots=True)
class _Window:
    """The failures of one kind and code within a minute."""

    since: float
    count: int = 0


class FailureLog:
    """The first failures of each kind and code in a minute as log lines, the others as a count."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._windows: dict[tuple[str, str | None], _Window] = {}

    def add(self, failure: Failure) -> None:
        """Log a failure, or count it."""
        now, key = self._clock(), (failure.kind, failure.code)
        with self._lock:
            window = self._windows.get(key)
            if window is None or now - window.since >= _WINDOW_SECONDS or len(self._windows) > _MAX_CODES:
                self._flush(now, at_end=len(self._windows) > _MAX_CODES)
                window = self._windows[key] = _Window(now)
            window.count += 1
            if window.count > _LOGGED_EACH:
                return
        _log.warning(
            "an item failed and is tried again" if failure.will_retry else "an item failed",
            job=str(failure.job_id),
            kind=failure.kind,
            role=failure.role.value,
            position=failure.position,
            attempt=failure.attempt,
            code=failure.code,
            error=failure.error,
            traceback=_end_of(failure.traceback),
        )

    def flush(self, *, at_end: bool = False) -> None:
        """Log the counts of minutes that are over."""
        with self._lock:
            self._flush(self._clock(), at_end=at_end)

    def _flush(self, now: float, *, at_end: bool) -> None:
        over = [
            key for key, open_window in self._windows.items() if at_end or now - open_window.since >= _WINDOW_SECONDS
        ]
        for kind, code in over:
            window = self._windows.pop((kind, code))
            if window.count > _LOGGED_EACH:
                _log.warning(
                    "more items failed in the same way",
                    kind=kind, code=code, items=window.count - _LOGGED_EACH, seconds=round(now - window.since, 1),
                )  # fmt: skip


def _end_of(traceback: str | None) -> str | None:
    """The last lines: that is where it happened."""
    if traceback is None:
        return None
    return "\n".join(traceback.rstrip().splitlines()[-_TRACEBACK_LINES:])


class _HookThread:
    """Calls hooks in a thread of its own, from a queue that does not grow."""

    def __init__(self, hooks: Sequence[OnFailure]) -> None:
        self._hooks = tuple(hooks)
        self._waiting: queue.Queue[Failure | None] = queue.Queue(_MAX_WAITING)
        self._dropped_count = 0
        self._thread = threading.Thread(target=self._run, name="penstock-on-failure", daemon=True)
        self._thread.start()

    def put(self, failure: Failure) -> None:
        """Queue a failure for the hooks, unless too many wait already."""
        try:
            self._waiting.put_nowait(failure)
        except queue.Full:
            self._dropped_count += 1
            if self._dropped_count == 1:
                _log.warning("on_failure hooks are too slow: failures are dropped", waiting=_MAX_WAITING)

    def close(self, seconds: float) -> None:
        """Wait so long for the failures that are still queued."""
        give_up = time.monotonic() + seconds
        try:
            self._waiting.put(None, timeout=seconds)
        except queue.Full:
            self._dropped_count += self._waiting.qsize()
        else:
            self._thread.join(max(0.0, give_up - time.monotonic()))
        if self._dropped_count or self._thread.is_alive():
            _log.warning("on_failure hooks did not get every failure", dropped=self._dropped_count)

    def _run(self) -> None:
        while (failure := self._waiting.get()) is not None:
            for hook in self._hooks:
                try:
                    hook(failure)
                except BaseException:  # noqa: BLE001 - a hook's mistake is its own, and it is logged
                    _log.exception("an on_failure hook failed", hook=getattr(hook, "__qualname__", repr(type(hook))))
