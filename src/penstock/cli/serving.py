"""Running a server for a command, and saying in one line what is in its way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import ConfigurationError

if TYPE_CHECKING:
    from penstock import Penstock
    from penstock.http.server import Server


def require_server() -> None:
    """The server's libraries are an extra."""
    try:
        import penstock.http.server  # noqa: F401
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"what the server stands on is not installed ({error}); install penstock[server]"
        ) from error


def run(server: Server, app: Penstock, host: str, port: int) -> None:
    """Serve until somebody stops it."""
    app.store  # noqa: B018 - what is wrong with the database is said here, in one line
    try:
        server.run()
    except SystemExit as error:
        raise ConfigurationError(
            f"cannot serve on {host}:{port}; is something else there?", code="ADDRESS_IN_USE"
        ) from error
