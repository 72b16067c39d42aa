"""The demo from beginning to end: submit, work, watch, stop one job, and tell how it went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from penstock import JobState, Penstock, load_settings, owner
from penstock.cli.demonstration import kinds
from penstock.cli.demonstration.summary import print_summary
from penstock.cli.documents import document_row, submit_documents
from penstock.cli.following import follow
from penstock.cli.scoreboard import Row
from penstock.errors import TransitionRefused

if TYPE_CHECKING:
    from penstock import Job

USER = "demo"
REASON = "half was enough"
_TIMEOUT = 90.0


@dataclass(frozen=True, slots=True)
class Act:
    """A job of the demo, and how it must end for the demo to be a success."""

    row: Row
    state: JobState
    error_code: str | None = None

    def went_well(self, job: Job) -> bool:
        """Did it end as it should?"""
        return job.state is self.state and job.error_code == self.error_code


def play(directory: Path, *, kept: bool) -> bool:
    """Run the demo in ``directory``; the answer says whether everything went as expected."""
    settings = load_settings(
        database_url=f"sqlite:///{directory}/penstock.db",
        files_directory=directory / "penstock-files",
        stop_grace_seconds=0.5,
    )
    app = Penstock(settings=settings)
    kinds.register(app)
    try:
        acts = [*_documents(app, directory / "documents"), *_counting(app)]
        slow = acts[-1].row.id
        with app.working():
            ended = follow(
                app,
                [act.row for act in acts],
                by=owner(USER),
                look=lambda jobs: _stop_half_way(app, jobs, slow),
                timeout=_TIMEOUT,
                hint=False,
            )
        unexpected = [job for act, job in zip(acts, ended, strict=True) if not act.went_well(job)]
        names = {act.row.id: act.row.name for act in acts}
        print_summary(app, names, ended, unexpected, directory if kept else None)
    finally:
        app.close()
    return not unexpected


def _documents(app: Penstock, folder: Path) -> list[Act]:
    """Four documents that are read, and three that are refused, each for its reason."""
    from penstock_apps import missing_libraries

    if "documents" in missing_libraries():
        print("The documents part is left out: it needs penstock[documents].\n")
        return []
    from penstock_apps.documents.samples import write_broken_samples, write_samples
    from penstock_apps.documents.service import Documents, Limits

    good, broken = write_samples(folder), write_broken_samples(folder)
    codes = dict(zip(broken, ("DOCUMENT_CORRUPT", "DOCUMENT_MISLABELLED", "DOCUMENT_EMPTY"), strict=True))
    paths = [*good, *broken]
    jobs = submit_documents(Documents(app, Limits()), paths, USER)
    return [
        Act(document_row(job, path.name), JobState.FAILED if path in codes else JobState.SUCCEEDED, codes.get(path))
        for job, path in zip(jobs, paths, strict=True)
    ]


def _counting(app: Penstock) -> list[Act]:
    counting = app.submit(kinds.COUNT_WORDS, {"lines": kinds.LINES}, owner=USER, by=owner(USER)).job
    slow = app.submit(
        kinds.SLOW_COUNT, items=range(1, kinds.SLOW_ITEMS + 1), owner=USER, by=owner(USER)
    ).job  # fmt: skip
    return [
        Act(Row(counting.id, kinds.COUNT_WORDS), JobState.SUCCEEDED),
        Act(Row(slow.id, kinds.SLOW_COUNT), JobState.CANCELED),
    ]


def _stop_half_way(app: Penstock, jobs: Sequence[Job], slow: UUID) -> None:
    for job in jobs:
        if job.id == slow and job.state is JobState.RUNNING and job.progress.fraction(job.state) >= 0.5:
            try:
                app.cancel(slow, by=owner(USER), reason=REASON)
            except TransitionRefused:
                return  # it ended in this very moment; the summary will say so
