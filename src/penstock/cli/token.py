"""``penstock token``."""

from __future__ import annotations

from typing import Annotated

import typer

from penstock.cli.options import AppOption


def token(
    user: Annotated[str, typer.Option(help="Who the token speaks for.")],
    admin: Annotated[bool, typer.Option("--admin", help="They may see and stop everything.")] = False,
    expires: Annotated[str, typer.Option(help="How long it is good.")] = "24h",
    app: AppOption = None,
) -> None:
    """Print a token for a user, and nothing else.

    \b
    penstock token --user alice
    curl -H "Authorization: Bearer $(penstock token --user alice)" http://127.0.0.1:8765/api/jobs
    penstock token --user root --admin --expires 10m
    """
    from penstock.cli.application import open_app
    from penstock.errors import InvalidInput
    from penstock.http.service import tokens_of
    from penstock.lifecycle.quantities import seconds

    if not 0 < len(user) <= 255 or not user.isprintable():
        raise InvalidInput("a user's name has 1 to 255 printable characters", field="user")
    with open_app(app) as penstock:
        print(tokens_of(penstock).issue(user, is_admin=admin, seconds=seconds(expires)))
