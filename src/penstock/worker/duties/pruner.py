"""The duty that deletes what has been kept for long enough, beside all other work.

Its turns are short, and it rests four times as long as a turn took: at most a fifth of one connection's time. A worker
that found nothing looks again after a while.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from penstock.operations.prune import PruneRules, prune_some
from penstock.store.engine import Store

PRUNER_RESTS = 4.0
PRUNER_SECONDS = 1.0
"""From one turn to the next, at least."""
_TURN_SECONDS = 0.25
_IDLE_SECONDS = 60.0


class Pruner:
    """Deletes some of it in each turn."""

    def __init__(
        self, store: Store, rules: PruneRules, files_directory: Path, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._rules = rules
        self._files_directory = files_directory
        self._clock = clock
        self._due_at = 0.0

    def run(self) -> bool:
        """One turn; False when there was nothing to do yet."""
        began_at = self._clock()
        if began_at < self._due_at:
            return False
        while prune_some(self._store, self._rules, self._files_directory):
            if self._clock() - began_at >= _TURN_SECONDS:
                return True
        self._due_at = self._clock() + _IDLE_SECONDS
        return True
