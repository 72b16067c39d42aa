"""``penstock commit``."""

from __future__ import annotations

from penstock.cli.options import AppOption, AsUser, JobId, Reason


def commit(job_id: JobId, reason: Reason = None, user: AsUser = None, app: AppOption = None) -> None:
    """Say that a succeeded job's result was used; that is final.

    \b
    penstock commit 8f2c11d04e57 --as alice
    """
    from penstock.cli.job_change import change

    change(job_id, user, app, lambda jobs, full_id: jobs.commit(full_id, reason=reason))
