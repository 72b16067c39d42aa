"""What a process hears of tasks, written together a few times a second: once for each signal would cost a task more
than its own work.

What one process has heard is written in the order in which it was heard, or together. So a task's end is never written
before the tasks that it has sent. When the database is away, what was heard is kept and written later.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from uuid import UUID

import structlog

from penstock.errors import PenstockError
from penstock.lifecycle.tracked_tasks import TaskSighting

MOST_WAITING = 10_000
"""Who hears more than this waits for the database."""
_LONGEST_PAUSE = 5.0
_log = structlog.get_logger("penstock.celery")


class SightingBuffer:
    """Collects, and writes in a thread of its own every so many seconds; at once where that is 0."""

    def __init__(self, write: Callable[[Sequence[TaskSighting]], None], flush_every: float) -> None:
        self._write = write
        self._flush_every = flush_every
        self._start_afresh()
        os.register_at_fork(after_in_child=self._start_afresh)

    def _start_afresh(self) -> None:
        """In a forked process: what was heard before the fork is written by the other one, and so are its locks."""
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._has_some = threading.Event()
        self._is_closed = False
        self._waiting: dict[tuple[UUID, str], TaskSighting] = {}
        self._thread: threading.Thread | None = None

    def add(self, sightings: Iterable[TaskSighting], *, at_once: bool = False) -> None:
        """Something was heard; ``at_once`` waits until it is written, where the database can be reached."""
        with self._lock:
            for sighting in sightings:
                key = (sighting.job_id, sighting.task_id)
                earlier = self._waiting.get(key)
                self._waiting[key] = sighting if earlier is None else sighting.merge(earlier)
            if not self._waiting:
                return
            is_full = len(self._waiting) >= MOST_WAITING
            if self._thread is None and self._flush_every > 0:
                self._thread = threading.Thread(target=self._run, name="penstock-celery", daemon=True)
                self._thread.start()
        self._has_some.set()
        if is_full or at_once or self._flush_every <= 0:
            self._flush_or_log()

    def flush(self) -> None:
        """Write what was heard; an error of the database is raised, and what it concerns is kept."""
        with self._writing:
            with self._lock:
                batch, self._waiting = self._waiting, {}
                self._has_some.clear()
            if not batch:
                return
            try:
                self._write(list(batch.values()))
            except BaseException:
                with self._lock:
                    for key, newer in self._waiting.items():
                        batch[key] = newer.merge(batch[key]) if key in batch else newer
                    self._waiting = batch
                raise

    def close(self) -> None:
        """Write the rest; nothing is collected in the background any more."""
        self._is_closed = True
        self._has_some.set()
        self._flush_or_log()

    def _flush_or_log(self) -> bool:
        try:
            self.flush()
        except PenstockError as error:
            _log.warning("what was heard of tasks is written later", error=str(error), tasks=len(self._waiting))
            return False
        except Exception:  # noqa: BLE001 - a defect must not end the thread that writes
            _log.exception("what was heard of tasks could not be written", tasks=len(self._waiting))
            return False
        return True

    def _run(self) -> None:
        pause = threading.Event()
        wait = self._flush_every
        while not self._is_closed:
            self._has_some.wait()
            pause.wait(wait)
            wait = self._flush_every if self._flush_or_log() else min(max(wait, 0.1) * 2, _LONGEST_PAUSE)
            if wait > self._flush_every:
                self._has_some.set()
