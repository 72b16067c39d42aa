"""Running a server for a command, and saying in one line why it cannot start."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from penstock.cli.callers import login_name
from penstock.errors import ConfigurationError

if TYPE_CHECKING:
    from fastapi import FastAPI

    from penstock import Penstock
    from penstock.http.uvicorn_server import Server

_SIGNED_IN_SECONDS = 12 * 3_600.0


def require_server() -> None:
    """The server's libraries are an extra."""
    try:
        import penstock.http.uvicorn_server  # noqa: F401
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"the server's libraries are not installed ({error}); install penstock[server]"
        ) from error


def run(server: Server, app: Penstock, host: str, port: int) -> None:
    """Serve until somebody stops it."""
    app.store  # noqa: B018 - what is wrong with the database is said here, in one line
    try:
        server.run()
    except SystemExit as error:
        raise ConfigurationError(
            f"cannot serve on {host}:{port}; is the port in use?", code="ADDRESS_IN_USE"
        ) from error


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
