"""Ending sessions before their tokens run out: one, those of a user, or everybody's.

A token proves itself and is looked up nowhere, so what is kept is the exception: tokens of this subject that were
issued before this moment are void. Whoever checks tokens reads what was ended since it looked last, now and then, and
needs no question of the database for a request.

The moment is the one by which tokens are issued: that of the server that ends the sessions. A row about one session is
deleted once its token has run out; there is one row for each user at most, and one for everybody.
"""

from __future__ import annotations

from datetime import datetime

from penstock.lifecycle.bounds import CALLER
from penstock.store.queries import ended_sessions as queries
from penstock.store.queries.ended_sessions import EndedSession
from penstock.store.transaction import Transaction

EVERYBODY = "everybody"
_USER = "user:"
_SESSION = "session:"


def end_everybodys(transaction: Transaction, now: datetime) -> None:
    """Whoever was signed in at this moment has to sign in again."""
    _end(transaction, EVERYBODY, now)


def end_users(transaction: Transaction, user: str, now: datetime) -> None:
    """Whoever was signed in as this user at this moment has to sign in again."""
    CALLER.require(user)
    _end(transaction, user_subject(user), now)


def end_one(transaction: Transaction, session: str, now: datetime, *, expires_at: datetime) -> None:
    """The token of this session is void, although it would be good until it expires."""
    _end(transaction, session_subject(session), now, forget_at=expires_at)


def read_ended(transaction: Transaction, since: datetime) -> list[EndedSession]:
    """What was ended since a moment of the database's clock."""
    return queries.ended_since(transaction, since)


def user_subject(user: str) -> str:
    """All sessions of a user."""
    return f"{_USER}{user}"


def session_subject(session: str) -> str:
    """One session, by the digest of its token."""
    return f"{_SESSION}{session}"


def _end(transaction: Transaction, subject: str, now: datetime, *, forget_at: datetime | None = None) -> None:
    queries.delete_forgotten(transaction)
    if queries.update_ended(transaction, subject, now):
        return
    if not queries.insert_ended(transaction, subject, now, forget_at=forget_at):
        queries.update_ended(transaction, subject, now)  # somebody was quicker, and may have an earlier moment
