"""``penstock watch``."""

from __future__ import annotations

import typer

from penstock.cli.options import AppOption, AsUser, JobId


def watch(job_id: JobId, user: AsUser = None, app: AppOption = None) -> None:
    """Follow a job until it is finished.

    Exits with 0 if it succeeded, 1 if it failed, 3 if it was canceled.

    \b
    penstock watch 8f2c11d04e57
    penstock watch 8f2c11d04e57 && penstock result 8f2c11d04e57
    """
    from penstock.cli import job_summary
    from penstock.cli.application import opened
    from penstock.cli.callers import caller
    from penstock.cli.following import follow
    from penstock.cli.identifiers import find_id, short
    from penstock.cli.scoreboard import Row

    with opened(app) as one:
        by = caller(user)
        job = one.get(find_id(one, job_id, by), by=by)
        row = Row.of(one.kinds, job.kind, job.id, f"{job.kind} {short(job.id)}")
        [ended] = follow(one, [row], by=by)
        code = job_summary.exit_code(ended)
        if code:
            raise typer.Exit(code)
