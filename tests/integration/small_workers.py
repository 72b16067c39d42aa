"""Workers that notice soon what does not end, for tests of those who watch them."""

from __future__ import annotations

from penstock import Job, Penstock

PATIENCE = 30.0
PLACES = ["threads", "event_loop", "processes"]


def ended(app: Penstock, job: Job) -> Job:
    done = app.jobs.wait(job.id, timeout=PATIENCE, every=0.01)
    assert done.finished, f"{done.state} after {PATIENCE} s"
    return done
