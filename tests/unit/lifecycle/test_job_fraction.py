"""How far a job is shown to be: 0 while nobody knows of how many, and 1 only when it is over."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest

from penstock.lifecycle.callers import SYSTEM
from penstock.lifecycle.job import Job, Progress
from penstock.lifecycle.job_message import message_of, percent_of
from penstock.lifecycle.kind import Kind
from penstock.lifecycle.policy import Policy
from penstock.lifecycle.states import JobState, Phase
from penstock.operations.new_jobs import job_as_recorded
from penstock.operations.request import Request
from penstock.store.queries.submit import NewJob


def running(phase: Phase, processed: int, total: int, state: JobState = JobState.RUNNING) -> Job:
    kind = Kind.of("rows", lambda item: None, Policy())
    job = job_as_recorded(kind, Request(caller=SYSTEM), NewJob(UUID(int=1), "null"), datetime(2026, 1, 1, tzinfo=UTC))
    progress = Progress(total=total, processed=processed, failed=0, not_found=0, skipped=0)
    return replace(job, state=state, phase=phase, progress=progress)


@pytest.mark.parametrize(
    ("job", "percent", "message"),
    [
        (running(Phase.BATCHING, 0, 0), 0.0, "Processing... 0%"),
        (running(Phase.BATCHING, 64, 64), 0.0, "Taking in... 64 items so far"),
        (running(Phase.BATCHING, 64, 12_800), 0.0, "Taking in... 12,800 items so far"),
        (running(Phase.PROCESSING, 64, 12_800), 0.5, "Processing... 0.5%"),
        (running(Phase.FINALIZING, 12_800, 12_800), 99.9, "Processing... 99.9%"),
        (running(Phase.FINALIZING, 12_800, 12_800, JobState.SUCCEEDED), 100.0, "Completed successfully"),
    ],
)
def test_what_is_shown(job: Job, percent: float, message: str) -> None:
    assert (percent_of(job), message_of(job, percent_of(job))) == (percent, message)
