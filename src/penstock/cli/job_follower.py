"""Following jobs until they are finished: a live table on a terminal, a line for each change elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING
from uuid import UUID

from penstock.cli import job_summary
from penstock.cli.scoreboard import JobView, Row, board, line
from penstock.cli.screen import console, is_live

if TYPE_CHECKING:
    from penstock import Job
    from penstock.app import Jobs

Look = Callable[[Sequence["Job"]], None]
Show = Callable[[Sequence[JobView]], None]
_EVERY = 0.1
_LONELY_AFTER = 3.0


def follow(
    jobs: Jobs,
    rows: Sequence[Row],
    *,
    look: Look | None = None,
    timeout: float | None = None,
    hint: bool = True,
    until: threading.Event | None = None,
) -> list[Job]:
    """Show the jobs until all are finished, or ``timeout`` seconds have passed; the answer is how they stand then.

    ``look`` is called with the jobs each time, and may add to ``rows``. With ``hint``, jobs that nobody takes up lead
    to a word about workers. Setting ``until`` ends it at once.
    """
    began_at = time.monotonic()
    until = until or threading.Event()
    views: dict[UUID, JobView] = {}
    with _showing() as show:
        while True:
            for row in rows:
                if row.id not in views or not views[row.id].job.finished:
                    job = jobs.get(row.id)
                    views[row.id] = JobView(row, job, job_summary.stopped_by(jobs, job))
            now = [views[row.id] for row in rows]
            show(now)
            seen_jobs = [view.job for view in now]
            if look is not None:
                look(seen_jobs)
            elapsed = time.monotonic() - began_at
            whole = len(seen_jobs) == len(rows) and all(job.finished for job in seen_jobs)
            if whole or (timeout is not None and elapsed > timeout):
                return seen_jobs
            if hint and elapsed > _LONELY_AFTER and not any(job.started_at for job in seen_jobs):
                hint = False
                print(_lonely_hint(seen_jobs), file=sys.stderr, flush=True)
            if until.wait(_EVERY):
                return seen_jobs


@contextmanager
def _showing() -> Iterator[Show]:
    out = console()
    if not is_live(out):
        yield _printer()
        return
    from rich.live import Live

    with Live(console=out, refresh_per_second=10, vertical_overflow="visible", redirect_stdout=False) as live:
        yield lambda now: live.update(board(now))


def _printer() -> Show:
    """Prints a line when a job's state changes, and at each tenth of a long one."""
    printed_marks: dict[UUID, object] = {}

    def show(now: Sequence[JobView]) -> None:
        for view in now:
            tenth = int(view.job.fraction * 10)
            mark = (view.word, tenth if view.job.progress.total > 1 else 0)
            if printed_marks.get(view.row.id) != mark:
                printed_marks[view.row.id] = mark
                print(line(view), flush=True)

    return show


def _lonely_hint(jobs: Sequence[Job]) -> str:
    """What to do for jobs that nobody has begun."""
    engine = next((job.engine for job in jobs if job.engine is not None), None)
    advice = "start one with: penstock worker" if engine is None else f"{engine} moves it"
    return f"no worker has taken it yet; {advice}"
