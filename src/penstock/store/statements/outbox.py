"""Messages written with the change they tell of, and sent afterwards."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
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
    select,
    update,
)

from penstock.store.dialects.contract import Ways
from penstock.store.statements.built_once import built_once
from penstock.store.tables import outbox


@built_once
def append_message(ways: Ways) -> Insert:
    """Put one message behind the others."""
    source = select(
        bindparam("the_topic", type_=String),
        bindparam("the_key", type_=String),
        ways.json(bindparam("the_payload", type_=Text)),
        ways.now(),
        ways.now(),
    )
    return insert(outbox).from_select(["topic", "key", "payload", "ready_at", "created_at"], source)


@built_once
def first_unsent(ways: Ways) -> Select[Any]:
    """The oldest message, locked: two relays that take at the same instant take one after the other."""
    return select(outbox.c.id).where(outbox.c.sent_at.is_(None)).order_by(outbox.c.id).limit(1).with_for_update()


@built_once
def backlog(ways: Ways) -> Select[Any]:
    """How many messages wait and since when, how many of them failed, and why the first of those did.

    Of the oldest so many: an outbox that nobody empties must not make those who look at it wait.
    """
    waiting = (
        select(outbox.c.id, outbox.c.created_at, outbox.c.attempts)
        .where(outbox.c.sent_at.is_(None))
        .order_by(outbox.c.id)
        .limit(bindparam("the_limit", type_=Integer))
        .subquery("waiting")
    )
    failed = waiting.c.attempts > 0
    counted = select(
        func.count().label("waiting"),
        func.count().filter(failed).label("failing"),
        func.min(waiting.c.created_at).label("oldest"),
        func.min(waiting.c.id).filter(failed).label("first_failed"),
    ).subquery("counted")
    why = select(outbox.c.last_error).where(outbox.c.id == counted.c.first_failed).scalar_subquery()
    return select(
        counted.c.waiting, counted.c.failing, counted.c.oldest, why.label("last_error"), ways.now().label("now")
    )


@built_once
def due_messages(ways: Ways) -> Select[Any]:
    """The next messages to send, locked against other relays; none before an earlier one of its key."""
    earlier = outbox.alias("earlier")
    held_up = (
        select(earlier.c.id)
        .where(
            earlier.c.key == outbox.c.key,
            earlier.c.id < outbox.c.id,
            earlier.c.sent_at.is_(None),
            earlier.c.ready_at > ways.now(),
        )
        .exists()
    )
    return (
        select(outbox.c.id, outbox.c.topic, outbox.c.key, outbox.c.payload, outbox.c.attempts, outbox.c.created_at)
        .where(outbox.c.sent_at.is_(None), outbox.c.ready_at <= ways.now(), ~held_up)
        .order_by(outbox.c.id)
        .limit(bindparam("the_limit", type_=Integer))
        .with_for_update(skip_locked=True)
    )


@built_once
def take_messages(ways: Ways) -> Update:
    """Not due again until the relay that takes them has had its time."""
    return (
        update(outbox)
        .where(ways.among(outbox.c.id, "the_messages"))
        .values(ready_at=ways.later(ways.now(), bindparam("the_delay", type_=Float)))
    )


@built_once
def mark_sent(ways: Ways) -> Update:
    """These have been taken by the transport."""
    return (
        update(outbox)
        .where(ways.among(outbox.c.id, "the_messages"))
        .values(sent_at=ways.now(), attempts=outbox.c.attempts + 1)
    )


@built_once
def postpone(ways: Ways) -> Update:
    """This one could not be sent: try again later."""
    return (
        update(outbox)
        .where(outbox.c.id == bindparam("the_message"))
        .values(
            attempts=outbox.c.attempts + 1,
            last_error=bindparam("the_error", type_=Text),
            ready_at=ways.later(ways.now(), bindparam("the_delay", type_=Float)),
        )
    )


@built_once
def forget_sent(ways: Ways) -> Delete:
    """Messages sent longer ago than so many seconds."""
    limit = ways.later(ways.now(), -bindparam("the_seconds", type_=Float))
    return delete(outbox).where(outbox.c.sent_at < limit)
