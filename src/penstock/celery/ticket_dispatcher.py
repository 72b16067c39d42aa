"""Topping up: as long as work is due and the queue is short of a window, tickets are sent.

Nothing is remembered from one look to the next: what is due is read from the database, what waits from the broker. So a
dispatcher can die, a broker can lose everything, and two dispatchers can do the same work; the worst that comes of it
is a ticket too many, which finds nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import partial

import structlog

from penstock.celery.ticket import share_out
from penstock.celery.ticket_queue import TicketQueue
from penstock.errors import PenstockError
from penstock.lifecycle.error_text import describe_error
from penstock.operations.claim import count_claimable, next_turn
from penstock.settings import Settings
from penstock.store.engine import Store

_LEAST_SECONDS = 0.02
"""Between two looks, however much there is to hear."""
_BUSY_SECONDS, _LONGEST_BUSY_SECONDS = 0.1, 2.0
"""Between two looks while there is work: a part of what a ticket takes. Longer while tickets come to nothing."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
"""After trouble with the broker or the database."""
_log = structlog.get_logger("penstock.celery")


class TicketDispatcher:
    """Keeps a queue of tickets as long as the window, while work is due."""

    name = "celery"

    def __init__(
        self, store: Store, settings: Settings, kinds: Sequence[str], queue: TicketQueue, *, window: int
    ) -> None:
        self.kinds = tuple(kinds)
        self._store = store
        self._settings = settings
        self._queue = queue
        self._window = window
        self._turns = 0
        self._last_due: dict[str, int] = {}
        self._pause = _BUSY_SECONDS
        self._failures = 0
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="penstock-celery-dispatcher", daemon=True)

    def start(self) -> None:
        """Begin to look, in a thread of its own."""
        self._thread.start()

    def wake(self) -> None:
        """There may be work: look now."""
        self._wake.set()

    def stop(self) -> None:
        """End after the current look."""
        self._stop.set()
        self._wake.set()

    def join(self, timeout: float) -> bool:
        """Wait so long for the current look; False when it is not over then."""
        if self._thread.is_alive():
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def top_up(self) -> float:
        """Look once, and send what is missing; the answer is in how many seconds to look again."""
        due: dict[str, int] = {}
        wait = self._settings.poll_seconds
        for kind in self._kinds_in_turn():
            seconds = self._store.read(partial(next_turn, kind=kind), single_statement=True)
            if seconds == 0.0:
                due[kind] = self._store.read(partial(count_claimable, kind=kind), single_statement=True)
            elif seconds is not None:
                wait = min(wait, seconds)
        if not due:
            return max(_LEAST_SECONDS, wait)
        waiting = self._queue.count_waiting()
        self._queue.send(share_out(due, waiting=waiting, window=self._window, largest=self._settings.claim_max))
        in_vain = waiting == 0 and due == self._last_due
        self._pause = min(2 * self._pause, _LONGEST_BUSY_SECONDS) if in_vain else _BUSY_SECONDS
        self._last_due = due
        return self._pause

    def _kinds_in_turn(self) -> Sequence[str]:
        """All kinds, beginning with another each time: whoever is first gets the first free place."""
        self._turns = (self._turns + 1) % max(1, len(self.kinds))
        return self.kinds[self._turns :] + self.kinds[: self._turns]

    def _run(self) -> None:
        while not self._stop.is_set():
            wait = self._look()
            self._stop.wait(_LEAST_SECONDS)
            self._wake.wait(max(0.0, wait - _LEAST_SECONDS))
            self._wake.clear()
        self._queue.close()

    def _look(self) -> float:
        try:
            wait = self.top_up()
        except Exception as error:  # noqa: BLE001 - a dispatcher must outlive brokers and databases, and it is logged
            self._failures += 1
            wait = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** min(self._failures, 10))
            unforeseen = None if isinstance(error, PenstockError | OSError) else error
            say = _log.warning if self._failures <= 3 else _log.debug
            say("no tickets are sent; jobs wait", error=describe_error(error), wait=wait, exc_info=unforeseen)
            self._queue.close()
            return wait
        if self._failures:
            _log.info("tickets are sent again")
            self._failures = 0
        return wait
