"""``penstock token``."""

from __future__ import annotations

from typing import Annotated

import typer

from penstock.cli.options import AppOption


def token(
    user: Annotated[str, typer.Option(help="Who the token speaks for.")],
    admin: Annotated[bool, typer.Option("--admin", help="They may see and stop everything.")] = False,
    system: Annotated[
        bool,
        typer.Option("--system", help="It is an operator's program: it may the same, and acts as the system."),
    ] = False,
    expires: Annotated[str, typer.Option(help="How long it is good.")] = "24h",
    app: AppOption = None,
) -> None:
    """Print a token for a user, and nothing else.

    \b
    penstock token --user alice
    curl -H "Authorization: Bearer $(penstock token --user alice)" http://127.0.0.1:8765/api/jobs
    penstock token --user root --admin --expires 10m
    penstock token --user deployment --system
    """
    from penstock.cli.application import open_app
    from penstock.cli.server_process import require_server
    from penstock.errors import InvalidInput

    require_server()
    from penstock.http.service import tokens_of
    from penstock.lifecycle.quantities import seconds

    if not 0 < len(user) <= 255 or not user.isprintable():
        raise InvalidInput("a user's name has 1 to 255 printable characters", field="user")
    with open_app(app) as penstock:
        tokens = tokens_of(penstock)
        print(tokens.issue(user, is_admin=admin, is_program=system, seconds=seconds(expires)))
