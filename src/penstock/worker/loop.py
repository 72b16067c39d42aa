"""A thread that does one thing again and again: start, stop and failure handled once, for every duty."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

import structlog

from penstock.errors import PenstockError

_LONGEST_REST = 60.0
_log = structlog.get_logger("penstock.duty")


class Loop:
    """Runs ``action`` every ``seconds``, a little irregularly so that many workers do not do it together."""

    def __init__(self, name: str, seconds: float, action: Callable[[], None], *, rest: float = 0.0) -> None:
        """``rest`` is how many times as long as a turn took the next one waits, but for a minute at most."""
        self.name = name
        self._rest = rest
        self._seconds = seconds
        self._action = action
        self.busy_since: float | None = None
        """When the current turn began, by the monotonic clock."""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"penstock-{name}", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End after the current turn."""
        self._stop.set()

    def join(self, timeout: float) -> bool:
        """Wait so long for the current turn; False when it still runs then."""
        if self._thread.is_alive():
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def run_once(self) -> None:
        """One turn; what fails is logged and left to the next."""
        self.busy_since = time.monotonic()
        try:
            self._action()
        except PenstockError as error:
            _log.warning("a duty failed; it is tried again", duty=self.name, error=str(error), code=error.code)
        except BaseException:  # noqa: BLE001 - a duty must outlive its own mistakes, and they are logged
            _log.exception("a duty failed; it is tried again", duty=self.name)
        finally:
            self.busy_since = None

    def _run(self) -> None:
        took = 0.0
        while not self._stop.wait(
            max(self._seconds * (0.9 + 0.2 * random.random()), min(self._rest * took, _LONGEST_REST))
        ):
            began_at = time.monotonic()
            self.run_once()
            took = time.monotonic() - began_at
