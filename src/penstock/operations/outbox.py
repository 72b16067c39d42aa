"""The transactional outbox: a message is written with the change it tells of, and sent afterwards, at least once.

Appending is part of the caller's transaction, so there is never a message about something that did not happen. The
relay takes a batch for a minute, hands each message to the transport with no transaction open, and then marks what was
sent: when it dies in between, the batch is due again after that minute and is sent once more. Messages of one key go
out in their order; one that fails holds up those of its key behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from penstock.lifecycle.bounds import MESSAGE_KEY, TOPIC
from penstock.lifecycle.error_text import described
from penstock.lifecycle.payloads import JSON, encode, storable_text
from penstock.lifecycle.retry import Backoff
from penstock.store.engine import Store, Transaction
from penstock.store.statements import outbox as statements

_BACKOFF = Backoff(1.0, 2.0, 300.0)
_KEEP_SECONDS = 7 * 86400.0
_TAKEN_SECONDS = 60.0
AT_ONCE = 100
MOST_COUNTED = 10_000
"""A backlog is counted so far and no further: as many mean as many or more."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message on its way out."""

    id: int
    topic: str
    key: str | None
    payload: JSON
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Backlog:
    """What has not been sent yet."""

    waiting: int
    oldest_seconds: float | None
    """How long the oldest has waited; None when nothing does."""
    failing: int
    """Those that were tried in vain, or held up by one that was."""
    last_error: str | None
    """Why the first of those could not be sent."""


Send = Callable[[Message], None]


def append(transaction: Transaction, topic: str, payload: JSON, *, key: str | None, most: int) -> None:
    """Put a message into the outbox; it goes out once this transaction has committed."""
    TOPIC.require(topic)
    if key is not None:
        MESSAGE_KEY.require(key)
    text = encode(payload, most=most, at="payload")
    transaction.run(
        statements.append_message(transaction.ways), {"the_topic": topic, "the_key": key, "the_payload": text}
    )


def relay(store: Store, send: Send) -> int:
    """Send the messages that are due; one that fails is tried again later, with those of its key behind it."""
    rows = store.write(_take)
    sent: list[int] = []
    failed: list[tuple[Any, str]] = []
    held_up: set[str] = set()
    for row in rows:
        if row.key is not None and row.key in held_up:
            failed.append((row, "a message of the same key before it could not be sent"))
            continue
        try:
            send(Message(row.id, row.topic, row.key, row.payload, row.created_at))
        except KeyboardInterrupt:
            raise  # somebody at a terminal ends the program; what was taken is due again after a minute
        except BaseException as error:  # noqa: BLE001 - whatever the transport raises, the message stays and is tried again
            if row.key is not None:
                held_up.add(row.key)
            failed.append((row, described(error)))
        else:
            sent.append(row.id)
    if rows:
        store.write(lambda transaction: _mark(transaction, sent, failed))
    return len(sent)


def _take(transaction: Transaction) -> Sequence[Any]:
    if transaction.run(statements.first_unsent(transaction.ways)).scalar() is None:
        return ()
    rows = transaction.run(statements.due_messages(transaction.ways), {"the_limit": AT_ONCE}).all()
    if rows:
        taken = {"the_messages": [row.id for row in rows], "the_delay": _TAKEN_SECONDS}
        transaction.run(statements.take_messages(transaction.ways), taken)
    return rows


def _mark(transaction: Transaction, sent: Sequence[int], failed: Sequence[tuple[Any, str]]) -> None:
    if sent:
        transaction.run(statements.mark_sent(transaction.ways), {"the_messages": sent})
    for row, error in failed:
        _postpone(transaction, row, error)


def _postpone(transaction: Transaction, row: Any, error: str) -> None:
    parameters = {
        "the_message": row.id,
        "the_error": storable_text(error)[:2000],
        "the_delay": _BACKOFF.delay(row.attempts + 1),
    }
    transaction.run(statements.postpone(transaction.ways), parameters)


def backlog(transaction: Transaction) -> Backlog:
    """How far behind the relay is, by the oldest messages that wait."""
    row = transaction.run(statements.backlog(transaction.ways), {"the_limit": MOST_COUNTED}).one()
    waited = None if row.oldest is None else max(0.0, (row.now - row.oldest).total_seconds())
    return Backlog(row.waiting, waited, row.failing, row.last_error)


def forget_sent(transaction: Transaction) -> int:
    """Delete messages sent a week ago or longer."""
    return transaction.run(statements.forget_sent(transaction.ways), {"the_seconds": _KEEP_SECONDS}).rowcount
