"""``penstock abandon``."""

from __future__ import annotations

from penstock.cli.options import AppOption, AsUser, JobId, Reason


def abandon(job_id: JobId, reason: Reason = None, user: AsUser = None, app: AppOption = None) -> None:
    """Give up a succeeded job's result; that is final.

    \b
    penstock abandon 8f2c11d04e57
    """
    from penstock.cli.job_change import change

    change(job_id, user, app, lambda jobs, full_id: jobs.abandon(full_id, reason=reason))
