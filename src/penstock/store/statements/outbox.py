"""Messages written with the change they tell of, and sent afterwards."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
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
    delete,
    func,
    insert,
    literal_column,
    null,
    select,
    update,
)
from sqlalchemy.sql.dml import ReturningDelete

from penstock.store.dialects.contract import Dialect
from penstock.store.queries.built_once import built_once
from penstock.store.tables import outbox
from penstock.store.types import Identifier, RowNumber

_LEASE = bindparam("the_lease", type_=Identifier)
_UNSENT = outbox.c.sent_at.is_(None)
_earlier = outbox.alias("earlier")


def _behind_one(*conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    """Is there an earlier unsent message of the same topic and key of which the conditions hold?

    The first one is asked for, so that it is looked up by its key: of an EXISTS PostgreSQL makes a join, and while the
    table is not analyzed it reads all that wait for each message.
    """
    same = (_earlier.c.topic == outbox.c.topic, _earlier.c.key == outbox.c.key, _earlier.c.id < outbox.c.id)
    found = select(_earlier.c.id).where(*same, _earlier.c.sent_at.is_(None), *conditions)
    return found.order_by(_earlier.c.id).limit(literal_column("1")).scalar_subquery().is_not(None)


@built_once
def append_message(dialect: Dialect) -> Insert:
    """Put one message behind the others."""
    source = select(
        bindparam("the_topic", type_=String),
        bindparam("the_key", type_=String),
        dialect.json(bindparam("the_payload", type_=Text)),
        dialect.now(),
        dialect.now(),
    )
    return insert(outbox).from_select(["topic", "key", "payload", "ready_at", "created_at"], source)


@built_once
def backlog(dialect: Dialect) -> Select[Any]:
    """How many messages wait, how many of them failed and why the first did, how many have no subscriber; since when.

    Of the oldest so many: an outbox that nobody empties must not make those who look at it wait.
    """
    waiting = (
        select(outbox.c.id, outbox.c.topic, outbox.c.created_at, outbox.c.attempts)
        .where(_UNSENT)
        .order_by(outbox.c.id)
        .limit(bindparam("the_limit", type_=Integer))
        .subquery("waiting")
    )
    failed = waiting.c.attempts > 0
    unsubscribed = ~dialect.among(waiting.c.topic, "the_subscribed")
    counted = select(
        func.count().label("waiting"),
        func.count().filter(failed).label("failing"),
        func.count().filter(unsubscribed).label("unsubscribed"),
        func.min(waiting.c.created_at).filter(~unsubscribed).label("oldest"),
        func.min(waiting.c.created_at).filter(unsubscribed).label("oldest_unsubscribed"),
        func.min(waiting.c.id).filter(failed).label("first_failed"),
    ).subquery("counted")
    why = select(outbox.c.last_error).where(outbox.c.id == counted.c.first_failed).scalar_subquery()
    return select(*counted.c, why.label("last_error"), dialect.now().label("now"))


@built_once
def take_messages(dialect: Dialect, *, of_topic: bool) -> Update:
    """Give the oldest messages that are due to one relay, of one topic or of all; the rows are their ids.

    None that is behind one which waits for its next try or is with another relay, as far as this statement sees: what
    it does not see, :func:`taken_messages` does. None that this process is sending just now, however long that takes.
    """
    conditions = [
        _UNSENT,
        outbox.c.ready_at <= dialect.now(),
        ~dialect.among(outbox.c.id, "the_sending"),
        ~_behind_one(_earlier.c.ready_at > dialect.now()),
    ]
    if of_topic:
        conditions.append(outbox.c.topic == bindparam("the_topic", type_=String))
    due = (
        select(outbox.c.id)
        .where(*conditions)
        .order_by(outbox.c.id)
        .limit(bindparam("the_limit", type_=Integer))
        .with_for_update(skip_locked=True)
        .cte("due")
    )
    return (
        update(outbox)
        .where(outbox.c.id.in_(select(due.c.id)))
        .values(lease=_LEASE, ready_at=dialect.later(dialect.now(), bindparam("the_seconds", type_=Float)))
        .returning(outbox.c.id)
    )


@built_once
def taken_messages(dialect: Dialect) -> Select[Any]:
    """The messages of a take that may be sent, in their order.

    None that has an earlier unsent one of its topic and key outside the take. This must be seen after the take was
    committed: the take itself passes over rows that others are changing, and sees them as they were before.
    """
    return (
        select(outbox.c.id, outbox.c.topic, outbox.c.key, outbox.c.payload, outbox.c.attempts, outbox.c.created_at)
        .where(
            dialect.among(outbox.c.id, "the_messages"),
            outbox.c.lease == _LEASE,
            _UNSENT,
            ~_behind_one(_earlier.c.lease.is_distinct_from(_LEASE)),
        )
        .order_by(outbox.c.id)
    )


@built_once
def mark_sent(dialect: Dialect) -> Update:
    """The transport has these, and the take that it had them from still holds."""
    return (
        update(outbox)
        .where(dialect.among(outbox.c.id, "the_messages"), outbox.c.lease == _LEASE, _UNSENT)
        .values(sent_at=dialect.now(), attempts=outbox.c.attempts + 1, lease=null())
    )


@built_once
def postpone(dialect: Dialect) -> Update:
    """This one could not be sent: try again later, if the take still holds."""
    return (
        update(outbox)
        .where(outbox.c.id == bindparam("the_message", type_=RowNumber), outbox.c.lease == _LEASE, _UNSENT)
        .values(
            attempts=outbox.c.attempts + 1,
            last_error=bindparam("the_error", type_=Text),
            ready_at=dialect.later(dialect.now(), bindparam("the_seconds", type_=Float)),
            lease=null(),
        )
    )


@built_once
def hand_back(dialect: Dialect) -> Update:
    """What a take still holds is due at once, for anybody."""
    return (
        update(outbox)
        .where(dialect.among(outbox.c.id, "the_messages"), outbox.c.lease == _LEASE, _UNSENT)
        .values(ready_at=dialect.now(), lease=null())
    )


@built_once
def forget_sent(dialect: Dialect) -> Delete:
    """Messages sent longer ago than so many seconds."""
    limit = dialect.later(dialect.now(), -bindparam("the_seconds", type_=Float))
    old = select(outbox.c.id).where(outbox.c.sent_at < limit).with_for_update(skip_locked=True)
    return delete(outbox).where(outbox.c.id.in_(old.correlate(None)))


@built_once
def drop_unsubscribed(dialect: Dialect) -> ReturningDelete[Any]:
    """Messages that waited longer than so many seconds, of topics that nobody subscribes to; the rows are the topics.

    None that was tried, nor any behind one that was, and only from the oldest so many.
    """
    oldest = (
        select(outbox.c.id)
        .where(_UNSENT)
        .order_by(outbox.c.id)
        .limit(bindparam("the_limit", type_=Integer))
        .cte("oldest")
    )
    limit = dialect.later(dialect.now(), -bindparam("the_seconds", type_=Float))
    old = (
        select(outbox.c.id)
        .where(
            outbox.c.id.in_(select(oldest.c.id)),
            _UNSENT,
            outbox.c.attempts == 0,
            outbox.c.ready_at <= dialect.now(),
            outbox.c.created_at < limit,
            ~dialect.among(outbox.c.topic, "the_subscribed"),
            ~_behind_one(_earlier.c.attempts > 0),
        )
        .with_for_update(skip_locked=True)
        .cte("old")
    )
    return delete(outbox).where(outbox.c.id.in_(select(old.c.id))).returning(outbox.c.topic)
