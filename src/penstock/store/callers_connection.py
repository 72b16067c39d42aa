"""Which connections of a caller may carry our statements in the caller's own transaction."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeAlias

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import UnboundExecutionError

from penstock.errors import ConfigurationError
from penstock.store.dialects.dialect import Dialect

if TYPE_CHECKING:
    from sqlalchemy.orm import Session, scoped_session

CallersConnection: TypeAlias = "Connection | Session | scoped_session[Session]"
"""What a caller may give who wants something done inside their own transaction."""
_CODE = "CONNECTION_UNSUPPORTED"
_DJANGO = (
    "Django's connections are not SQLAlchemy's: submit once its transaction has committed, "
    "transaction.on_commit(lambda: app.submit(…))"
)
_ASYNCHRONOUS = (
    "its statements wait on an event loop, and ours do not: submit after its commit, or in a synchronous session of "
    "the same database"
)


def find_connection(callers_connection: CallersConnection, engine: Engine, dialect: Dialect) -> Connection:
    """The SQLAlchemy connection of what a caller gave: it is one, or an ORM session that has one.

    Refused in plain words: what is neither, and a connection to another database or by another driver than ours.
    """
    connection = (
        callers_connection if isinstance(callers_connection, Connection) else _connection_of_session(callers_connection)
    )
    ours, theirs = engine.dialect, connection.dialect
    if theirs.name != ours.name:
        raise ConfigurationError(
            f"the connection is to {theirs.name}, this Penstock keeps its jobs in {ours.name}", code=_CODE
        )
    driver: Any = ours.loaded_dbapi
    driver_connection = connection.connection.driver_connection
    if not isinstance(driver_connection, driver.Connection):
        raise ConfigurationError(
            f"the connection is one of {type(driver_connection).__module__.partition('.')[0]} "
            f"({theirs.name}+{theirs.driver}); connection= takes those of {dialect.connection_example}",
            code=_CODE,
        )
    return connection


def _connection_of_session(session: Any) -> Connection:
    orm: Any = sys.modules.get("sqlalchemy.orm")  # whoever has a session has loaded it
    if orm is not None and isinstance(session, orm.scoped_session):
        session = session()
    if orm is None or not isinstance(session, orm.Session):
        raise ConfigurationError(_refusal(session), code=_CODE)
    try:
        bind = session.get_bind()
    except UnboundExecutionError:
        raise ConfigurationError(
            "the session has several engines, or none: give session.connection(bind_arguments=…)", code=_CODE
        ) from None
    if bind.dialect.is_async:
        raise ConfigurationError(
            f"the session is the synchronous side of an AsyncSession ({bind.dialect.name}+{bind.dialect.driver}): "
            f"{_ASYNCHRONOUS}",
            code=_CODE,
        )
    connection: Connection = session.connection()
    return connection


def _refusal(value: object) -> str:
    name = f"{type(value).__module__}.{type(value).__qualname__}"
    words = f"connection= takes a sqlalchemy.Connection or an ORM Session, not a {name}"
    if name.startswith("django."):
        return f"{words}; {_DJANGO}"
    if name.startswith("sqlalchemy.ext.asyncio."):
        return f"{words}; {_ASYNCHRONOUS}"
    return words
