"""``penstock resume``."""

from __future__ import annotations

from penstock.cli.options import AppOption, AsUser, JobId, Reason


def resume(job_id: JobId, reason: Reason = None, user: AsUser = None, app: AppOption = None) -> None:
    """Resume a paused job.

    \b
    penstock resume 8f2c11d04e57
    """
    from penstock.cli.job_change import change

    change(job_id, user, app, lambda jobs, full_id: jobs.resume(full_id, reason=reason))
