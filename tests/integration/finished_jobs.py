"""Waiting until a job is over, for tests of workers."""

from __future__ import annotations

from penstock import (
    Job,
    Penstock,
)
from penstock.testing.invariants import violations

PATIENCE = 30.0


def finished(app: Penstock, job: Job) -> Job:
    """The job once it is finished; the invariants hold then."""
    done = app.jobs.wait(job.id, timeout=PATIENCE, every=0.01)
    assert done.finished, f"{done.state} after {PATIENCE} s"
    assert violations(app.store) == []
    return done
