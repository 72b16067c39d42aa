"""Calling a function that may hang, and waiting for a bounded time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from penstock.errors import TimeLimitExceeded

Value = TypeVar("Value")


class BoundedCall(Generic[Value]):
    """A function that is called in a thread of its own and waited for a bounded time.

    While one call hangs, no other is begun: a function that always hangs costs one thread, not one a minute.
    """

    def __init__(self, function: Callable[[], Value], *, name: str) -> None:
        self._function = function
        self._name = name
        self._thread: threading.Thread | None = None

    def __call__(self, seconds: float) -> Value:
        """What it returns; raises what it raises, or ``TimeLimitExceeded``."""
        if self._thread is not None and self._thread.is_alive():
            raise TimeLimitExceeded(f"{self._name} still runs since the last call")
        answers: list[Value] = []
        errors: list[BaseException] = []

        def call() -> None:
            try:
                answers.append(self._function())
            except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
                errors.append(error)

        self._thread = threading.Thread(target=call, name=f"penstock-{self._name}", daemon=True)
        self._thread.start()
        self._thread.join(max(0.0, seconds))
        if errors:
            raise errors[0]
        if not answers:
            raise TimeLimitExceeded(f"{self._name} did not finish within {seconds:g} s")
        return answers[0]
