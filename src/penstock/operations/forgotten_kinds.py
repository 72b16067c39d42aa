"""Kinds that jobs wait for and nobody knows any more: renamed, or of an application that is not deployed here now.

Such a job stays as it is, for its kind may come back with the next deployment. So it is only said.
"""

from __future__ import annotations

from collections.abc import Collection

import structlog

from penstock.operations.workers import workers
from penstock.store.engine import Store
from penstock.store.queries.read_jobs import next_open_kind
from penstock.store.transaction import Transaction

_log = structlog.get_logger("penstock.worker")


def forgotten_kinds(transaction: Transaction, own_kinds: Collection[str]) -> list[str]:
    """The kinds of jobs that wait or run which are not among ``own_kinds``, nor those of a worker that is alive."""
    foreign_kinds = [kind for kind in _open_kinds(transaction) if kind not in own_kinds]
    if not foreign_kinds:
        return []
    known_elsewhere = {kind for worker in workers(transaction) if worker.alive for kind in worker.data.get("kinds", ())}
    return [kind for kind in foreign_kinds if kind not in known_elsewhere]


def _open_kinds(transaction: Transaction) -> list[str]:
    """One seek in an index for each, however many jobs there are."""
    kinds: list[str] = []
    while (kind := next_open_kind(transaction, after=kinds[-1] if kinds else "")) is not None:
        kinds.append(kind)
    return kinds


class ForgottenKinds:
    """Names them in the log of one process, when one is new among them and not in each pass."""

    def __init__(self) -> None:
        self._named_kinds: frozenset[str] = frozenset()

    def look(self, store: Store, own_kinds: Collection[str]) -> None:
        """Name those that are new."""
        kinds = frozenset(store.read(lambda transaction: forgotten_kinds(transaction, own_kinds)))
        if new_kinds := kinds - self._named_kinds:
            _log.warning(
                "jobs wait for kinds that no running worker knows: were they renamed, or is their app not deployed?",
                code="KIND_UNKNOWN",
                kinds=sorted(new_kinds),
            )
        self._named_kinds = kinds
