"""``penstock pause``."""

from __future__ import annotations

from penstock.cli.options import AppOption, AsUser, JobId, Reason


def pause(job_id: JobId, reason: Reason = None, user: AsUser = None, app: AppOption = None) -> None:
    """Let no new item of a job start; the claimed ones finish.

    \b
    penstock pause 8f2c11d04e57 --reason "the shop is being moved"
    """
    from penstock.cli.job_change import change

    change(job_id, user, app, lambda jobs, full_id: jobs.pause(full_id, reason=reason))
