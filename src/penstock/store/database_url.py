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
from penstock.store.dialects.dialect import dialect_of
from penstock.store.engine import Store
from penstock.store.schema import Schema, is_current, require_current

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
        safe_url = make_url(url).render_as_string(hide_password=True)
        first_line = str(error.orig).strip().partition("\n")[0]
        raise StoreUnavailable(f"the database {safe_url} cannot be opened: {first_line}") from error


def file_of(url: str) -> Path | None:
    """The file of an embedded database; None for a server's, and for one in memory."""
    with translate_errors(url):
        parsed_url = make_url(url)
    return dialect_of(parsed_url.get_backend_name()).file_of(parsed_url)


def remarks(store: Store) -> list[str]:
    """What an operator should know about this database, though it works."""
    return store.dialect.remarks(store.engine.url)


@cache
def say(remark: str) -> None:
    """Write a remark to the log, once in the life of a process."""
    _log.info(remark)


def check_database(store: Store, schemas: Sequence[Schema]) -> None:
    """Reach the database and look at its schema without changing anything.

    An embedded database may be missing (it is made when it is first used) or old (it is brought up to date then).
    """
    if not store.dialect.is_embedded:
        require_current(store, schemas)
        return
    path = store.dialect.file_of(store.engine.url)
    if path is None:
        return
    if path.exists():
        is_current(store, schemas)
    if not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
        raise StoreUnavailable(f"the database {path} cannot be written: its folder is missing, or not ours to write in")


def describe_connection(store: Store) -> list[str]:
    """How a server is reached, in words for whoever set it up; nothing for an embedded database."""
    return store.dialect.describe_connection(store)
