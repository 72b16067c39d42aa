"""``penstock backfill``."""

from __future__ import annotations

from penstock.cli.options import AppOption


def backfill(app: AppOption = None) -> None:
    """Write the owner and the kind of each job to its items again, where they say otherwise.

    For whoever changed the owners of jobs by hand. It may be run beside workers, and again without harm.

    \b
    penstock backfill
    """
    from penstock.cli.application import opened
    from penstock.cli.texts import counted

    with opened(app) as one:
        print(f"{counted(one.system.backfill(), 'item')} put right")
