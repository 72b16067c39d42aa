"""What can go wrong when a database is opened, in words for a person and without its password."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import structlog
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from penstock.errors import ConfigurationError, StoreUnavailable
from penstock.store.engine import Store
from penstock.store.schema import Schema, is_current, require_current
from penstock.store.sqlite_engine import reset_race

_log = structlog.get_logger("penstock.store")


@contextmanager
def translate_errors(url: str) -> Iterator[None]:
    """Turn the errors of SQLAlchemy and the drivers into ours while the database at ``url`` is opened."""
    try:
        yield
    except ArgumentError:
        raise ConfigurationError(
            "PENSTOCK_DATABASE_URL is not the address of a database; "
            "write one like sqlite:///penstock.db or postgresql://user@host/name"
        ) from None
    except DBAPIError as error:
        shown = make_url(url).render_as_string(hide_password=True)
        first_line = str(error.orig).strip().partition("\n")[0]
        raise StoreUnavailable(f"the database {shown} cannot be opened: {first_line}") from error


def file_of(url: str) -> Path | None:
    """The file of an embedded database; None for a server's, and for one in memory."""
    with translate_errors(url):
        parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite" or parsed.database in (None, "", ":memory:"):
        return None
    return Path(str(parsed.database))


def remarks(store: Store) -> list[str]:
    """What an operator should know about this database, though it works."""
    race = reset_race() if file_of(str(store.engine.url)) is not None else None
    return [] if race is None else [race]


@cache
def say(remark: str) -> None:
    """Write a remark to the log, once in the life of a process."""
    _log.info(remark)


def check_database(store: Store, schemas: Sequence[Schema]) -> None:
    """Reach the database and look at its schema without changing anything.

    An embedded database may be missing (it is made when it is first used) or old (it is brought up to date then).
    """
    if store.dialect.name != "sqlite":
        require_current(store, schemas)
        return
    path = file_of(str(store.engine.url))
    if path is None:
        return
    if path.exists():
        is_current(store, schemas)
    if not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
        raise StoreUnavailable(f"the database {path} cannot be written: its folder is missing, or not ours to write in")


def describe_connection(store: Store) -> list[str]:
    """How a server is reached, in words for whoever set it up; nothing for an embedded database."""
    if store.dialect.name != "postgresql":
        return []
    from penstock.store.postgresql_engine import connector_of

    connector = connector_of(store.engine)
    with store.engine.connect() as connection:
        version = connection.exec_driver_sql("SHOW server_version").scalar()
    way = "through a pooler" if connector.behind_pooler else "directly"
    prepared = "are" if connector.prepares() else "are not"
    return [
        f"PostgreSQL {version} is reached {way}; statements {prepared} prepared there",
        _describe_listening(store),
    ]


def _describe_listening(store: Store) -> str:
    from psycopg import Error

    from penstock.store.postgresql_listener import CannotListen, PostgreSQLListener

    listener = PostgreSQLListener(store)
    try:
        listener.listen(listener.close, lambda notice: None)
    except Error as error:
        first_line = str(error).strip().partition("\n")[0]
        raise StoreUnavailable(f"PENSTOCK_LISTEN_URL cannot be used: {first_line}") from error
    except CannotListen as error:
        return (
            f"workers do not hear of new work and look for it instead: {error}; "
            "set PENSTOCK_LISTEN_URL to an address that leads to the server directly"
        )
    return "workers hear of new work at once"
