"""Connecting to PostgreSQL, directly or through a pooler, with a bound on every wait.

**Nothing belongs to a session.** A pooler in transaction mode hands the server's session to somebody else after each
transaction. What we want of the planner travels as startup options, which a direct connection keeps to itself and a
pooler refuses or ignores. Prepared statements are used where the connection is direct, or where the operator says that
the pooler keeps them. Two signs tell a pooler: it refuses the options, or the process id with which it greets us is not
that of the process that answers.

**Dead connections are noticed before they are used.** A socket on which the server said something while nobody asked
has said goodbye: looking costs a microsecond, where a ping costs a way to the server and back.

**A server that does not answer is an error.** The kernel notices a network that swallows packets; it does not notice a
process that is frozen, since the other kernel goes on answering for it. So each statement has a deadline here.
"""

from __future__ import annotations

import math
import select
from collections.abc import Callable, Generator
from contextlib import suppress
from time import monotonic
from typing import Any
from weakref import WeakKeyDictionary

import psycopg
from psycopg.types.array import ListBinaryDumper
from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.exc import InvalidatePoolError

from penstock.store.dialects.dialect import parse_url

# Every statement here finds its rows by key. Before a table is analyzed the planner guesses otherwise. So there is one
# plan for each statement, whatever its parameters, and it need not be made each time.
PLANNING = {
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_bitmapscan": "off",
    "plan_cache_mode": "force_generic_plan",
}
_OPTIONS = " ".join(f"-c {name}={value}" for name, value in PLANNING.items())
# PgBouncer: "unsupported startup parameter: options"; RDS Proxy: "… currently doesn't support command-line options".
_REFUSALS = ("startup parameter", "command-line options")
_CONNECT_SECONDS = 5.0
_CANCEL_SECONDS = 1.0
_PREPARE_AFTER = 5
"""How often psycopg sees a statement before it has the server prepare it: its own default."""


class NoAnswer(psycopg.OperationalError, TimeoutError):
    """The server did not answer a statement in time."""


class BoundedConnection(psycopg.Connection[Any]):
    """A connection that does not wait for an answer for ever."""

    answer_within: float | None = None
    """Seconds; None for a migration, which takes as long as it takes."""

    def wait(self, gen: Any, *args: Any, **kwargs: Any) -> Any:
        """Wait as psycopg does; give up when the server has said nothing for too long."""
        if self.answer_within is None:
            return super().wait(gen, *args, **kwargs)
        try:
            return super().wait(_until(gen, monotonic() + self.answer_within), *args, **kwargs)
        except NoAnswer:
            # If the server is only busy, it need not go on for nobody; then the connection is in no state to be used.
            with suppress(psycopg.Error):
                self._cancel_bounded()
            self.close()
            raise

    def __del__(self, *_: object) -> None:
        """One that was out when its pool was given up is closed here, without a warning: nobody else can do it."""
        with suppress(Exception):
            self.close()

    def _cancel_bounded(self) -> None:
        within, self.answer_within = self.answer_within, None
        try:
            self.cancel_safe(timeout=_CANCEL_SECONDS)
        finally:
            self.answer_within = within


def _until(steps: Generator[Any, Any, Any], deadline: float) -> Generator[Any, Any, Any]:
    """The steps of a statement, as long as there is time: psycopg comes by ten times a second when nothing comes in."""
    try:
        wait_state = next(steps)
        while True:
            ready = yield wait_state
            if not ready and monotonic() > deadline:
                raise NoAnswer("the server did not answer in time")
            wait_state = steps.send(ready)
    except StopIteration as end:
        return end.value


class Connector:
    """Makes the connections of one engine, and knows what they go through."""

    def __init__(self, url: URL, *, timeout: float | None, prepared_statements: str, listen_url: str | None) -> None:
        self.behind_pooler = False
        """As the newest connection has it."""
        self.listens_elsewhere = listen_url is not None
        self._listen_url = _with_driver(parse_url(listen_url)) if listen_url is not None else url
        self._timeout = timeout
        self._prepared_statements = prepared_statements
        self._dialect: Any = None

    def connect(self, dialect: Any, _record: object, arguments: list[Any], parameters: dict[str, Any]) -> Any:
        """One more connection for the pool."""
        self._dialect = dialect
        parameters = self._network() | parameters
        if not self.behind_pooler:
            with_options = parameters | {"options": f"{parameters.get('options', '')} {_OPTIONS}".strip()}
            try:
                return self._set_up(BoundedConnection.connect(*arguments, autocommit=True, **with_options))
            except psycopg.OperationalError as error:
                if not any(words in str(error) for words in _REFUSALS):
                    raise
                self.behind_pooler = True
        return self._set_up(BoundedConnection.connect(*arguments, autocommit=True, **parameters))

    def connect_to_listen(self) -> BoundedConnection:
        """A connection outside the pool, for LISTEN."""
        arguments, parameters = self._dialect.create_connect_args(self._listen_url)
        link = BoundedConnection.connect(*arguments, autocommit=True, **self._network() | parameters)
        link.answer_within = self._timeout
        link.prepare_threshold = None
        return link

    def prepares(self) -> bool:
        """Are statements prepared in the server?"""
        return self._prepared_statements == "on" or (self._prepared_statements == "auto" and not self.behind_pooler)

    def _set_up(self, link: BoundedConnection) -> BoundedConnection:
        try:
            link.answer_within = self._timeout
            # Our parameters are arrays of a thousand values: as text each would be escaped by a regular expression.
            link.adapters.register_dumper(list, ListBinaryDumper)
            self.behind_pooler = not is_direct(link)
            link.prepare_threshold = _PREPARE_AFTER if self.prepares() else None
            link.autocommit = False
        except BaseException:
            link.close()
            raise
        return link

    def _network(self) -> dict[str, Any]:
        """What the URL may say otherwise: a connection is made soon, kept alive, and given up when nothing arrives."""
        options = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}
        if self._timeout is None:
            return options | {"connect_timeout": math.ceil(_CONNECT_SECONDS)}
        seconds = math.ceil(min(_CONNECT_SECONDS, self._timeout))
        return options | {"connect_timeout": seconds, "tcp_user_timeout": math.ceil(self._timeout * 1000)}


_CONNECTORS: WeakKeyDictionary[Engine, Connector] = WeakKeyDictionary()


def postgresql_engine(
    url: URL,
    *,
    pool_size: int,
    timeout: float | None,
    prepared_statements: str,
    listen_url: str | None,
    json: dict[str, Callable[..., Any]],
) -> Engine:
    """An engine whose connections are made, looked at and bounded as this module says."""
    url = _with_driver(url)
    connector = Connector(url, timeout=timeout, prepared_statements=prepared_statements, listen_url=listen_url)
    engine = create_engine(url, pool_size=pool_size, max_overflow=0, **json)
    event.listen(engine, "do_connect", connector.connect)
    event.listen(engine, "checkout", _look_before_use)
    _CONNECTORS[engine] = connector
    return engine


def connector_of(engine: Engine) -> Connector:
    """What made the engine's connections."""
    return _CONNECTORS[engine]


def is_direct(link: psycopg.Connection[Any]) -> bool:
    """Is the process that greeted us the one that answers? A pooler greets with a number of its own."""
    return server_process(link) == link.info.backend_pid


def server_process(link: psycopg.Connection[Any]) -> int:
    """The process id of the server's session that answers now."""
    row = link.execute("SELECT pg_backend_pid()").fetchone()
    assert row is not None
    return int(row[0])


def is_open(link: psycopg.Connection[Any]) -> bool:
    """Has the other side kept silent, as it does while nobody asks it anything?"""
    if link.closed:
        return False
    looking = select.poll()
    looking.register(link.fileno(), select.POLLIN)
    return not looking.poll(0)


def is_usable(connection: Connection) -> bool:
    """Can one that was kept be used again?"""
    driver: Any = connection.connection.driver_connection
    return is_open(driver)


def _look_before_use(driver: Any, record: Any, _fairy: object) -> None:
    """Do not hand out a connection that has been closed, nor the others that were idle as long."""
    if record.info.setdefault(_NEW, True):
        record.info[_NEW] = False
    elif not is_open(driver):
        raise InvalidatePoolError("the other side has closed the connection")


_NEW = "penstock: not used before"


def _with_driver(url: URL) -> URL:
    return url.set(drivername="postgresql+psycopg") if url.drivername == "postgresql" else url
