"""``penstock prune``."""

from __future__ import annotations

from typing import Annotated

import typer

from penstock.cli.options import AppOption


def prune(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be deleted now.")] = False,
    app: AppOption = None,
) -> None:
    """Delete jobs that have been kept for as long as their kinds say, with their items, history and files.

    Running workers do the same, a little at a time. Without keep_for and PENSTOCK_KEEP_JOBS_FOR all jobs are kept for
    ever.

    \b
    penstock prune --dry-run
    penstock prune
    """
    from penstock.cli.application import open_app
    from penstock.cli.texts import count_of

    with open_app(app) as penstock:
        counts = penstock.system.prune(dry_run=dry_run)
    for count in counts:
        jobs = count_of(count.jobs, f"{count.state} {count.kind} job", f"{count.state} {count.kind} jobs")
        items = count_of(count.items, "item", "items")
        print(f"{jobs} with {items} {'would be deleted' if dry_run else 'deleted'}")
    if not counts:
        print("nothing to delete: no job has been kept for as long as its kind says")
