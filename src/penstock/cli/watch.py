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
    from penstock.cli.application import open_app
    from penstock.cli.callers import caller
    from penstock.cli.identifiers import find_id, short
    from penstock.cli.job_follower import follow
    from penstock.cli.scoreboard import Row

    with open_app(app) as penstock:
        mine = penstock.acting_as(caller(user))
        job = mine.jobs.get(find_id(mine.jobs, job_id))
        row = Row.of(penstock.kinds, job.kind, job.id, f"{job.kind} {short(job.id)}")
        [ended_job] = follow(mine.jobs, [row])
        code = job_summary.exit_code(ended_job)
        if code:
            raise typer.Exit(code)
