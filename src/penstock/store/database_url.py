"""What can go wrong when a database is opened, in words for a person and without its password."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import structlog
from sqlalchemy.exc import ArgumentError, DBAPIError

from penstock.errors import ConfigurationError, StoreUnavailable
from penstock.store.dialects.dialect import dialect_of, parse_url
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
        require_folder(file_of(url))
        safe_url = parse_url(url).render_as_string(hide_password=True)
        first_line = str(error.orig).strip().partition("\n")[0]
        raise StoreUnavailable(f"the database {safe_url} cannot be opened: {first_line}") from error


def require_folder(file: Path | None) -> None:
    """Refuse the file of an embedded database in a folder that is not there."""
    if file is not None and not file.absolute().parent.is_dir():
        raise ConfigurationError(
            f"there is no folder {file.absolute().parent} for the database {file.name} (PENSTOCK_DATABASE_URL): "
            "make it, or name a file in one that is there",
            code="DATABASE_FOLDER_MISSING",
        )


def file_of(url: str) -> Path | None:
    """The file of an embedded database; None for a server's, and for one in memory."""
    with translate_errors(url):
        parsed_url = parse_url(url)
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
    require_folder(path)
    if path.exists():
        is_current(store, schemas)
    if not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
        raise StoreUnavailable(f"the database {path} cannot be written: it, or its folder, is not ours to write in")


def describe_connection(store: Store) -> list[str]:
    """How a server is reached, in words for whoever set it up; nothing for an embedded database."""
    return store.dialect.describe_connection(store)
