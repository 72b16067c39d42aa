"""Messages written with the change they tell of, and sent afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Delete,
    Float,
    Insert,
    Integer,
    Select,
    String,
    Text,
    Update,
    bindparam,
    cast,
    delete,
    func,
    insert,
    literal_column,
    null,
    select,
    update,
)
from sqlalchemy.sql.dml import ReturningDelete

from penstock.lifecycle.payloads import JSON
from penstock.store.dialects.dialect import Dialect
from penstock.store.queries.built_once import built_once
from penstock.store.tables import outbox
from penstock.store.transaction import Transaction
from penstock.store.types import Identifier, RowNumber

_LEASE = bindparam("lease", type_=Identifier)
_UNSENT = outbox.c.sent_at.is_(None)
_earlier = outbox.alias("earlier")


class TakenMessage(NamedTuple):
    """A message that its relay may send."""

    id: int
    topic: str
    key: str | None
    payload: JSON
    attempts: int
    created_at: datetime


class BacklogRow(NamedTuple):
    """What waits, counted among the oldest."""

    waiting: int
    failing: int
    unsubscribed: int
    oldest: datetime | None
    oldest_unsubscribed: datetime | None
    first_failed: int | None
    last_error: str | None
    """Of the first that failed."""
    now: datetime


class TopicCount(NamedTuple):
    """How many messages of a topic there are."""

    topic: str
    messages: int


def append_message(transaction: Transaction, topic: str, key: str | None, payload: str) -> None:
    """Put one message behind the others; its payload is JSON text."""
    parameters = {"topic": topic, "key": key, "payload": payload}
    transaction.execute(_append_message(transaction.dialect), parameters)


@built_once
def _append_message(dialect: Dialect) -> Insert:
    source = select(
        bindparam("topic", type_=String),
        bindparam("key", type_=String),
        dialect.json(bindparam("payload", type_=Text)),
        dialect.now(),
        dialect.now(),
    )
    return insert(outbox).from_select(["topic", "key", "payload", "ready_at", "created_at"], source)


def backlog(transaction: Transaction, topics: Sequence[str], *, limit: int) -> BacklogRow:
    """How many messages wait, how many of them failed and why the first did, how many have no subscriber; since when.

    Of the oldest so many: a full outbox must not make this query slow.
    """
    parameters = {"subscribed": topics, "limit": limit}
    [row] = transaction.fetch(BacklogRow, _backlog(transaction.dialect), parameters)
    return row


@built_once
def _backlog(dialect: Dialect) -> Select[Any]:
    waiting = (
        select(outbox.c.id, outbox.c.topic, outbox.c.created_at, outbox.c.attempts)
        .where(_UNSENT)
        .order_by(outbox.c.id)
        .limit(_limit())
        .subquery("waiting")
    )
    failed = waiting.c.attempts > 0
    is_unsubscribed = ~dialect.among(waiting.c.topic, "subscribed")
    counts = select(
        func.count().label("waiting"),
        func.count().filter(failed).label("failing"),
        func.count().filter(is_unsubscribed).label("unsubscribed"),
        func.min(waiting.c.created_at).filter(~is_unsubscribed).label("oldest"),
        func.min(waiting.c.created_at).filter(is_unsubscribed).label("oldest_unsubscribed"),
        func.min(waiting.c.id).filter(failed).label("first_failed"),
    ).subquery("counted")
    why = select(outbox.c.last_error).where(outbox.c.id == counts.c.first_failed).scalar_subquery()
    return select(*counts.c, why.label("last_error"), dialect.now().label("now"))


def take_messages(
    transaction: Transaction, lease: UUID, topic: str | None, *, limit: int, seconds: float, in_flight: Sequence[int]
) -> list[int]:
    """Give the oldest messages that are due to one relay, of one topic or of all; the answer is their ids.

    None that is behind one which waits for its next try or is with another relay, as far as this statement sees: what
    it does not see, :func:`taken_messages` does. None that this process is sending just now, however long that takes.
    """
    parameters = {"lease": lease, "topic": topic, "limit": limit, "seconds": seconds, "in_flight": in_flight}
    return transaction.values(int, _take_messages(transaction.dialect, of_topic=topic is not None), parameters)


@built_once
def _take_messages(dialect: Dialect, *, of_topic: bool) -> Update:
    conditions = [
        _UNSENT,
        outbox.c.ready_at <= dialect.now(),
        ~dialect.among(outbox.c.id, "in_flight"),
        ~_is_behind(_earlier.c.ready_at > dialect.now()),
    ]
    if of_topic:
        conditions.append(outbox.c.topic == bindparam("topic", type_=String))
    due = (
        select(outbox.c.id)
        .where(*conditions)
        .order_by(outbox.c.id)
        .limit(_limit())
        .with_for_update(skip_locked=True)
        .cte("due")
    )
    return (
        update(outbox)
        .where(outbox.c.id.in_(select(due.c.id)))
        .values(lease=_LEASE, ready_at=dialect.later(dialect.now(), _seconds()))
        .returning(outbox.c.id)
    )


def taken_messages(
    transaction: Transaction, lease: UUID, messages: Sequence[int], *, max_characters: int
) -> list[TakenMessage]:
    """The messages of a take that may be sent, in their order, until their payloads together have so many characters.

    None that has an earlier unsent one of its topic and key outside the take. This must be seen after the take was
    committed: the take itself passes over rows that others are changing, and sees them as they were before.
    """
    parameters = {"lease": lease, "messages": messages, "max_characters": max_characters}
    return transaction.fetch(TakenMessage, _taken_messages(transaction.dialect), parameters)


@built_once
def _taken_messages(dialect: Dialect) -> Select[Any]:
    length = func.length(cast(outbox.c.payload, Text))
    messages = (
        select(
            outbox.c.id, outbox.c.topic, outbox.c.key, outbox.c.payload, outbox.c.attempts, outbox.c.created_at,
            (func.sum(length).over(order_by=outbox.c.id) - length).label("characters_before"),
        )
        .where(*_still_taken(dialect), ~_is_behind(_earlier.c.lease.is_distinct_from(_LEASE)))
        .subquery("messages")
    )  # fmt: skip
    columns = [column for column in messages.c if column.name != "characters_before"]
    return (
        select(*columns)
        .where(messages.c.characters_before < bindparam("max_characters", type_=BigInteger))
        .order_by(messages.c.id)
    )


def mark_sent(transaction: Transaction, lease: UUID, messages: Sequence[int]) -> int:
    """Mark messages as sent; the answer is how many of them the take still held."""
    return transaction.execute(_mark_sent(transaction.dialect), {"lease": lease, "messages": messages})


@built_once
def _mark_sent(dialect: Dialect) -> Update:
    return (
        update(outbox)
        .where(*_still_taken(dialect))
        .values(sent_at=dialect.now(), attempts=outbox.c.attempts + 1, lease=null())
    )


def postpone(transaction: Transaction, lease: UUID, message_id: int, *, error: str, seconds: float) -> int:
    """Postpone a message that could not be sent; the answer is 0 when the take does not hold it any more."""
    parameters = {"lease": lease, "message_id": message_id, "error": error, "seconds": seconds}
    return transaction.execute(_postpone(transaction.dialect), parameters)


@built_once
def _postpone(dialect: Dialect) -> Update:
    return (
        update(outbox)
        .where(outbox.c.id == bindparam("message_id", type_=RowNumber), outbox.c.lease == _LEASE, _UNSENT)
        .values(
            attempts=outbox.c.attempts + 1,
            last_error=bindparam("error", type_=Text),
            ready_at=dialect.later(dialect.now(), _seconds()),
            lease=null(),
        )
    )


def hand_back(transaction: Transaction, lease: UUID, messages: Sequence[int]) -> None:
    """What a take still holds is due at once, for anybody."""
    transaction.execute(_hand_back(transaction.dialect), {"lease": lease, "messages": messages})


@built_once
def _hand_back(dialect: Dialect) -> Update:
    return update(outbox).where(*_still_taken(dialect)).values(ready_at=dialect.now(), lease=null())


def forget_sent(transaction: Transaction, *, seconds: float) -> int:
    """Delete messages sent longer ago than so many seconds; the answer is how many."""
    return transaction.execute(_forget_sent(transaction.dialect), {"seconds": seconds})


@built_once
def _forget_sent(dialect: Dialect) -> Delete:
    limit = dialect.later(dialect.now(), -_seconds())
    old = select(outbox.c.id).where(outbox.c.sent_at < limit).with_for_update(skip_locked=True)
    return delete(outbox).where(outbox.c.id.in_(old.correlate(None)))


def count_unsubscribed(
    transaction: Transaction, topics: Sequence[str], *, seconds: float, limit: int
) -> list[TopicCount]:
    """Count the messages that wait longer than so many seconds, by topic, of topics that nobody subscribes to.

    Of the oldest so many, as in a backlog.
    """
    parameters = {"subscribed": topics, "seconds": seconds, "limit": limit}
    return transaction.fetch(TopicCount, _count_unsubscribed(transaction.dialect), parameters)


@built_once
def _count_unsubscribed(dialect: Dialect) -> Select[Any]:
    waiting = (
        select(outbox.c.id, outbox.c.topic, outbox.c.created_at)
        .where(_UNSENT)
        .order_by(outbox.c.id)
        .limit(_limit())
        .subquery("waiting")
    )
    is_late = waiting.c.created_at < dialect.later(dialect.now(), -_seconds())
    return (
        select(waiting.c.topic, func.count().label("messages"))
        .where(is_late, ~dialect.among(waiting.c.topic, "subscribed"))
        .group_by(waiting.c.topic)
    )


def drop_unsubscribed(transaction: Transaction, topics: Sequence[str], *, seconds: float, limit: int) -> list[str]:
    """Delete messages that waited longer than so many seconds, of topics that nobody subscribes to; the answer is the
    topic of each.

    None that was tried, nor any behind one that was, and only from the oldest so many.
    """
    parameters = {"subscribed": topics, "seconds": seconds, "limit": limit}
    return transaction.values(str, _drop_unsubscribed(transaction.dialect), parameters)


@built_once
def _drop_unsubscribed(dialect: Dialect) -> ReturningDelete[Any]:
    oldest = select(outbox.c.id).where(_UNSENT).order_by(outbox.c.id).limit(_limit()).cte("oldest")
    limit = dialect.later(dialect.now(), -_seconds())
    old = (
        select(outbox.c.id)
        .where(
            outbox.c.id.in_(select(oldest.c.id)),
            _UNSENT,
            outbox.c.attempts == 0,
            outbox.c.ready_at <= dialect.now(),
            outbox.c.created_at < limit,
            ~dialect.among(outbox.c.topic, "subscribed"),
            ~_is_behind(_earlier.c.attempts > 0),
        )
        .with_for_update(skip_locked=True)
        .cte("old")
    )
    return delete(outbox).where(outbox.c.id.in_(select(old.c.id))).returning(outbox.c.topic)


def _is_behind(*conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    """Is there an earlier unsent message of the same topic and key of which the conditions hold?

    The first one is asked for, so that it is looked up by its key: of an EXISTS PostgreSQL makes a join, and while the
    table is not analyzed it reads all that wait for each message.
    """
    same = (_earlier.c.topic == outbox.c.topic, _earlier.c.key == outbox.c.key, _earlier.c.id < outbox.c.id)
    earlier_message = select(_earlier.c.id).where(*same, _earlier.c.sent_at.is_(None), *conditions)
    return earlier_message.order_by(_earlier.c.id).limit(literal_column("1")).scalar_subquery().is_not(None)


def _still_taken(dialect: Dialect) -> tuple[ColumnElement[bool], ...]:
    """The messages of the list that the take still holds."""
    return dialect.among(outbox.c.id, "messages"), outbox.c.lease == _LEASE, _UNSENT


def _limit() -> ColumnElement[int]:
    return bindparam("limit", type_=Integer)


def _seconds() -> ColumnElement[float]:
    return bindparam("seconds", type_=Float)
