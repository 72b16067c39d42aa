"""The inbox: a message that comes twice has its effect once.

Messages come at least once: a relay dies between sending and marking, a broker hands out again what a consumer had not
committed, and two consumers may be at work on one message for a while when a group is rebalanced. Whoever applies a
message *accepts* it in the transaction of the effect. The second one to do so finds the row (on PostgreSQL it waits for
the first to commit), is told, and changes nothing.
"""

from __future__ import annotations

from penstock.lifecycle.bounds import MESSAGE_ID, SUBSCRIBER
from penstock.lifecycle.transport import Message
from penstock.store.queries import inbox as queries
from penstock.store.transaction import Transaction

KEEP_SECONDS = 14 * 86400.0
"""Twice as long as a broker keeps messages by default: none of them can come again after that."""


def accept(transaction: Transaction, message: Message, *, subscriber: str) -> bool:
    """Write down that this transaction applies the message; False when another one has."""
    SUBSCRIBER.require(subscriber)
    MESSAGE_ID.require(message.id)
    return queries.insert_message(transaction, subscriber, message.topic, message.id)


def forget_accepted(transaction: Transaction) -> int:
    """Delete what was accepted two weeks ago or longer."""
    return queries.delete_old(transaction, seconds=KEEP_SECONDS)
