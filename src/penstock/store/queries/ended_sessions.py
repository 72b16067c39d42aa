"""Sessions that were ended before their tokens ran out."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Delete, Insert, Select, String, Update, bindparam, delete, select, update

from penstock.store.dialects.dialect import Dialect
from penstock.store.queries.built_once import built_once
from penstock.store.tables import ended_sessions
from penstock.store.transaction import Transaction
from penstock.store.types import Moment


class EndedSession(NamedTuple):
    """Tokens of this subject that were issued before a moment are void."""

    subject: str
    issued_before: datetime
    ended_at: datetime
    forget_at: datetime | None
    """When no such token can be good any more; None where nobody knows."""


def update_ended(transaction: Transaction, subject: str, issued_before: datetime) -> bool:
    """End a subject's sessions again, with those begun since; False when none were ended yet."""
    parameters = {"subject": subject, "issued_before": issued_before}
    return transaction.execute(_update_ended(transaction.dialect), parameters) > 0


@built_once
def _update_ended(dialect: Dialect) -> Update:
    later = dialect.greatest(ended_sessions.c.issued_before, bindparam("issued_before", type_=Moment))
    return (
        update(ended_sessions)
        .where(ended_sessions.c.subject == bindparam("subject", type_=String))
        .values(issued_before=later, ended_at=dialect.now())
    )


def insert_ended(
    transaction: Transaction, subject: str, issued_before: datetime, *, forget_at: datetime | None
) -> bool:
    """End a subject's sessions; False when somebody else has just done so."""
    parameters = {"subject": subject, "issued_before": issued_before, "forget_at": forget_at}
    return bool(transaction.values(str, _insert_ended(transaction.dialect), parameters))


@built_once
def _insert_ended(dialect: Dialect) -> Insert:
    source = select(
        bindparam("subject", type_=String),
        bindparam("issued_before", type_=Moment),
        dialect.now(),
        bindparam("forget_at", type_=Moment),
    )
    columns = ["subject", "issued_before", "ended_at", "forget_at"]
    insert = dialect.insert_unless_taken(ended_sessions).from_select(columns, source)
    return insert.returning(ended_sessions.c.subject)


def delete_forgotten(transaction: Transaction) -> int:
    """Delete those whose tokens have all run out; the answer is how many."""
    return transaction.execute(_delete_forgotten(transaction.dialect))


@built_once
def _delete_forgotten(dialect: Dialect) -> Delete:
    return delete(ended_sessions).where(ended_sessions.c.forget_at < dialect.now())


def ended_since(transaction: Transaction, moment: datetime) -> list[EndedSession]:
    """What was ended at this moment or later."""
    return transaction.fetch(EndedSession, _ended_since(transaction.dialect), {"moment": moment})


@built_once
def _ended_since(_: Dialect) -> Select[Any]:
    columns = (
        ended_sessions.c.subject,
        ended_sessions.c.issued_before,
        ended_sessions.c.ended_at,
        ended_sessions.c.forget_at,
    )
    return select(*columns).where(ended_sessions.c.ended_at >= bindparam("moment", type_=Moment))
