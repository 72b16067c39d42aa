"""A thread that reads handlers' answers, where that may run users' code and must not hold up others.

A kind's ``classify``, and the way of an object back from a child process, are not ours: they may hang. They run here,
one after the other. The watchdog asks what has taken too long; then this thread is left to it, and a new one goes on
with the rest.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from penstock.runners.contract import Call, EndedCall

_IDLE_SECONDS = 10.0


class AnswerReader:
    """Hands each answer to ``conclude``, which never raises."""

    def __init__(self, conclude: Callable[[EndedCall], None], *, name: str) -> None:
        self._conclude = conclude
        self._name = name
        self._condition = threading.Condition()
        self._waiting: deque[EndedCall] = deque()
        self._thread: threading.Thread | None = None
        self._current: EndedCall | None = None
        self._since = 0.0
        self._hung_threads: list[threading.Thread] = []

    @property
    def abandoned(self) -> int:
        """Threads that were given up because their code hangs."""
        return sum(thread.is_alive() for thread in self._hung_threads)

    def put(self, ended_call: EndedCall) -> None:
        """Queue a call whose answer is to be read."""
        with self._condition:
            self._waiting.append(ended_call)
            self._begin()
            self._condition.notify()

    def calls(self) -> list[Call]:
        """The calls whose answers are here."""
        with self._condition:
            current = [] if self._current is None else [self._current]
            return [call for call, _, _ in (*current, *self._waiting)]

    def give_up(self, seconds: float) -> EndedCall | None:
        """Give up the answer that has taken longer than so many seconds, if there is one."""
        with self._condition:
            hung = self._current
            if hung is None or self._thread is None or time.monotonic() - self._since < seconds:
                return None
            self._hung_threads = [thread for thread in self._hung_threads if thread.is_alive()] + [self._thread]
            self._thread = self._current = None
            if self._waiting:
                self._begin()
            return hung

    def _begin(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            self._thread.start()

    def _work(self) -> None:
        me = threading.current_thread()
        while True:
            with self._condition:
                if self._thread is not me:
                    return  # given up
                self._current = None
                if not self._condition.wait_for(lambda: self._waiting, _IDLE_SECONDS):
                    self._thread = None
                    return
                self._current = ended_call = self._waiting.popleft()
                self._since = time.monotonic()
            self._conclude(ended_call)
            del ended_call
