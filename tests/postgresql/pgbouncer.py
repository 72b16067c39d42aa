"""A private PgBouncer in front of the private PostgreSQL: Debian's own program, on a free port, as nobody special."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psycopg

from penstock.testing.postgres import PostgresServer
from penstock.testing.postgres_programs import launch, unprivileged_account

_SECONDS_TO_START = 15.0
# $1 is the pooler, $2 its directory. A line on the pipe means that all is put away; its end means that our parent died.
_WATCHDOG = 'read -r farewell && exit 0; kill "$1"; rm -rf "$2"'


class PgBouncerUnavailable(Exception):
    """There is no PgBouncer on this machine, or it does not start."""


@dataclass(frozen=True)
class PgBouncer:
    """A running pooler."""

    port: int
    mode: str

    def url(self, database: str) -> str:
        """The SQLAlchemy URL of a database of the server behind it."""
        return f"postgresql+psycopg://postgres@127.0.0.1:{self.port}/{database}"


@contextmanager
def private_pgbouncer(server: PostgresServer, mode: str, **settings: str) -> Iterator[PgBouncer]:
    """Run one for the length of a ``with`` block; ``settings`` are PgBouncer's own."""
    program = shutil.which("pgbouncer", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin"]))
    if program is None:
        raise PgBouncerUnavailable("there is no pgbouncer: install the package of that name")
    account = unprivileged_account()
    home = Path(tempfile.mkdtemp(prefix="penstock-pgbouncer-"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    (home / "users.txt").write_text('"postgres" ""\n')
    lines = {
        "listen_addr": "127.0.0.1",
        "listen_port": str(port),
        "unix_socket_dir": "",
        "auth_type": "trust",
        "auth_file": str(home / "users.txt"),
        "pool_mode": mode,
    } | settings
    (home / "pgbouncer.ini").write_text(
        f"[databases]\n* = host={server.host} port={server.port}\n[pgbouncer]\n"
        + "".join(f"{name} = {value}\n" for name, value in lines.items())
    )
    if account:
        for path in (home, *home.iterdir()):
            os.chown(path, account.pw_uid, account.pw_gid)
    with (home / "log").open("wb") as output:
        process = launch([program, "-q", home / "pgbouncer.ini"], account=account, output=output.fileno())
    watching: list[str | Path] = ["/bin/sh", "-c", _WATCHDOG, "watchdog", str(process.pid), home]
    watchdog = launch(watching, stdin=subprocess.PIPE, output=subprocess.DEVNULL)
    try:
        _await(process, port, home / "log")
        yield PgBouncer(port, mode)
    finally:
        process.terminate()
        process.wait(timeout=15)
        shutil.rmtree(home, ignore_errors=True)
        watchdog.communicate(b"farewell\n")


def _await(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + _SECONDS_TO_START
    while time.monotonic() < deadline:
        with suppress(psycopg.OperationalError):
            psycopg.connect(f"host=127.0.0.1 port={port} user=postgres dbname=postgres connect_timeout=5").close()
            return
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=0.05)
            break
    raise PgBouncerUnavailable(f"pgbouncer does not start: {log.read_text(errors='replace')}")
