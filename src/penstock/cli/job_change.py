"""What the commands that change a job have in common: find it, change it, say how it stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from uuid import UUID

from penstock.cli.application import open_app_as
from penstock.cli.identifiers import find_id, short

if TYPE_CHECKING:
    from penstock import Job
    from penstock.app import Jobs

Change = Callable[["Jobs", UUID], "Job"]


def change(job_id: str, user: str | None, app_name: str | None, make: Change, *, is_program: bool = False) -> None:
    """Make one change to the job that ``job_id`` names."""
    with open_app_as(app_name, user, is_program=is_program) as mine:
        job = make(mine.jobs, find_id(mine.jobs, job_id))
        run = f", run {job.run}" if job.run > 1 else ""
        print(f"{short(job.id)} is {job.state.value}{run}")
