"""Running a server for a command, and saying in one line why it cannot start."""

from __future__ import annotations

import errno
import os
import socket
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from penstock.cli.callers import login_name
from penstock.errors import ConfigurationError, LibraryMissing

if TYPE_CHECKING:
    from fastapi import FastAPI

    from penstock import Penstock
    from penstock.http.uvicorn_server import Server

_BACKLOG = 2048
_SIGNED_IN_SECONDS = 12 * 3_600.0


def require_server() -> None:
    """The server's libraries are an extra."""
    try:
        import penstock.http.uvicorn_server  # noqa: F401
    except ModuleNotFoundError as error:
        raise LibraryMissing(f"the server's libraries are not installed ({error}); install penstock[server]") from error


def listen(host: str, port: int) -> list[socket.socket]:
    """Sockets that listen at each address of a host, before anything else is begun: a worker, above all."""
    sockets: list[socket.socket] = []
    try:
        for family, _, _, _, address in _addresses_of(host, port):
            listening = socket.socket(family, socket.SOCK_STREAM)
            sockets.append(listening)
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listening.bind(address)
            listening.listen(_BACKLOG)
    except OSError as error:
        for listening in sockets:
            listening.close()
        raise _refusal(host, port, error) from error
    return sockets


def _addresses_of(host: str, port: int) -> list[tuple[Any, ...]]:
    addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    # A free port is taken of one address alone: that of another would be a second one.
    return addresses[:1] if port == 0 else list(dict.fromkeys(addresses))


def _refusal(host: str, port: int, error: OSError) -> ConfigurationError:
    if error.errno == errno.EADDRINUSE:
        return ConfigurationError(
            f"port {port} of {host} is taken by another program: stop that one, or choose another port with --port",
            code="ADDRESS_IN_USE",
        )
    reason = error.strerror or os.strerror(error.errno or 0)
    return ConfigurationError(
        f"cannot serve on {host}:{port} ({reason}): choose another address with --host, or another port with --port",
        code="ADDRESS_NOT_USABLE",
    )


def run(server: Server, app: Penstock, sockets: list[socket.socket]) -> None:
    """Serve on sockets of :func:`listen` until somebody stops it."""
    try:
        app.store  # noqa: B018 - what is wrong with the database is said here, in one line
        server.run(sockets)
    finally:
        for listening in sockets:
            listening.close()


def greeting(api: FastAPI, address: str, user: str | None = None) -> list[str]:
    """What a server says when it is there; to whoever sits at this machine also a link that signs them in.

    As an administrator, by their login name unless another ``user`` is named.
    """
    from penstock.http.hosts import is_loopback
    from penstock.http.sessions import LINK_SECONDS

    lines = [f"serving on {address}; its reference is {address}/docs"]
    service = api.state.penstock
    if service.tokens.makes_tokens and is_loopback(urlsplit(address).hostname or ""):
        token = service.tokens.issue(user or login_name(), is_admin=True, seconds=_SIGNED_IN_SECONDS)
        when = f"the link works once, for {LINK_SECONDS / 60:.0f} minutes"
        lines.append(f"the pages, signed in ({when}): {address}/ui/enter/{service.links.make(token)}")
    return lines
