"""``penstock migrate``."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from penstock.cli.options import AppOption


def migrate(
    lock_timeout: Annotated[
        str,
        typer.Option(
            "--lock-timeout",
            metavar="DURATION",
            help="How long one attempt waits for a table's lock; others queue behind it meanwhile.",
        ),
    ] = "1s",
    wait: Annotated[
        str, typer.Option("--wait", metavar="DURATION", help="Give up after this time, and say who held the lock.")
    ] = "1m",
    app: AppOption = None,
) -> None:
    """Bring the database's schema up to date.

    Safe while older workers run, and when done twice. An embedded database does it by itself. Tables that lie where
    version 0.1 first put them are moved, once: that needs stopped workers, and is refused while there are any.

    \b
    penstock migrate
    penstock migrate --wait 10m
    """
    from penstock.cli.application import open_app

    with open_app(app) as penstock:
        penstock.system.migrate(
            lock_timeout=lock_timeout, wait=wait, say=lambda line: print(line, file=sys.stderr, flush=True)
        )
        print("the schema is up to date")
