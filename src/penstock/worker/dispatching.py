"""What a worker knows of engines: others on whose machines the handlers of some kinds run.

A worker that dispatches makes no calls for these kinds. It has its duties as any other, hears of new work, and wakes
the dispatcher, which tells the engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from penstock.errors import ConfigurationError
from penstock.settings import Settings
from penstock.store.engine import Store


class Dispatcher(Protocol):
    """Tells an engine of work, in a thread of its own."""

    @property
    def name(self) -> str:
        """What the log calls it."""

    @property
    def kinds(self) -> Sequence[str]:
        """The names of the kinds whose work it tells of."""

    def start(self) -> None:
        """Begin."""

    def wake(self) -> None:
        """There may be work."""

    def stop(self) -> None:
        """End after the current turn."""

    def join(self, timeout: float) -> bool:
        """Wait so long for the current turn; False when it still runs then."""


class Engine(Protocol):
    """Where the handlers of some kinds run, other than in our own workers."""

    @property
    def name(self) -> str:
        """What it is called on the command line."""

    def dispatcher(self, store: Store, settings: Settings) -> Dispatcher:
        """One that tells this engine of work."""


def require_shared(store: Store) -> None:
    """Refuse a database that the processes of an engine cannot reach."""
    if store.is_in_memory:
        raise ConfigurationError(
            "a database in memory belongs to one process, and these handlers run in others: name a file or a server in "
            "PENSTOCK_DATABASE_URL",
            code="DATABASE_NOT_SHARED",
        )
