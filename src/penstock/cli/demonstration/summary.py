"""The end of the demonstration: what came of each job, and what to try next."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from penstock.cli import job_summary
from penstock.cli.demonstration.kinds import COUNT_WORDS
from penstock.cli.texts import on_one_line

if TYPE_CHECKING:
    from penstock import Job
    from penstock.app import Jobs


def tell_outcomes(
    mine: Jobs, names: Mapping[UUID, str], jobs: Sequence[Job], unexpected_jobs: Sequence[Job]
) -> Iterator[str]:
    """What came of each job."""
    good = [names[job.id] for job in jobs if job.state.value == "succeeded"]
    bad = [f"{names[job.id]} ({job.error_code})" for job in jobs if job.state.value == "failed"]
    yield f"{len(good)} succeeded: {', '.join(good)}"
    if bad:
        yield f"{len(bad)} failed{'' if unexpected_jobs else ', as they should'}: {', '.join(bad)}"
    for job in jobs:
        if job.state.value == "canceled":
            done = f"after {job.progress.processed:,} of {job.progress.total:,} items"
            reason = on_one_line(job.killed_reason or "")
            yield f"1 canceled: {names[job.id]} {done}, by {job_summary.stopped_by(mine, job)}: {reason}"
    for job in jobs:
        if names[job.id] == COUNT_WORDS and isinstance(job.result, dict):
            lines = f"{job.result['lines']:,} lines; {job.result['unreadable']} could not be read"
            yield f"{COUNT_WORDS} found {job.result['words']:,} words in {lines}"
    for job in unexpected_jobs:
        yield f"NOT AS EXPECTED: {names[job.id]} is {job.state.value} {job_summary.failure(job)}"


def where_to_look(directory: Path | None, next_steps: Iterable[str]) -> Iterator[str]:
    """What to try next; ``directory`` is the folder where it all still is, ``next_steps`` is what applications say."""
    if directory is None:
        yield "The database was temporary and is gone now. To have one to look into:"
        yield "  penstock demo --keep demo && cd demo && penstock jobs"
    else:
        yield f"The database is {directory / 'penstock.db'}. To look into it:"
        yield f"  cd {shlex.quote(str(directory))} && penstock jobs"
    yield from next_steps
