"""``penstock commit``."""

from __future__ import annotations

from penstock.cli.options import AppOption, AsUser, JobId, Reason


def commit(job_id: JobId, reason: Reason = None, user: AsUser = None, app: AppOption = None) -> None:
    """Say that a succeeded job's result was used; that is final.

    \b
    penstock commit 8f2c11d04e57 --as alice
    """
    from penstock.cli.changing import change

    change(job_id, user, app, lambda jobs, found: jobs.commit(found, reason=reason))
