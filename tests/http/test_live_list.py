"""The list of jobs as it changes: the page at first, then only what is new."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest
from structlog.testing import capture_logs

from penstock import Job, Penstock
from penstock.app import Jobs
from penstock.errors import StoreUnavailable
from penstock.http.jobs import live_list
from penstock.http.jobs.schemas import JobListed
from tests.http.conftest import Served, on_sqlite
from tests.http.shapes import read_as
from tests.http.test_live import events

Serve = Callable[..., Served]


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looked at more often than people need it."""
    monkeypatch.setattr(live_list, "LOOK_SECONDS", 0.01)


def changes(answer: httpx2.Response) -> Iterator[dict[str, Any]]:
    """What is told of the page."""
    for name, _, data in events(answer):
        assert (name, set(data)) == ("jobs", {"order", "jobs", "next"})
        yield data


def without_times(job: dict[str, Any]) -> dict[str, Any]:
    """What two looks at a job have in common while nothing happens to it."""
    return {name: value for name, value in job.items() if name != "times"}


def ids(*jobs: Job) -> list[str]:
    return [str(job.id) for job in jobs]


def test_a_page_is_told_whole_and_then_what_changed(app: Penstock, serve: Serve) -> None:
    app.kind("held")(lambda item: None)
    ada = serve(worker=False).client()
    first, second = (app.submit("held", {}, owner="ada", title=f"{n}.csv").job for n in range(2))
    with ada.stream("GET", "/api/jobs/live", params={"limit": 2, "q": "", "state": ""}) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        told = changes(answer)
        whole = next(told)
        assert whole["order"] == [one["job_id"] for one in whole["jobs"]] == ids(second, first)
        for one in whole["jobs"]:
            read_as(JobListed, one)
        assert [without_times(one) for one in whole["jobs"]] == [
            without_times(one) for one in ada.get("/api/jobs").json()
        ]
        app.jobs.pause(first.id)
        changed = next(told)
        assert (changed["order"], [one["state"] for one in changed["jobs"]]) == (ids(second, first), ["paused"])
        app.submit("held", {}, owner="bob")
        third = app.submit("held", {}, owner="ada").job
        pushed = next(told)
        assert (pushed["order"], [one["job_id"] for one in pushed["jobs"]]) == (ids(third, second), ids(third))
        behind = ada.get("/api/jobs", params={"cursor": pushed["next"]}).json()
        assert [one["job_id"] for one in behind] == ids(first)
    with ada.stream("GET", "/api/jobs/live", params={"state": "paused", "q": "0.csv"}) as answer:
        told = changes(answer)
        assert next(told)["order"] == ids(first)
        app.jobs.resume(first.id)
        assert next(told) == {"order": [], "jobs": [], "next": None}


@on_sqlite
def test_an_empty_page_is_told_too_and_a_wrong_question_before_the_stream(app: Penstock, serve: Serve) -> None:
    served = serve(worker=False)
    ada = served.client()
    with ada.stream("GET", "/api/jobs/live") as answer:
        assert next(changes(answer)) == {"order": [], "jobs": [], "next": None}
    for query, field in (("cursor=x", "cursor"), ("state=done", "state"), ("limit=101", "limit"), ("from=x", "from")):
        wrong = ada.get(f"/api/jobs/live?{query}")
        assert (wrong.status_code, wrong.json()["field"]) == (422, field), query
    assert served.client(None).get("/api/jobs/live").status_code == 401


@on_sqlite
def test_a_database_that_is_away_is_looked_at_again(
    app: Penstock, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    app.kind("held")(lambda item: None)
    ada = serve(worker=False).client()
    app.submit("held", {}, owner="ada")
    really, times = Jobs.page, 0

    def away(*arguments: Any, **named: Any) -> Any:
        nonlocal times
        times += 1
        if times < 3:
            raise StoreUnavailable("the database is away")
        return really(*arguments, **named)

    monkeypatch.setattr(Jobs, "page", away)
    with capture_logs() as logs, ada.stream("GET", "/api/jobs/live") as answer:
        assert len(next(changes(answer))["order"]) == 1
    assert [one["code"] for one in logs if one["event"].startswith("cannot read the list")] == ["DB_CONN_REFUSED"] * 2


@on_sqlite
def test_a_server_that_stops_lets_those_who_follow_a_list_go(
    app: Penstock, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_list, "LOOK_SECONDS", 3600.0)
    served = serve(worker=False)
    with served.client().stream("GET", "/api/jobs/live") as answer:
        told = changes(answer)
        assert next(told)["order"] == []
        served.server.handle_exit(15, None)
        assert list(told) == []
