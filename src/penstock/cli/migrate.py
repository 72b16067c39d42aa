"""``penstock migrate``."""

from __future__ import annotations

from penstock.cli.options import AppOption


def migrate(app: AppOption = None) -> None:
    """Bring the database's schema up to date.

    Safe while older workers run, and when done twice. An embedded database does it by itself.

    \b
    penstock migrate
    """
    from penstock.cli.application import opened

    with opened(app) as one:
        one.migrate()
        print("the schema is up to date")
