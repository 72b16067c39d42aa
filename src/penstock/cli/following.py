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
from penstock.cli.scoreboard import Row, Seen, board, line
from penstock.cli.screen import console, is_live

if TYPE_CHECKING:
    from penstock import Job
    from penstock.app import Jobs

Look = Callable[[Sequence["Job"]], None]
Show = Callable[[Sequence[Seen]], None]
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
    begun = time.monotonic()
    until = until or threading.Event()
    seen: dict[UUID, Seen] = {}
    with _showing() as show:
        while True:
            for row in rows:
                if row.id not in seen or not seen[row.id].job.finished:
                    job = jobs.get(row.id)
                    seen[row.id] = Seen(row, job, job_summary.stopped_by(jobs, job))
            now = [seen[row.id] for row in rows]
            show(now)
            seen_jobs = [one.job for one in now]
            if look is not None:
                look(seen_jobs)
            passed = time.monotonic() - begun
            whole = len(seen_jobs) == len(rows) and all(job.finished for job in seen_jobs)
            if whole or (timeout is not None and passed > timeout):
                return seen_jobs
            if hint and passed > _LONELY_AFTER and not any(job.started_at for job in seen_jobs):
                hint = False
                print("no worker has taken it yet; start one with: penstock worker", file=sys.stderr, flush=True)
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
    told: dict[UUID, object] = {}

    def show(now: Sequence[Seen]) -> None:
        for one in now:
            tenth = int(one.job.progress.fraction(one.job.state) * 10)
            mark = (one.word, tenth if one.job.progress.total > 1 else 0)
            if told.get(one.row.id) != mark:
                told[one.row.id] = mark
                print(line(one), flush=True)

    return show
