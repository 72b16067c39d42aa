"""Titles, and finding jobs by them: the same on every database."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from penstock import SYSTEM, Caller, JobState, Penstock, admin, owner
from penstock.clock import ManualClock
from penstock.errors import InvalidInput
from penstock.lifecycle import SubmitOutcome
from penstock.operations import read_jobs
from penstock.operations.read_jobs import JobCursor, JobFilter
from penstock.store.engine import Store
from penstock.testing.drive import Workbench
from tests.on_store import OnStore


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


# Titles -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (None, None),
        ("prices.csv", "prices.csv"),
        ("", None),
        (" \t\n", None),
        ("two\r\nlines\0and\x1b[31mred", "two lines and [31mred"),
        ("half a pair \ud800", "half a pair \ufffd"),
        ("ä" * 255, "ä" * 255),
        ("😀" * 256, "😀" * 254 + "…"),
    ],
)
def test_a_title_is_one_line_that_can_be_kept(app: Penstock, given: str | None, kept: str | None) -> None:
    for job in (
        app.submit("table", {}, title=given).job,
        app.submit("table", {}, title=given, unique_key="key").job,
        app.submit("table", items=[1, 2], title=given).job,
        app.submit("table", {}, title=given, hold=True, idempotency_key="once").job,
    ):
        assert (job.title, app.jobs.get(job.id).title) == (kept, kept)


def test_whoever_follows_has_the_title_they_gave(app: Penstock, bench: Workbench) -> None:
    first = app.submit("table", {}, owner="ann", unique_key="key", title="ann's").job
    follower = app.submit("table", {}, owner="bob", unique_key="key", title="bob's")
    assert (follower.answer, follower.job.title) == (SubmitOutcome.FOLLOWING, "bob's")
    again = app.submit("table", {}, owner="ann", unique_key="key", title="another")
    assert (again.answer, again.job.title) == (SubmitOutcome.EXISTING, "ann's")
    bench.drain("table")
    cached = app.submit("table", {}, owner="cid", unique_key="key", fresh_for="1h", title="cid's")
    assert (cached.answer, cached.job.title) == (SubmitOutcome.CACHED, "cid's")
    assert [app.jobs.get(one.id).title for one in (first, follower.job, cached.job)] == ["ann's", "bob's", "cid's"]


def test_many_at_once_have_none(app: Penstock) -> None:
    assert {app.jobs.get(one).title for one in app.submit_many("table", [1, 2])} == {None}


# Finding ----------------------------------------------------------------------------------------------------------


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
    from penstock.lifecycle import outcomes

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


def test_the_times_bound_a_list(app: Penstock, store: Store) -> None:
    clock = store.clock
    assert isinstance(clock, ManualClock)
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
