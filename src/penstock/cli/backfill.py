"""``penstock backfill``."""

from __future__ import annotations

from penstock.cli.options import AppOption


def backfill(app: AppOption = None) -> None:
    """Write the owner and the kind of each job to its items again, where they say otherwise.

    For whoever changed the owners of jobs by hand. It may be run beside workers, and again without harm.

    \b
    penstock backfill
    """
    from penstock.cli.application import open_app
    from penstock.cli.texts import count_of

    with open_app(app) as penstock:
        print(f"{count_of(penstock.system.backfill(), 'item')} repaired")
