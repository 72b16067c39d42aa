"""What a driver's error means to those who do not know SQL."""

from __future__ import annotations

from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, NotSupportedError, ProgrammingError

from penstock.errors import PenstockError, StatementRefused, StoreLocked, StoreRefused, StoreUnavailable
from penstock.store.dialects.dialect import Dialect

_DEFECTS = (IntegrityError, NotSupportedError, ProgrammingError)
"""Errors that a correct statement never causes: a broken rule of the tables, or of SQL, is a defect of the program."""


def is_surely_lost(error: DBAPIError, dialect: Dialect, *, committing: bool) -> bool:
    """Did the connection break before anything happened? Then a fresh one may succeed.

    Who waited for an answer in vain has waited long enough.
    """
    if not error.connection_invalidated or isinstance(error.orig, TimeoutError):
        return False
    return not committing or _did_not_happen(error, dialect)


def translate(error: DBAPIError, dialect: Dialect, *, committing: bool) -> PenstockError:
    """Our error for a driver's: the statement was refused, or the database is not available."""
    fault = None if error.orig is None else dialect.fault(error.orig)
    if fault is None and isinstance(error, DataError):
        return StoreRefused(f"the database refused a value: {_first_line(error)}")
    if fault is None and (isinstance(error, _DEFECTS) or (error.orig is not None and dialect.is_defect(error.orig))):
        return StatementRefused(f"the database refused the statement: {_first_line(error)}")
    # A database that says what is wrong with it has refused the commit; one that says nothing leaves it open.
    if fault is None and committing and error.connection_invalidated and not _did_not_happen(error, dialect):
        return StoreUnavailable(
            "the connection broke while the change was being committed, so it is unknown whether it happened: "
            f"check, or retry with the same idempotency key ({_first_line(error)})",
            code="COMMIT_UNKNOWN",
        )
    if isinstance(error.orig, TimeoutError):
        return StoreUnavailable(
            f"the database did not answer within PENSTOCK_DATABASE_TIMEOUT_SECONDS ({_first_line(error)})",
            code="DB_TIMEOUT",
        )
    return StoreUnavailable(f"the database is not available: {_first_line(error)}", code=fault)


def translate_lock(error: DBAPIError) -> StoreLocked:
    """Our error for a lock that was waited for as long as the transaction allows."""
    return StoreLocked(f"another open transaction holds a row that is needed: {_first_line(error)}")


def pool_is_busy() -> StoreUnavailable:
    """Our error for a pool that had no connection to give."""
    return StoreUnavailable(
        "every connection was in use for too long; retry, or raise PENSTOCK_POOL_SIZE", code="DB_POOL_BUSY"
    )


def _did_not_happen(error: DBAPIError, dialect: Dialect) -> bool:
    return error.orig is not None and dialect.did_not_happen(error.orig)


def _first_line(error: DBAPIError) -> str:
    return str(error.orig).strip().partition("\n")[0]
