"""One pass of a relay: a batch of messages is taken under a token, sent, confirmed and marked.

:mod:`penstock.operations.outbox` says how that keeps messages in order.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC
from functools import partial
from types import TracebackType
from typing import Concatenate, NamedTuple, ParamSpec, Self, TypeAlias, TypeVar
from uuid import UUID, uuid4, uuid5
from weakref import WeakKeyDictionary

from penstock.errors import BrokerUnavailable, MessageRefused
from penstock.lifecycle.bounds import TOPIC
from penstock.lifecycle.error_text import describe_error
from penstock.lifecycle.payloads import encode, storable_text
from penstock.lifecycle.retry import Backoff
from penstock.lifecycle.transport import Delivery, Message, Send, dead_letter_topic, is_dead_letter_topic
from penstock.store.engine import Store
from penstock.store.queries import outbox as queries
from penstock.store.transaction import Transaction

_BACKOFF = Backoff(1.0, 2.0, 300.0)
_OUTAGE_BACKOFF = Backoff(1.0, 2.0, 5.0)
"""For what no message is to blame for: all of them go soon after the broker is back."""
_TAKEN_SECONDS = 60.0
_SENDING_SECONDS = 45.0
"""No send begins later than this after the take, so that few are still under way when it runs out."""
_MAX_CHARACTERS = 8_000_000
"""What a take reads of payloads, and one message more: a thousand large ones at once would fill the memory."""
_MESSAGE_IDS = UUID("6c9fbb2e-6a0c-4a0f-8d0d-3f8e1f1f4d53")
"""What ids of messages are made in: it must never change."""
Line: TypeAlias = tuple[str, str]
"""A topic and a key: messages of one line are sent in their order."""
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def relay_batch(store: Store, send: Send, topic: str | None, *, limit: int) -> int:
    """Send so many messages that are due at most, of one topic or of all; the answer is how many went out."""
    take = Take.begin(store, topic, limit=limit)
    if take is None:
        return 0
    with Shipment(store, take, send) as shipment:
        for message in take.messages():
            line = None if message.key is None else (message.topic, message.key)
            shipment.confirm_line(line)
            if line in shipment.held_up:
                continue
            if shipment.is_broker_away or not take.may_send(line):
                break
            shipment.send(message, line)
        shipment.confirm()
    take.end()
    return shipment.sent_count


class _UnderWay(NamedTuple):
    message: queries.TakenMessage
    line: Line | None
    delivery: Delivery


class Shipment:
    """The messages of a take that are on their way: sent, and not confirmed yet; never two of one line."""

    def __init__(self, store: Store, take: Take, send: Send) -> None:
        self._take = take
        self._send = send
        self._flights = _in_flight(store)
        self._under_way: list[_UnderWay] = []
        self._lines: set[Line] = set()
        self.held_up: set[Line] = set()
        """The lines of which one could not be sent."""
        self.is_broker_away = False
        self.sent_count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # Somebody at a terminal ended the program: what was taken is due again after a minute.
        self._flights.difference_update(entry.message.id for entry in self._under_way)

    def send(self, message: queries.TakenMessage, line: Line | None) -> None:
        """Hand a message to the transport."""
        # While it is in flight no other relay of this process takes it, however long its subscriber needs.
        self._flights.add(message.id)
        try:
            delivery = self._send(_message(message))
        except KeyboardInterrupt:
            self._flights.discard(message.id)
            raise
        except BaseException as error:  # noqa: BLE001 - whatever the transport raises, the message stays and is tried again
            self._note_error(message, line, error)
            return
        if delivery is None:
            self._note_sent(message, line)
            return
        self._under_way.append(_UnderWay(message, line, delivery))
        if line is not None:
            self._lines.add(line)

    def confirm_line(self, line: Line | None) -> None:
        """Wait for what is under way, if that holds up the next of this line."""
        if line in self._lines:
            self.confirm()

    def confirm(self) -> None:
        """Wait for everything that is under way, and note how it ended."""
        while self._under_way:
            message, line, delivery = self._under_way[0]
            try:
                delivery.wait()
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001 - as above
                self._note_error(message, line, error)
            else:
                self._note_sent(message, line)
            del self._under_way[0]
        self._lines.clear()

    def _note_sent(self, message: queries.TakenMessage, line: Line | None) -> None:
        self._flights.discard(message.id)
        self._take.note_sent(message.id, line)
        self.sent_count += 1

    def _note_error(self, message: queries.TakenMessage, line: Line | None, error: BaseException) -> None:
        self._flights.discard(message.id)
        if isinstance(error, MessageRefused) and self._take.put_aside(message, error.message):
            self.sent_count += 1
            return
        if line is not None:
            self.held_up.add(line)
        self.is_broker_away = self.is_broker_away or isinstance(error, BrokerUnavailable)
        self._take.note_failure(message, error)


def _message(row: queries.TakenMessage) -> Message:
    """A message as the world knows it: its number is this database's alone, its id is nobody else's."""
    moment = row.created_at.astimezone(UTC).isoformat()
    message_id = uuid5(_MESSAGE_IDS, "\n".join((str(row.id), moment, row.topic, row.key or "")))
    return Message(str(message_id), row.topic, row.key, row.payload, row.created_at)


class Take:
    """A batch of messages that one relay has taken, for a minute."""

    def __init__(self, store: Store, lease: UUID, until: float) -> None:
        self._store = store
        self._lease = lease
        self._until = until
        self._ids: Sequence[int] = ()
        self._unmarked_ids: list[int] = []
        self._unmarked_lines: set[Line] = set()
        self._open_count = 0
        self._lost = False

    @classmethod
    def begin(cls, store: Store, topic: str | None, *, limit: int) -> Take | None:
        """Take the next messages; None when there are none."""
        # The time runs from before the database is asked: ours is over before the take is.
        take = cls(store, uuid4(), _now(store) + _SENDING_SECONDS)
        take._ids = take._write(
            queries.take_messages, topic, limit=limit, seconds=_TAKEN_SECONDS, in_flight=list(_in_flight(store))
        )
        take._open_count = len(take._ids)
        return take if take._ids else None

    def messages(self) -> list[queries.TakenMessage]:
        """Those that may be sent, in their order; what is too much for one take is handed back when it ends."""
        return self._store.read(
            partial(queries.taken_messages, lease=self._lease, messages=self._ids, max_characters=_MAX_CHARACTERS),
            single_statement=True,
        )

    def may_send(self, line: Line | None) -> bool:
        """Is the next message still ours to send? One of the same key before it is marked first."""
        if line in self._unmarked_lines:
            self._mark()
        return not self._lost and _now(self._store) < self._until

    def note_sent(self, message_id: int, line: Line | None) -> None:
        """Note that the transport has accepted this message."""
        self._unmarked_ids.append(message_id)
        if line is not None:
            self._unmarked_lines.add(line)

    def note_failure(self, message: queries.TakenMessage, error: BaseException) -> None:
        """Note that this message could not be sent: it is postponed."""
        backoff = _OUTAGE_BACKOFF if isinstance(error, BrokerUnavailable) else _BACKOFF
        text, seconds = storable_text(describe_error(error))[:2000], backoff.delay(message.attempts + 1)
        self._open_count -= self._write(queries.postpone, message.id, error=text, seconds=seconds)

    def put_aside(self, message: queries.TakenMessage, reason: str) -> bool:
        """Turn a message that nobody can take into a dead letter; False when it is one already, or cannot be one."""
        topic = dead_letter_topic(message.topic)
        if is_dead_letter_topic(message.topic) or len(topic) > TOPIC.longest:
            return False
        # The message itself was within the bound of payloads; what is said about it does not count.
        payload = {"reason": storable_text(reason), "message": message.payload}
        text = encode(payload, max_bytes=sys.maxsize, at="payload")

        def operation(transaction: Transaction) -> int:
            marked_count = queries.mark_sent(transaction, self._lease, [message.id])
            if marked_count:
                queries.append_message(transaction, topic, message.key, text)
                transaction.log("a message was put aside", level="warning", topic=message.topic, reason=reason)
            return marked_count

        marked_count = self._store.write(operation)
        self._open_count -= marked_count
        self._lost = self._lost or not marked_count
        return True

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


def _now(store: Store) -> float:
    """Seconds of the monotonic clock, or of the clock that a test moves."""
    fixed_now = store.clock.held()
    return time.monotonic() if fixed_now is None else fixed_now.timestamp()
