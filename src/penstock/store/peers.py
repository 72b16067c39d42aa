"""The workers of one database on this machine: telling them something, and noticing that one has died.

Each worker binds a datagram socket in a directory that belongs to the database. On SQLite, which cannot tell another
process anything, a transaction's notices are sent there. And a socket whose process is gone refuses: so a worker that
was killed is noticed by the others at their next heartbeat, long before its leases run out. The kernel closes the
socket, so no process number can be mistaken for another's. A child process that outlives its worker may keep it open;
then the leases decide, as they do for workers of other machines.

Nothing depends on this. Where such a socket cannot be had, work is found by looking for it and leases run out.
"""

from __future__ import annotations

import hashlib
import os
import select
import socket
import stat
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import structlog
from sqlalchemy.engine import URL

from penstock.store.dialects.dialect import dialect_of
from penstock.store.placement import DEFAULT_SCHEMA

_MAX_BYTES = 1 << 16
_log = structlog.get_logger("penstock.peers")


class Presence:
    """One worker's own socket."""

    def __init__(self, bound: socket.socket, path: Path, on_close: Callable[[str], None]) -> None:
        self.name = path.name
        self._socket = bound
        self._path = path
        self._on_close = on_close
        self._coming = select.poll()  # unlike select, it takes descriptors beyond 1,023
        self._coming.register(bound, select.POLLIN)

    def hear(self, timeout: float) -> frozenset[str]:
        """What was told meanwhile; nothing when the time is over."""
        notices: set[str] = set()
        self._coming.poll(timeout * 1000.0)
        with suppress(BlockingIOError):
            while True:
                notices.update(self._socket.recv(_MAX_BYTES).decode(errors="replace").split("\n"))
        return frozenset(notices)

    def leave(self) -> None:
        """Leave in order: the others see that it was no death."""
        self._path.unlink(missing_ok=True)
        self._socket.close()
        self._on_close(self.name)


class Peers:
    """The workers of a database on this machine."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        self._own: set[str] = set()

    @classmethod
    def of(cls, url: URL, channel: str = DEFAULT_SCHEMA) -> Peers:
        """Those of the database that ``url`` names who listen on ``channel``; an in-memory one has none."""
        identity = dialect_of(url.get_backend_name()).identity(url)
        if identity is None or not hasattr(socket, "AF_UNIX"):
            return cls(None)
        if channel != DEFAULT_SCHEMA:
            identity = f"{identity}#{channel}"
        key = hashlib.sha256(identity.encode()).hexdigest()[:12]  # the whole path must fit into a socket's address
        return cls(_ours() / key)

    def settle(self, name: str) -> Presence | None:
        """Bind a socket under this name; None where that is not possible."""
        if self._directory is None:
            return None
        bound = _datagrams()
        try:
            _make(self._directory.parent)
            _make(self._directory)
            path = self._directory / name
            bound.bind(str(path))
        except OSError as error:
            bound.close()
            _log.debug("no socket for this worker; polling and leases take its place", error=str(error))
            return None
        self._own.add(name)
        return Presence(bound, path, self._own.discard)

    def tell(self, notices: Iterable[str]) -> None:
        """Send notices to the workers of other processes. What does not reach them they find by polling."""
        others = [name for name in self._names() if name not in self._own]
        if not others:
            return
        message = "\n".join(sorted(notices)).encode()
        with _datagrams() as sending:
            for name in others:
                with suppress(OSError):  # gone, dead, or so busy that it has enough to read
                    sending.sendto(message, str(self._path(name)))

    def dead(self) -> list[str]:
        """Workers whose process is gone."""
        return [name for name in self._names() if name not in self._own and self._refuses(name)]

    def alive(self) -> list[str]:
        """Workers whose process is there."""
        return [name for name in self._names() if name in self._own or not self._refuses(name)]

    def forget(self, name: str) -> None:
        """What a dead worker held has been taken care of."""
        self._path(name).unlink(missing_ok=True)

    def _names(self) -> list[str]:
        if self._directory is None:
            return []
        try:
            return os.listdir(self._directory)  # noqa: PTH208 - for every submit: names, no objects
        except OSError:
            return []

    def _refuses(self, name: str) -> bool:
        with _datagrams() as asking:
            try:
                asking.connect(str(self._path(name)))
            except ConnectionRefusedError:
                return True
            except OSError:
                return False
        return False

    def _path(self, name: str) -> Path:
        assert self._directory is not None
        return self._directory / name


def _datagrams() -> socket.socket:
    unix_socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    unix_socket.setblocking(False)
    return unix_socket


def _ours() -> Path:
    return Path(tempfile.gettempdir()) / f"penstock-{os.geteuid()}"


def _make(directory: Path) -> None:
    """A directory that nobody else can write to: it lies where everybody may put things."""
    with suppress(FileExistsError):
        directory.mkdir(mode=0o700)
    status = directory.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise PermissionError(f"{directory} is not ours alone")
