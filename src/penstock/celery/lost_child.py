"""What the main process of a Celery worker does when a child of its pool dies over a ticket.

The child cannot hand back what it held, and its leases would keep it for a while. The main process knows at once: the
pool tells it (``WorkerLostError``, a hard time limit, a termination). What the child held goes back, counted as a death
and not as a try, as with any worker of ours.

This runs in the main process's own thread, which Celery's other work waits for, so its waits are short: where the
database does not answer, the leases decide.
"""

from __future__ import annotations

from typing import Any

import structlog
from celery.worker.request import Request

_log = structlog.get_logger("penstock.celery")


class TicketRequest(Request):  # type: ignore[misc]
    """A ticket in the main process of a worker."""

    def on_failure(self, exc_info: Any, send_failed_event: bool = True, return_ok: bool = False) -> Any:
        """The task failed; ``return_ok`` is false where the pool says so, and not the child."""
        try:
            return super().on_failure(exc_info, send_failed_event=send_failed_event, return_ok=return_ok)
        finally:
            if not return_ok:
                self._take_back()

    def on_timeout(self, soft: bool, timeout: float) -> Any:
        """Celery's time limit: the pool kills the child of a hard one."""
        try:
            return super().on_timeout(soft, timeout)
        finally:
            if not soft:
                self._take_back()

    def _take_back(self) -> None:
        try:
            self.task.take_back(self.id, self.hostname)
        except Exception as error:  # noqa: BLE001 - the leases run out, and Celery's main process must go on
            _log.warning("what a lost child held is left to its leases", task=self.id, error=str(error))
