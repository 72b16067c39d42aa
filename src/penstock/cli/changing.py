"""What the commands that change a job have in common: find it, change it, say how it stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from uuid import UUID

from penstock.cli.application import opened
from penstock.cli.callers import caller
from penstock.cli.identifiers import find_id, short

if TYPE_CHECKING:
    from penstock import Caller, Job, Penstock

Change = Callable[["Penstock", UUID, "Caller"], "Job"]


def change(job_id: str, user: str | None, app_name: str | None, make: Change) -> None:
    """Make one change to the job that ``job_id`` names."""
    with opened(app_name) as app:
        by = caller(user)
        job = make(app, find_id(app, job_id, by), by)
        run = f", run {job.run}" if job.run > 1 else ""
        print(f"{short(job.id)} is {job.state.value}{run}")
