"""``penstock cancel``."""

from __future__ import annotations

from penstock.cli.options import AppOption, AsSystem, AsUser, JobId, Reason


def cancel(
    job_id: JobId, reason: Reason = None, user: AsUser = None, system: AsSystem = False, app: AppOption = None
) -> None:
    """Stop a job for good; its history keeps who and why.

    \b
    penstock cancel 8f2c11d04e57 --reason "wrong file"
    penstock cancel 8f2c11d04e57 --system --reason "a deployment"
    """
    from penstock.cli.job_change import change

    change(job_id, user, app, lambda jobs, full_id: jobs.cancel(full_id, reason=reason), is_program=system)
