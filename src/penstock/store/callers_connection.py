"""Which connections of a caller may carry our statements in his own transaction."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Engine

from penstock.errors import ConfigurationError
from penstock.store.dialects.dialect import Dialect

_CODE = "CONNECTION_UNSUPPORTED"


def require_usable(connection: object, engine: Engine, dialect: Dialect) -> None:
    """Refuse what is no SQLAlchemy connection, or one to another database or by another driver than ours."""
    if not isinstance(connection, Connection):
        given = f"{type(connection).__module__}.{type(connection).__qualname__}"
        raise ConfigurationError(
            f"connection= takes a sqlalchemy.Connection, not a {given}; an ORM session has one, session.connection()",
            code=_CODE,
        )
    ours, theirs = engine.dialect, connection.dialect
    if theirs.name != ours.name:
        raise ConfigurationError(
            f"the connection is to {theirs.name}, this Penstock keeps its jobs in {ours.name}", code=_CODE
        )
    driver: Any = ours.loaded_dbapi
    used = connection.connection.driver_connection
    if not isinstance(used, driver.Connection):
        raise ConfigurationError(
            f"the connection is one of {type(used).__module__.partition('.')[0]} ({theirs.name}+{theirs.driver}); "
            f"connection= takes those of {dialect.connection_example}",
            code=_CODE,
        )
