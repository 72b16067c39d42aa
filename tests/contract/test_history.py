"""A history is read to its end, however long it is."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import insert

from penstock.lifecycle.states import JobState
from penstock.operations import read_jobs
from penstock.store.tables import job_events
from penstock.testing.drive import Workbench

LINES = 2_345


def with_long_history(bench: Workbench) -> UUID:
    """A job whose history has so many lines; the last one says why it was canceled."""
    job = bench.submit("single").job
    line = {
        "job_id": job.id,
        "run": 1,
        "from_state": "paused",
        "to_state": "queued",
        "actor": "owner",
        "actor_id": None,
    }
    more = [{**line, "sequence": number, "at": bench.clock.held()} for number in range(2, LINES + 1)]
    more[-1] |= {"to_state": "canceled", "actor_id": "ann"}
    with bench.store.engine.begin() as connection:
        connection.execute(insert(job_events), more)
    return job.id


def test_a_long_history_is_read_to_its_end(bench: Workbench) -> None:
    job_id = with_long_history(bench)
    lines = bench.store.read(lambda one: read_jobs.history(one, job_id))
    assert [line.sequence for line in lines] == list(range(1, LINES + 1))
    rest = bench.store.read(lambda one: read_jobs.history(one, job_id, after=LINES - 2))
    assert [line.sequence for line in rest] == [LINES - 1, LINES]


def test_a_page_of_a_history_has_as_many_lines_as_were_asked_for(bench: Workbench) -> None:
    job_id = with_long_history(bench)
    page = bench.store.read(lambda one: read_jobs.history(one, job_id, after=10, limit=2_000))
    assert (len(page), page[0].sequence, page[-1].sequence) == (2_000, 11, 2_010)


def test_the_last_change_is_found_at_the_end_of_a_long_history(bench: Workbench) -> None:
    job_id = with_long_history(bench)

    def last(state: JobState) -> Any:
        return bench.store.read(lambda one: read_jobs.last_change_to(one, job_id, state))

    assert (last(JobState.CANCELED).sequence, last(JobState.CANCELED).actor_id) == (LINES, "ann")
    assert last(JobState.QUEUED).sequence == LINES - 1
    assert last(JobState.FAILED) is None
