"""The databases that this suite runs on: the one place of it that names any.

A new dialect adds a class that answers the contract below, and its line in ``DATABASES``. What a database cannot do is
said here or by its dialect, and a test names what it needs (``@needs("writes_beside_others")``): it then runs on those
that have it. No test asks which database it is; ``tests/architecture/test_conformance.py`` looks.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import uuid
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import pytest

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from penstock.testing.postgres import PostgresServer
    from tests.database_pool import DatabasePools


class Database(Protocol):
    """A database in the hands of a test."""

    @property
    def name(self) -> str:
        """How it is called in the names of tests, and in ``DATABASES=``."""

    @property
    def dialect(self) -> str:
        """The name by which ``dialect_of`` knows it."""

    # What it can do, where its dialect has no question for it -----------------------------------------------------

    @property
    def is_shared(self) -> bool:
        """Can several programs open it by its address?"""

    @property
    def defers_constraints(self) -> bool:
        """Can a constraint be checked when the transaction commits, and fail it then?"""

    @property
    def at_once(self) -> Mapping[str, Any]:
        """What a connection is made with that fails at once where it would wait for a lock."""

    # How a test gets one ------------------------------------------------------------------------------------------

    def make(self, request: pytest.FixtureRequest, folder: Path) -> str:
        """The URL of a new database without tables, for the rest of the run."""

    def copy(self, request: pytest.FixtureRequest, folder: Path) -> AbstractContextManager[str]:
        """The URL of a database of its own for one test, with all its tables: a copy of one that was migrated once."""

    # What happens to it -------------------------------------------------------------------------------------------

    def full_disk(self) -> Exception:
        """What its driver raises when the disk is full."""

    def break_off(self, connection: Connection) -> NoReturn:
        """End the connection's transaction as a deadlock, a busy database or a lost connection would."""


class SQLite:
    """SQLite in a file."""

    name = "sqlite"
    dialect = "sqlite"
    is_shared = True
    defers_constraints = False
    at_once: Mapping[str, Any] = {"timeout": 0}

    def make(self, request: pytest.FixtureRequest, folder: Path) -> str:
        """A file of its own."""
        return f"sqlite:///{folder}/penstock.db"

    @contextmanager
    def copy(self, request: pytest.FixtureRequest, folder: Path) -> Iterator[str]:
        """A copy of the file."""
        shutil.copy(request.getfixturevalue("_migrated_sqlite"), folder / "penstock.db")
        yield f"sqlite:///{folder}/penstock.db"

    def full_disk(self) -> Exception:
        """SQLITE_FULL."""
        return _sqlite_error("database or disk is full", sqlite3.SQLITE_FULL)

    def break_off(self, connection: Connection) -> NoReturn:
        """Somebody else writes."""
        from sqlalchemy.exc import OperationalError

        raise OperationalError("INSERT", {}, _sqlite_error("database is locked", sqlite3.SQLITE_BUSY))


class SQLiteInMemory(SQLite):
    """SQLite in memory, which is gone with its store."""

    name = "sqlite-memory"
    is_shared = False

    def make(self, request: pytest.FixtureRequest, folder: Path) -> str:
        """No file."""
        return "sqlite://"


class PostgreSQL:
    """PostgreSQL, on a server that is started for the run."""

    name = "postgresql"
    dialect = "postgresql"
    is_shared = True
    defers_constraints = True
    at_once: Mapping[str, Any] = {"options": "-c lock_timeout=1"}

    def make(self, request: pytest.FixtureRequest, folder: Path) -> str:
        """A database of the server."""
        server: PostgresServer = request.getfixturevalue("postgres_server")
        name = f"shared_{uuid.uuid4().hex}"
        server.create_database(name)
        return server.url(name)

    @contextmanager
    def copy(self, request: pytest.FixtureRequest, folder: Path) -> Iterator[str]:
        """A database made from a template."""
        pools: DatabasePools = request.getfixturevalue("database_pools")
        with pools.lend(request.getfixturevalue("_migrated_postgres")) as url:
            yield url

    def full_disk(self) -> Exception:
        """The class 53."""
        import psycopg.errors

        return psycopg.errors.DiskFull("could not extend file: No space left on device")

    def break_off(self, connection: Connection) -> NoReturn:
        """An operator ends the session."""
        connection.exec_driver_sql("SELECT pg_terminate_backend(pg_backend_pid())")
        raise AssertionError("the session has ended itself and goes on")


DATABASES: tuple[Database, ...] = (SQLiteInMemory(), SQLite(), PostgreSQL())


def database_named(name: str) -> Database:
    """The one of that name."""
    known = {database.name: database for database in DATABASES}
    if name not in known:
        raise pytest.UsageError(f"there is no database {name!r}; there are {', '.join(known)}")
    return known[name]


def chosen_databases() -> list[Database]:
    """Those that ``TESTS_DATABASES`` names (``make conformance DATABASES=…``); all of them where it names none."""
    names = os.environ.get("TESTS_DATABASES", "").replace(",", " ").split()
    return [database_named(name) for name in names] or list(DATABASES)


def needs(*questions: str) -> pytest.MarkDecorator:
    """The test is for databases that answer yes to questions of :class:`Database`, or of their dialect's contract."""
    return pytest.mark.needs(*questions)


def can(database: Database, question: str) -> bool:
    """What the database, or its dialect, answers."""
    from penstock.store.dialects.dialect import dialect_of

    asked = database if hasattr(database, question) else dialect_of(database.dialect)
    answer = getattr(asked, question)
    assert isinstance(answer, bool), f"{question} is no question"
    return answer


def _sqlite_error(words: str, code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError(words)
    error.sqlite_errorcode = code
    return error
