"""``penstock cancel``."""

from __future__ import annotations

from penstock.cli.options import AppOption, AsUser, JobId, Reason


def cancel(job_id: JobId, reason: Reason = None, user: AsUser = None, app: AppOption = None) -> None:
    """Stop a job for good; its history keeps who and why.

    \b
    penstock cancel 8f2c11d04e57 --reason "wrong file"
    """
    from penstock.cli.changing import change

    change(job_id, user, app, lambda jobs, found: jobs.cancel(found, reason=reason))
