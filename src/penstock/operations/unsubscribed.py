"""Messages that nobody subscribes to: named in the log while they wait, and dropped when they are old.

Their subscriber may be on its way, or their topic may be a mistake: nobody here can tell. So they are kept for long,
and somebody is told soon.
"""

from __future__ import annotations

from collections.abc import Collection

import structlog

from penstock.operations.outbox import count_unsubscribed, drop_unsubscribed
from penstock.operations.workers import subscribed_topics
from penstock.store.engine import Store
from penstock.store.transaction import Transaction

_log = structlog.get_logger("penstock.messages")


class UnsubscribedMessages:
    """Looks after them, for one process, which names a topic when it is new among them and not in each pass."""

    def __init__(self) -> None:
        self._named_topics: frozenset[str] = frozenset()

    def look_after(self, store: Store, own_topics: Collection[str], *, days: float) -> None:
        """Drop what is older than so many days, and name the topics of what has waited for a minute.

        ``own_topics`` are those that this process delivers, whether it has signed in as a worker or not.
        """

        def drop(transaction: Transaction) -> int:
            topics = subscribed_topics(transaction).union(own_topics)
            return drop_unsubscribed(transaction, topics, days=days)

        def count(transaction: Transaction) -> dict[str, int]:
            return count_unsubscribed(transaction, subscribed_topics(transaction).union(own_topics))

        store.write(drop, bounded=True)
        counts = store.read(count)
        if new_topics := counts.keys() - self._named_topics:
            _log.error(
                "messages wait that no running worker subscribes to",
                topics={topic: counts[topic] for topic in sorted(new_topics)}, dropped_after_days=days,
            )  # fmt: skip
        self._named_topics = frozenset(counts)
