"""Which messages had their effect."""

from __future__ import annotations

from sqlalchemy import Delete, Float, Insert, String, bindparam, delete, select

from penstock.store.dialects.dialect import Dialect
from penstock.store.queries.built_once import built_once
from penstock.store.tables import inbox
from penstock.store.transaction import Transaction


def insert_message(transaction: Transaction, subscriber: str, topic: str, message_id: str) -> bool:
    """Write a message down; False when it is there already, and who is just writing it is waited for."""
    parameters = {"subscriber": subscriber, "topic": topic, "message_id": message_id}
    return bool(transaction.values(str, _insert_message(transaction.dialect), parameters))


@built_once
def _insert_message(dialect: Dialect) -> Insert:
    source = select(
        bindparam("subscriber", type_=String),
        bindparam("topic", type_=String),
        bindparam("message_id", type_=String),
        dialect.now(),
    )
    columns = ["subscriber", "topic", "message_id", "accepted_at"]
    return dialect.insert_unless_taken(inbox).from_select(columns, source).returning(inbox.c.message_id)


def delete_old(transaction: Transaction, *, seconds: float) -> int:
    """Delete those written longer ago than so many seconds; the answer is how many."""
    return transaction.execute(_delete_old(transaction.dialect), {"seconds": seconds})


@built_once
def _delete_old(dialect: Dialect) -> Delete:
    limit = dialect.later(dialect.now(), -bindparam("seconds", type_=Float))
    return delete(inbox).where(inbox.c.accepted_at < limit)
