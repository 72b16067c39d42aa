"""The transactional outbox: a message is written with the change it tells of, and sent afterwards, at least once.

Appending is part of the caller's transaction, so there is never a message about something that did not happen. A relay
*takes* a batch under a token (a lease) for a minute, *looks* which of them may go, hands each to the transport with no
transaction open, and marks what was sent. Each of these is one statement, and none waits for a lock.

A transport may answer a send with a *delivery*, to be waited for: then the relay goes on, and waits for many at once.

**Order.** A message is sent only when all earlier ones of its topic and key were sent, as far as they can be seen:

- Two takes at the same moment pass over each other's rows, so a relay may get a message while another has the one
  before it. Therefore it looks again once its take is committed, and hands back what is behind a message that is
  neither sent nor its own.
- Within a take a message is confirmed and marked before the next one of its key is sent. Who comes after a crash sends
  at most that one again, never an older one behind a newer one.
- Only who has the token may mark. A relay that finds its token gone stops, and so does one whose minute is nearly over.

``docs/explanation/messages.md`` has the promises, and what they do not cover.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from penstock.lifecycle.bounds import MESSAGE_KEY, TOPIC
from penstock.lifecycle.payloads import JSON, encode
from penstock.lifecycle.transport import EVERY_TOPIC, Send, Transport
from penstock.operations.relay import relay_batch
from penstock.store.engine import Store
from penstock.store.queries import outbox as queries
from penstock.store.transaction import Transaction

_KEEP_SECONDS = 7 * 86400.0
AT_ONCE = 100
"""How many messages a relay takes at a time, unless its transport says otherwise."""
MAX_COUNTED = 10_000
"""A backlog is counted so far and no further: as many mean as many or more."""
_EARLY_SECONDS = 60.0
"""A message may wait so long for a subscriber that is being started, before anybody is told."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """What has not been sent yet."""

    waiting: int
    oldest_seconds: float | None
    """How long the oldest that has a subscriber has waited: how far the relays are behind. None when there is none."""
    failing: int
    """Those that failed at least once."""
    last_error: str | None
    """Why the first of those could not be sent."""
    unsubscribed: int = 0
    """Those of topics that no running worker subscribes to."""
    unsubscribed_seconds: float | None = None
    """How long the oldest of those has waited."""


def append(transaction: Transaction, topic: str, payload: JSON, *, key: str | None, max_bytes: int) -> None:
    """Put a message into the outbox; it goes out once this transaction has committed."""
    TOPIC.require(topic)
    if key is not None:
        MESSAGE_KEY.require(key)
    text = encode(payload, max_bytes=max_bytes, at="payload")
    queries.append_message(transaction, topic, key, text)


def relay(store: Store, send: Send, *, topics: Collection[str] | None = None, at_once: int = AT_ONCE) -> int:
    """Send messages that are due, of these topics or of all, up to so many each; the answer is how many went out.

    One that fails is tried again later, with those of its key behind it.
    """
    if topics is None or EVERY_TOPIC in topics:
        return relay_batch(store, send, None, limit=at_once)
    return sum(relay_batch(store, send, topic, limit=at_once) for topic in sorted(topics))


def relay_through(store: Store, transport: Transport) -> int:
    """The same for all that a transport carries, as many at a time as suits it."""
    return relay(store, transport.send, topics=transport.topics(), at_once=transport.at_once)


def backlog(transaction: Transaction, topics: Collection[str]) -> Backlog:
    """How far behind the relays are, by the oldest messages that wait.

    ``topics`` are the topics that running workers subscribe to.
    """
    row = queries.backlog(transaction, list(topics), limit=MAX_COUNTED)
    if EVERY_TOPIC in topics:
        oldest = min((moment for moment in (row.oldest, row.oldest_unsubscribed) if moment is not None), default=None)
        row = row._replace(oldest=oldest, oldest_unsubscribed=None, unsubscribed=0)

    def seconds_since(since: datetime | None) -> float | None:
        return None if since is None else max(0.0, (row.now - since).total_seconds())

    return Backlog(
        waiting=row.waiting,
        oldest_seconds=seconds_since(row.oldest),
        failing=row.failing,
        last_error=row.last_error,
        unsubscribed=row.unsubscribed,
        unsubscribed_seconds=seconds_since(row.oldest_unsubscribed),
    )


def forget_sent(transaction: Transaction) -> int:
    """Delete messages sent a week ago or longer."""
    return queries.forget_sent(transaction, seconds=_KEEP_SECONDS)


def count_unsubscribed(transaction: Transaction, live_topics: Collection[str]) -> dict[str, int]:
    """How many messages have waited for a minute and longer, by topic, of the topics that nobody subscribes to."""
    if EVERY_TOPIC in live_topics:
        return {}
    counts = queries.count_unsubscribed(transaction, list(live_topics), seconds=_EARLY_SECONDS, limit=MAX_COUNTED)
    return dict(counts)


def drop_unsubscribed(transaction: Transaction, live_topics: Collection[str], *, days: float) -> int:
    """Drop messages older than so many days, of topics that nobody subscribes to; the log says of which, and how many.

    Without this a topic that nobody wants would fill the database.
    """
    if EVERY_TOPIC in live_topics:
        return 0
    topics = queries.drop_unsubscribed(transaction, list(live_topics), seconds=days * 86400.0, limit=MAX_COUNTED)
    dropped_by_topic = Counter(topics)
    if dropped_by_topic:
        transaction.log(
            "dropped messages that nobody subscribes to", level="warning", topics=dict(dropped_by_topic), days=days
        )
    return dropped_by_topic.total()
