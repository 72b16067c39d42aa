"""The workers that are alive: each signs in when it starts, again every few seconds, and out when it stops.

They are for people who look. One thing is decided by them: whether a message has anybody who wants it. A worker that
was killed cannot sign out: its row stays for an hour, and says when it was seen last. The time is the database's, so
that clocks that differ make nobody look dead.

Every ten seconds, and not with every heartbeat: on SQLite each commit makes the workers of other processes look for
work, and an idle worker would otherwise commit nothing at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from penstock.store.queries import workers as queries
from penstock.store.transaction import Transaction

SIGNING_SECONDS = 10.0
"""How often a worker says that it is there."""
_ALIVE_SECONDS = 3 * SIGNING_SECONDS
_KEPT_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class WorkerSeen:
    """A worker as it was when it was seen last."""

    name: str
    started_at: datetime
    seen_at: datetime
    data: dict[str, Any]
    """Its ``kinds``, how many items of each it ``held``, the ``topics`` it subscribes to, how its ``lanes`` are set
    while they have nothing to do, and how its consumer fares with the ``transport``, where it has one.
    """
    alive: bool
    """Was it seen within the last three times it should have been?"""


def appear(transaction: Transaction, name: str, data: dict[str, Any]) -> None:
    """This worker is there: for the first time, or still."""
    if not queries.refresh_worker(transaction, name, data):
        queries.insert_worker(transaction, name, data)


def leave(transaction: Transaction, name: str) -> None:
    """This worker has stopped."""
    queries.delete_worker(transaction, name)


def workers(transaction: Transaction) -> list[WorkerSeen]:
    """Those that are there, and those that died within the last hour, by name."""
    return [WorkerSeen(*row) for row in queries.all_workers(transaction, alive_within=_ALIVE_SECONDS)]


def subscribed_topics(transaction: Transaction) -> frozenset[str]:
    """The topics of messages that some worker which is alive subscribes to."""
    return frozenset(
        topic for worker in workers(transaction) if worker.alive for topic in worker.data.get("topics", ())
    )


def forget_workers(transaction: Transaction) -> int:
    """Drop those that were not seen for an hour; the answer is how many."""
    return queries.delete_unseen_workers(transaction, seconds=_KEPT_SECONDS)


def note_death(transaction: Transaction, name: str, items: int) -> None:
    """A worker died, or stopped responding, with so many items in its hands."""
    if not queries.count_more_lost(transaction, name, items):
        queries.insert_death(transaction, name, items)


def count_deaths(transaction: Transaction) -> int:
    """How many workers have died since the database was made, those of them that held something."""
    return queries.count_deaths(transaction)
