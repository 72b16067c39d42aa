"""Lists of jobs and searches in them, and histories, whoever asks."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import insert

from penstock import SYSTEM, Caller, JobState, Penstock, admin, owner
from penstock.clock import ManualClock
from penstock.errors import InvalidInput
from penstock.lifecycle import outcomes
from penstock.operations import read_jobs
from penstock.operations.read_jobs import JobCursor, JobFilter
from penstock.store.engine import Store
from penstock.store.tables import job_events
from penstock.testing.drive import Workbench
from tests.on_store import OnStore


@pytest.mark.usefixtures("rows_are_true_in_the_end")
def test_owners_guests_and_admins_see_theirs(bench: Workbench) -> None:
    for who in ("ann", "bob", None):
        bench.submit("single", owner=who)

    def seen(caller: Any) -> list[str | None]:
        return [job.user_id for job in bench.store.read(lambda one: read_jobs.list_jobs(one, caller))]

    assert (seen(owner("ann")), seen(owner(None)), len(seen(admin("root")))) == (["ann"], [None], 3)


@pytest.fixture
def app(store: Store, tmp_path: Path) -> Penstock:
    """A Penstock with kinds that nobody works on."""
    one = OnStore(store, tmp_path)
    for name in ("table", "picture"):
        one.kind(name)(lambda item: None)
    return one


def found(app: Penstock, search: str | None, *, by: Caller = SYSTEM, **asked: Any) -> list[str | None]:
    """The titles of the jobs that are found, newest first."""
    return [job.title for job in app.acting_as(by).jobs.list(search=search, **asked)]


def test_a_text_is_found_in_what_people_know_a_job_by(app: Penstock) -> None:
    app.submit("table", {}, owner="Ada", title="Prices of May.csv")
    app.submit("picture", {}, owner="bob", title="100%_sure\\.png")
    app.submit("picture", {}, owner="bob", title="100 per cent.png")
    table, percent, words = "Prices of May.csv", "100%_sure\\.png", "100 per cent.png"
    assert found(app, "PRICES") == [table]
    assert found(app, " of may ") == [table]
    assert found(app, "ada") == [table]
    assert found(app, "PICT") == [words, percent]
    assert found(app, "100") == [words, percent]
    # What is a wildcard to a database is a letter to people.
    assert found(app, "%") == [percent]
    assert found(app, "0_p") == []
    assert found(app, "_sure\\.") == [percent]
    assert found(app, "") == found(app, "  ") == [words, percent, table]
    assert found(app, "nothing like it\0") == []
    assert found(app, "100", kind="table") == []
    assert found(app, "100", by=owner("Ada")) == []
    assert found(app, "100", by=admin("root"), states=[JobState.QUEUED]) == [words, percent]
    assert found(app, "100", states=[JobState.FAILED]) == []


def test_a_job_is_found_by_its_error(app: Penstock, bench: Workbench) -> None:
    app.submit("table", {}, title="broken")
    bench.record(bench.claim("table"), outcomes.failed("no", "SHOP_CLOSED"))
    app.submit("table", {}, title="whole")
    assert found(app, "shop_c") == ["broken"]


def test_a_job_is_found_by_how_its_id_begins_or_ends(app: Penstock) -> None:
    job = app.submit("table", {}, owner="ann", title="it").job
    app.submit("table", {}, title="another", job_id=None)
    text = str(job.id)
    for part in (text, text.upper(), job.id.hex, text[-8:], text[-18:], job.id.hex[-4:]):
        assert "it" in found(app, part), part
    assert found(app, text[-12:]) == found(app, text) == ["it"]
    assert "it" in found(app, text[:8])
    # Three digits are somewhere in every second id, and the middle of one nobody knows.
    assert found(app, text[-3:]) == []
    assert found(app, job.id.hex[2:30]) == []
    assert found(app, text, by=owner("bob")) == []


def test_the_times_bound_a_list(app: Penstock, clock: ManualClock) -> None:
    moments: list[datetime] = []
    for number in range(4):
        moments.append(app.submit("table", {}, title=str(number)).job.created_at)
        clock.advance(60)
    assert found(app, None, created_from=moments[1]) == ["3", "2", "1"]
    assert found(app, None, created_to=moments[2]) == ["1", "0"]
    assert found(app, None, created_from=moments[1], created_to=moments[3]) == ["2", "1"]
    assert found(app, "2", created_from=moments[1], created_to=moments[3], kind="table") == ["2"]
    first = app.jobs.list(created_to=moments[3], limit=1)[0]
    assert found(app, None, created_to=moments[3], after=JobCursor(first.created_at, first.id)) == ["1", "0"]
    assert found(app, None, created_from=moments[3] + timedelta(microseconds=1)) == []
    with pytest.raises(InvalidInput, match="zone"):
        app.jobs.list(created_from=datetime(2026, 1, 1))  # noqa: DTZ001
    with pytest.raises(InvalidInput, match="up to 255 characters"):
        app.jobs.list(search="x" * 256)


def test_a_search_looks_through_so_many_and_leads_on(app: Penstock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_jobs, "MAX_SEARCHED", 4)
    titles = ["red", "red", "-", "-", "-", "-", "-", "red", "-", "-", "red", "red"]
    jobs = [app.submit("table", {}, title=title).job for title in reversed(titles)]
    pages: list[list[str | None]] = []
    after: JobCursor | None = None
    for _ in titles:
        page = app.jobs.page(JobFilter(search="RED"), after=after, limit=2)
        pages.append([job.title for job in page.jobs])
        after = page.next
        if after is None:
            break
    # Full; four looked through and none found; one found among the next four; full; the list is over.
    assert pages == [["red", "red"], [], ["red"], ["red", "red"], []]
    assert app.jobs.page(limit=2).next == JobCursor(jobs[-2].created_at, jobs[-2].id)
    assert app.jobs.page(limit=100).next is None
    # A job somebody can name is found however old it is.
    page = app.jobs.page(JobFilter(search=str(jobs[0].id)))
    assert ([job.id for job in page.jobs], page.next) == ([jobs[0].id], None)
    assert app.jobs.page(JobFilter(search=str(jobs[0].id), kind="picture")).jobs == []
    assert app.acting_as(owner("bob")).jobs.page(JobFilter(search=str(jobs[0].id))).jobs == []


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
