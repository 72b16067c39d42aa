"""The embedded database's connections: which SQLite they need, and how each is set up.

It is the standard library's SQLite, and no other. POSIX drops all locks that a process has on a file when any of its
descriptors is closed; SQLite knows that and shares them among its connections, but a second SQLite library in the same
process knows nothing of the first. Whatever the user opens with ``sqlite3``, SQLAlchemy, Django or pandas has to come
from the same library as ours.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, ExceptionContext
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.pool import StaticPool

from penstock.errors import ConfigurationError
from penstock.store.dialects.sqlite.checkpoints import Checkpoints
from penstock.store.dialects.sqlite.database_file import DatabaseFile, OpenedFile

BUSY_SECONDS = 30.0
"""How long somebody waits to write to a file that others write to."""
Version = tuple[int, ...]
OLDEST: Version = (3, 38, 0)
"""The first with the operator ``->>``, and with JSON functions in every build."""
_FILE_KEY = "penstock_file"
_WATCH = "penstock_watch"
_CHECKPOINTS = "penstock_checkpoints"
_BROKEN_CODES = frozenset(
    {
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_READONLY,
    }
)
"""After these a connection is not used again: one opened while the file was read-only stays so for ever."""


def require_version(version: Version = sqlite3.sqlite_version_info) -> None:
    """Refuse a SQLite that does not understand our statements."""
    if version < OLDEST:
        raise ConfigurationError(
            f"this Python has SQLite {_format_version(version)}, Penstock needs {_format_version(OLDEST)} or newer: "
            "take a newer Python or system, or keep the jobs in PostgreSQL (PENSTOCK_DATABASE_URL)",
            code="SQLITE_TOO_OLD",
        )


def has_reset_race(version: Version = sqlite3.sqlite_version_info) -> bool:
    """Can a checkpoint of this version corrupt the file when others write (https://www.sqlite.org/wal.html#walresetbug)?

    >>> [has_reset_race(version) for version in ((3, 40, 1), (3, 44, 6), (3, 50, 7), (3, 51, 2), (3, 51, 3))]
    [True, False, False, True, False]
    """
    fixed_patches = {(3, 44): 6, (3, 50): 7}
    major, minor, patch = version[:3]
    return version < (3, 51, 3) and patch < fixed_patches.get((major, minor), patch + 1)


def reset_race(version: Version = sqlite3.sqlite_version_info) -> str | None:
    """What to say to those who open the file with connections of their own; None where there is nothing to say."""
    if not has_reset_race(version):
        return None
    return (
        f"SQLite {_format_version(version)} can corrupt a file when a connection that checkpoints by itself meets "
        "another that writes. Ours do not; on your own connections to it run PRAGMA wal_autocheckpoint=0, or use "
        "SQLite 3.51.3"
    )


def primary_code(error: BaseException) -> int | None:
    """SQLite's code for an error, without what an extended code adds."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def sqlite_engine(url: URL, *, pool_size: int, synchronous: str, json: dict[str, Callable[..., Any]]) -> Engine:
    """An engine whose connections are set up as the store needs them."""
    require_version()
    in_memory = url.database in (None, "", ":memory:")
    # Two more than asked for: the writer keeps his, and a worker watches the file on one all the time.
    options: dict[str, Any] = (
        {"poolclass": StaticPool} if in_memory else {"pool_size": pool_size + 2, "max_overflow": 0}
    )
    engine = create_engine(
        url,
        module=sqlite3,
        connect_args={
            "check_same_thread": False,
            "timeout": BUSY_SECONDS,
            "isolation_level": None,
            "cached_statements": 512,
        },
        **options,
        **json,
    )
    event.listen(engine, "begin", _begin)
    event.listen(engine, "handle_error", _drop_when_broken)
    _watch_file(engine, synchronous)
    return engine


def opened_file(connection: Connection) -> OpenedFile | None:
    """The file of a connection, None for a database in memory."""
    file: OpenedFile | None = connection.info.get(_FILE_KEY)
    return file


def shorten_log(connection: Connection) -> None:
    """Bring the write-ahead log back into the file, if it is long and this is a file's connection."""
    file = opened_file(connection)
    if file is not None:
        checkpoints: Checkpoints = connection.info[_CHECKPOINTS]
        driver: Any = connection.connection.driver_connection
        checkpoints.run_if_due(file.path, driver)


def is_current(connection: Connection) -> bool:
    """Is a connection that was kept still one to the file at its path? Raises where no other may be opened."""
    watch: DatabaseFile | None = connection.info.get(_WATCH)
    return watch is None or watch.is_current(connection.info[_FILE_KEY])


def _watch_file(engine: Engine, synchronous: str) -> None:
    file, checkpoints = DatabaseFile(), Checkpoints()

    @event.listens_for(engine, "do_connect")
    def look(_dialect: object, _record: object, _args: object, _options: object) -> None:
        file.before_opening()
        file.make(engine.url.database)

    @event.listens_for(engine, "connect")
    def prepare(connection: sqlite3.Connection, record: Any) -> None:
        try:
            file.refuse_empty(connection)
            _prepare(connection, synchronous)
            record.info[_FILE_KEY], record.info[_WATCH] = file.open(connection), file
            record.info[_CHECKPOINTS] = checkpoints
        except BaseException:
            connection.close()
            raise

    @event.listens_for(engine, "checkout")
    def compare(_connection: object, record: Any, _proxy: object) -> None:
        if not file.is_current(record.info[_FILE_KEY]):
            raise DisconnectionError

    @event.listens_for(engine, "engine_disposed")
    def forget(_engine: Engine) -> None:
        file.forget()


def _prepare(connection: sqlite3.Connection, synchronous: str) -> None:
    for pragma in (
        "journal_mode=WAL",
        f"synchronous={synchronous}",
        "temp_store=MEMORY",
        "cache_size=-65536",
        "wal_autocheckpoint=0",  # see penstock.store.dialects.sqlite.checkpoints
        "journal_size_limit=0",
    ):
        connection.execute(f"PRAGMA {pragma}").close()
    [encoding] = connection.execute("PRAGMA encoding").fetchone()
    if encoding != "UTF-8":
        raise ConfigurationError(
            f"the database is kept in {encoding}; Penstock cuts texts by their UTF-8 bytes: begin with a new file",
            code="DATABASE_ENCODING",
        )


def _begin(connection: Connection) -> None:
    # A writer that began as a reader could not become one later without losing its view: say so at once.
    begins = connection.get_execution_options().get("penstock_begins", "BEGIN IMMEDIATE")
    if begins is not None:
        connection.exec_driver_sql(begins)


def _drop_when_broken(context: ExceptionContext) -> None:
    if primary_code(context.original_exception) not in _BROKEN_CODES:
        return
    context.is_disconnect = True
    if context.connection is None or context.connection.invalidated:
        return
    # Closing the connection is not enough: as long as somebody has a cursor of it, and the error has one, SQLite keeps
    # it open, with its locks, and with the shared memory that all connections of this process use.
    driver: Any = context.connection.connection.driver_connection
    cursor: Any = None if context.execution_context is None else context.execution_context.cursor
    with suppress(sqlite3.Error):
        driver.rollback()
    if cursor is not None:
        with suppress(sqlite3.Error):
            cursor.close()


def _format_version(version: Version) -> str:
    return ".".join(map(str, version))
