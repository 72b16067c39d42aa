"""One Penstock for each process: a pool's child must not share the connections of the process it was forked from.

A worker's main process forks whenever it replaces a child, and threads of ours work in it. A lock that a thread holds
at that moment (SQLite's, the driver's, our own) would be held for ever in the child, where that thread does not exist.
So nothing is forked while one of them is at work: :meth:`ProcessApp.at_work` and a fork exclude each other.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.app.penstock import Penstock


class ProcessApp:
    """The application that was given, and in each forked process another one on the same database."""

    def __init__(self, app: Penstock) -> None:
        self._first_app = app
        self._app = app
        self._process = os.getpid()
        self._working = threading.RLock()
        self._opening = threading.Lock()
        os.register_at_fork(
            before=self._hold_work,
            after_in_parent=self._go_on,
            after_in_child=self._renew_locks,
        )

    def get(self) -> Penstock:
        """The application of this process; the one of before a fork is left alone, and not closed either."""
        with self._opening:
            if self._process != os.getpid():
                self._app = Penstock(settings=self._first_app.settings)
                self._process = os.getpid()
            return self._app

    @contextmanager
    def at_work(self) -> Iterator[Penstock]:
        """The same for a thread of ours: nobody forks meanwhile."""
        with self._working:
            yield self.get()

    def _hold_work(self) -> None:
        self._working.acquire()

    def _go_on(self) -> None:
        self._working.release()

    def _renew_locks(self) -> None:
        """Whoever held them is not in this process."""
        self._working = threading.RLock()
        self._opening = threading.Lock()
