"""A live table of some jobs: what each is called, how it stands, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from penstock.cli import job_summary
from penstock.cli.screen import add_row, in_colour, plain_table
from penstock.cli.texts import on_one_line

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from penstock import Job
    from penstock.lifecycle import Vocabulary
    from penstock.lifecycle.kind import Kinds

_BAR = 16
_STATE = 9
_TIME = 6


@dataclass(frozen=True, slots=True)
class Row:
    """A job to follow: its name for people, the words its state is shown in, how its result is told."""

    id: UUID
    name: str
    words: Vocabulary | None = None
    describe: Callable[[Any], str] | None = None

    @classmethod
    def of(cls, kinds: Kinds, kind: str, job_id: UUID, name: str) -> Row:
        """A job of a kind that may say how its jobs are shown."""
        if kind not in kinds:
            return cls(job_id, name)
        registered_kind = kinds.get(kind)
        return cls(job_id, name, registered_kind.words, registered_kind.describe)


@dataclass(frozen=True, slots=True)
class JobView:
    """A row and its job at one moment."""

    row: Row
    job: Job
    canceled_by: str = ""

    @property
    def word(self) -> str:
        """The state, in the row's vocabulary."""
        return self.row.words.word(self.job.state, self.job.killed_by) if self.row.words else self.job.state.value

    @property
    def outcome(self) -> str:
        """What came of it."""
        if self.row.describe is not None and self.job.state.shown_as.value in ("succeeded", "committed"):
            return self.row.describe(self.job.result)
        return job_summary.ending(self.job, self.canceled_by)


def board(views: Sequence[JobView]) -> Table:
    """The table as it stands now; bars for the jobs with many items."""
    table = plain_table("name", "state", "retries", "time", "outcome", right=("retries", "time"))
    for column, width in ((1, _STATE), (3, _TIME)):
        table.columns[column].min_width = width  # or the table would jump with each new word
    for view in views:
        job = view.job
        retries = f"{job.retries}/{job.max_retries}" if job.progress.total <= 1 else ""
        word = in_colour(view.word, job.state)
        add_row(table, [on_one_line(view.row.name, 24), word, retries, job_summary.time_taken(job), _outcome(view)])
    return table


def _outcome(view: JobView) -> RenderableType:
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    job = view.job
    if job.finished or job.progress.total <= 1:
        return Text(view.outcome, overflow="ellipsis", no_wrap=True)
    grid = Table.grid(padding=(0, 1, 0, 0))
    bar = ProgressBar(total=1.0, completed=job.fraction, width=_BAR)
    time_left = job_summary.time_left(job)
    grid.add_row(bar, Text(job_summary.progress(job)), Text(f"{time_left} left" if time_left else ""))
    return grid


def line(view: JobView) -> str:
    """The same for a file or a pipe: one line for one change."""
    parts = [f"{view.row.name}: {view.word}"]
    if view.job.progress.total > 1 and not view.job.finished:
        parts.append(job_summary.progress(view.job))
    if view.job.finished:
        parts += [f"after {job_summary.time_taken(view.job)}"] if view.job.started_at else []
    if view.outcome:
        parts.append(f"- {view.outcome}")
    return on_one_line(" ".join(parts))
