"""The transactional outbox: a message is written with the change it tells of, and sent afterwards, at least once.

Appending is part of the caller's transaction, so there is never a message about something that did not happen. A relay
*takes* a batch under a token (a lease) for a minute, *looks* which of them may go, hands each to the transport with no
transaction open, and marks what was sent. Each of these is one statement, and none waits for a lock.

**Order.** A message is sent only when all earlier ones of its topic and key were sent, as far as they can be seen:

- Two takes at the same moment pass over each other's rows, so a relay may get a message while another has the one
  before it. Therefore it looks again once its take is committed, and hands back what is behind a message that is
  neither sent nor its own.
- Within a take a message is marked before the next one of its key is sent. Who comes after a crash sends at most that
  one again, never an older one behind a newer one.
- Only who has the token may mark. A relay that finds its token gone stops, and so does one whose minute is nearly over.

``docs/explanation/messages.md`` has the promises, and what they do not cover.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Concatenate, ParamSpec, Protocol, TypeVar
from uuid import UUID, uuid4
from weakref import WeakKeyDictionary

from penstock.lifecycle.bounds import MESSAGE_KEY, TOPIC
from penstock.lifecycle.error_text import describe_error
from penstock.lifecycle.payloads import JSON, encode, storable_text
from penstock.lifecycle.retry import Backoff
from penstock.store.engine import Store
from penstock.store.queries import outbox as queries
from penstock.store.transaction import Transaction

_BACKOFF = Backoff(1.0, 2.0, 300.0)
_KEEP_SECONDS = 7 * 86400.0
_TAKEN_SECONDS = 60.0
_SENDING_SECONDS = 45.0
"""No send begins later than this after the take, so that few are still under way when it runs out."""
AT_ONCE = 100
MAX_COUNTED = 10_000
"""A backlog is counted so far and no further: as many mean as many or more."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message on its way out."""

    id: int
    """The same each time it is sent, and never another message's."""
    topic: str
    key: str | None
    payload: JSON
    created_at: datetime


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


Send = Callable[[Message], None]
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Transport(Protocol):
    """What carries messages out of the outbox."""

    def topics(self) -> frozenset[str]:
        """The topics that have subscribers now."""

    def send(self, message: Message) -> None:
        """Deliver one message of these topics; what it raises is an error of that message."""


def append(transaction: Transaction, topic: str, payload: JSON, *, key: str | None, max_bytes: int) -> None:
    """Put a message into the outbox; it goes out once this transaction has committed."""
    TOPIC.require(topic)
    if key is not None:
        MESSAGE_KEY.require(key)
    text = encode(payload, max_bytes=max_bytes, at="payload")
    queries.append_message(transaction, topic, key, text)


def relay(store: Store, send: Send, *, topics: Collection[str] | None = None) -> int:
    """Send messages that are due, of these topics or of all, up to ``AT_ONCE`` each; the answer is how many went out.

    One that fails is tried again later, with those of its key behind it.
    """
    return sum(_relay(store, send, topic) for topic in ([None] if topics is None else sorted(topics)))


def _relay(store: Store, send: Send, topic: str | None) -> int:
    take = Take.begin(store, topic)
    if take is None:
        return 0
    held_up: set[tuple[str, str]] = set()
    sent_count = 0
    for message in take.messages():
        line = None if message.key is None else (message.topic, message.key)
        if line in held_up:
            continue
        if not take.may_send(line):
            break
        try:
            with _sending(store, message.id):
                send(Message(message.id, message.topic, message.key, message.payload, message.created_at))
        except KeyboardInterrupt:
            raise  # somebody at a terminal ends the program; what was taken is due again after a minute
        except BaseException as error:  # noqa: BLE001 - whatever the transport raises, the message stays and is tried again
            if line is not None:
                held_up.add(line)
            take.note_failure(message, describe_error(error))
        else:
            take.note_sent(message.id, line)
            sent_count += 1
    take.end()
    return sent_count


class Take:
    """A batch of messages that one relay has taken, for a minute."""

    def __init__(self, store: Store, lease: UUID, until: float) -> None:
        self._store = store
        self._lease = lease
        self._until = until
        self._ids: Sequence[int] = ()
        self._unmarked_ids: list[int] = []
        self._unmarked_lines: set[tuple[str, str]] = set()
        self._open_count = 0
        self._lost = False

    @classmethod
    def begin(cls, store: Store, topic: str | None) -> Take | None:
        """Take the next messages; None when there are none."""
        # The time runs from before the database is asked: ours is over before the take is.
        take = cls(store, uuid4(), _now(store) + _SENDING_SECONDS)
        take._ids = take._write(
            queries.take_messages, topic, limit=AT_ONCE, seconds=_TAKEN_SECONDS, in_flight=list(_in_flight(store))
        )
        take._open_count = len(take._ids)
        return take if take._ids else None

    def messages(self) -> list[queries.TakenMessage]:
        """Those that may be sent, in their order."""
        return self._store.read(
            partial(queries.taken_messages, lease=self._lease, messages=self._ids), single_statement=True
        )

    def may_send(self, line: tuple[str, str] | None) -> bool:
        """Is the next message still ours to send? One of the same key before it is marked first."""
        if line in self._unmarked_lines:
            self._mark()
        return not self._lost and _now(self._store) < self._until

    def note_sent(self, message_id: int, line: tuple[str, str] | None) -> None:
        """Note that the transport has accepted this message."""
        self._unmarked_ids.append(message_id)
        if line is not None:
            self._unmarked_lines.add(line)

    def note_failure(self, message: queries.TakenMessage, error: str) -> None:
        """Note that this message could not be sent: it is postponed."""
        error, seconds = storable_text(error)[:2000], _BACKOFF.delay(message.attempts + 1)
        self._open_count -= self._write(queries.postpone, message.id, error=error, seconds=seconds)

    def end(self) -> None:
        """Mark what was sent, and hand back the rest."""
        self._mark()
        if self._open_count:
            self._write(queries.hand_back, self._ids)

    def _mark(self) -> None:
        if not self._unmarked_ids:
            return
        marked_count = self._write(queries.mark_sent, self._unmarked_ids)
        self._lost = self._lost or marked_count < len(self._unmarked_ids)
        self._open_count -= marked_count
        self._unmarked_ids.clear()
        self._unmarked_lines.clear()

    def _write(
        self,
        query: Callable[Concatenate[Transaction, UUID, Arguments], Result],
        *arguments: Arguments.args,
        **options: Arguments.kwargs,
    ) -> Result:
        """Run a query of this take in a transaction of its own."""
        return self._store.write(
            lambda transaction: query(transaction, self._lease, *arguments, **options), single_statement=True
        )


_flights: WeakKeyDictionary[Store, set[int]] = WeakKeyDictionary()


def _in_flight(store: Store) -> set[int]:
    """The messages that this process is sending just now."""
    return _flights.setdefault(store, set())


@contextmanager
def _sending(store: Store, message_id: int) -> Iterator[None]:
    """A message is in flight: no other relay of this process takes it, however long its subscriber needs."""
    flights = _in_flight(store)
    flights.add(message_id)
    try:
        yield
    finally:
        flights.discard(message_id)


def _now(store: Store) -> float:
    """Seconds of the monotonic clock, or of the clock that a test moves."""
    fixed_now = store.clock.held()
    return time.monotonic() if fixed_now is None else fixed_now.timestamp()


def backlog(transaction: Transaction, topics: Collection[str]) -> Backlog:
    """How far behind the relays are, by the oldest messages that wait.

    ``topics`` are the topics that running workers subscribe to.
    """
    row = queries.backlog(transaction, list(topics), limit=MAX_COUNTED)

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


def drop_unsubscribed(transaction: Transaction, live_topics: Collection[str], *, days: float) -> int:
    """Drop messages older than so many days, of topics that nobody subscribes to; the log says of which, and how many.

    Without this a topic that nobody wants would fill the database.
    """
    topics = queries.drop_unsubscribed(transaction, list(live_topics), seconds=days * 86400.0, limit=MAX_COUNTED)
    dropped_by_topic = Counter(topics)
    if dropped_by_topic:
        transaction.log(
            "dropped messages that nobody subscribes to", level="warning", topics=dict(dropped_by_topic), days=days
        )
    return dropped_by_topic.total()
