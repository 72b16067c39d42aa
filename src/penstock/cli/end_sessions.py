"""``penstock end-sessions``."""

from __future__ import annotations

from typing import Annotated

import typer

from penstock.cli.options import AppOption


def end_sessions(
    user: Annotated[str | None, typer.Option(help="Whose sessions to end.")] = None,
    everybody: Annotated[bool, typer.Option("--everybody", help="End those of all users and programs.")] = False,
    app: AppOption = None,
) -> None:
    """End sessions: tokens that were issued until now are not good any more.

    For a token that was lost, or somebody who has left. Running servers notice within PENSTOCK_SESSION_CHECK_SECONDS.

    \b
    penstock end-sessions --user alice
    penstock end-sessions --everybody
    """
    from penstock.cli.application import open_app
    from penstock.errors import InvalidInput

    if everybody == (user is not None):
        raise InvalidInput("say whose: --user NAME or --everybody", field="--user")
    with open_app(app) as penstock:
        moment = penstock.system.end_sessions(user)
        whose = "everybody's tokens" if user is None else f"the tokens of {user}"
        within = f"{penstock.settings.session_check_seconds:g} s"
        print(f"{whose} from before {moment:%Y-%m-%d %H:%M:%S} UTC are void; running servers notice within {within}")
