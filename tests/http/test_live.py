"""A job as it happens: server-sent events that can be resumed, and end."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import httpx2
import pytest
from sqlalchemy import insert, update
from structlog.testing import capture_logs

from penstock import ItemContext, Penstock, owner
from penstock.app import System
from penstock.errors import JobNotFound, StoreUnavailable
from penstock.http import change_feed
from penstock.http.jobs import live
from penstock.http.jobs.status import read_news
from penstock.store.tables import job_events, jobs
from tests.http.conftest import Served, on_sqlite

PATIENCE = 30.0
LINES = 2_100
NOW = datetime(2026, 1, 1, tzinfo=UTC)
Serve = Callable[..., Served]


def events(answer: httpx2.Response) -> Iterator[tuple[str, str | None, Any]]:
    """What comes: the event's name, its id and its data."""
    name, number, data = "message", None, ""
    for line in answer.iter_lines():
        if line.startswith("event: "):
            name = line[7:]
        elif line.startswith("id: "):
            number = line[4:]
        elif line.startswith("data: "):
            data = line[6:]
        elif not line and data:
            yield name, number, json.loads(data)
            name, number, data = "message", None, ""


def test_a_job_is_followed_from_its_first_line_to_its_end(app: Penstock, serve: Serve) -> None:
    gate = threading.Event()

    @app.kind("gated")
    def gated(item: ItemContext) -> int:
        gate.wait(PATIENCE)
        return 1

    ada = serve().client()
    job = app.submit("gated", items=[1, 2, 3], owner="ada").job
    seen: list[tuple[str, str | None, Any]] = []
    with ada.stream("GET", f"/api/jobs/{job.id}/events") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        for name, number, data in events(answer):
            seen.append((name, number, data))
            if name == "history" and data["to_state"] == "running":
                gate.set()
    assert seen[-1][0] == "end"
    history = [(number, data["to_state"]) for name, number, data in seen if name == "history"]
    assert history == [("1", "queued"), ("2", "running"), ("3", "succeeded")]
    progress = [data for name, _, data in seen if name == "progress"]
    assert progress[-1]["status"] == "completed"
    assert [one["progress"]["current"] for one in progress] == sorted(one["progress"]["current"] for one in progress)


def test_whoever_comes_back_misses_nothing_and_hears_nothing_twice(app: Penstock, serve: Serve) -> None:
    app.kind("quick")(lambda item: 1)
    ada = serve().client()
    job = app.submit("quick", {}, owner="ada").job
    app.jobs.wait(job.id, timeout=PATIENCE)

    def sequences(last: str | None) -> list[str | None]:
        headers = {} if last is None else {"Last-Event-ID": last}
        with ada.stream("GET", f"/api/jobs/{job.id}/events", headers=headers) as answer:
            return [number for name, number, _ in events(answer) if name == "history"]

    whole = sequences(None)
    assert whole == ["1", "2", "3"]
    assert sequences("2") == ["3"]
    assert sequences("3") == []
    for odd in ("", "x", "-1", "99999999999999999999", "1.5"):
        assert sequences(odd) in (whole, []), odd


def with_long_history(app: Penstock) -> UUID:
    """A canceled job whose history has more lines than are read at a time; its last one is the cancel."""
    app.kind("held")(lambda item: None)
    job = app.submit("held", {}, owner="ada").job
    line = {"job_id": job.id, "run": 1, "from_state": "paused", "to_state": "queued", "actor": "owner", "at": NOW}
    lines = [{**line, "sequence": number} for number in range(2, LINES)]
    app.in_transaction(lambda connection: connection.execute(insert(job_events), lines))
    with app.store.engine.begin() as connection:
        connection.execute(update(jobs).where(jobs.c.id == job.id).values(event_sequence=LINES - 1))
    app.acting_as(owner("ada")).jobs.cancel(job.id, reason="enough")
    return job.id


def test_a_long_history_comes_to_its_end_before_the_stream_does(app: Penstock, serve: Serve) -> None:
    ada = serve(worker=False).client()
    job_id = with_long_history(app)
    with ada.stream("GET", f"/api/jobs/{job_id}/events") as answer:
        seen = [(name, number, data) for name, number, data in events(answer)]
    assert [number for name, number, _ in seen if name == "history"] == [str(one) for one in range(1, LINES + 1)]
    last, progress, end = seen[-3:]
    assert (last[2]["to_state"], last[2]["reason"], end[0]) == ("canceled", "enough", "end")
    assert (progress[0], progress[2]["status"]) == ("progress", "killed")
    with ada.stream("GET", f"/api/jobs/{job_id}/events", headers={"Last-Event-ID": "1000"}) as answer:
        again = [number for name, number, _ in events(answer) if name == "history"]
    assert (again[0], again[-1], len(again)) == ("1001", str(LINES), LINES - 1000)


def test_a_long_history_is_read_page_by_page(app: Penstock, serve: Serve) -> None:
    ada = serve(worker=False).client()
    job_id = with_long_history(app)
    address: str | None = f"/api/jobs/{job_id}/history"
    pages = []
    while address is not None:
        answer = ada.get(address)
        pages.append([line["sequence"] for line in answer.json()])
        address = answer.links["next"]["url"] if "next" in answer.links else None
    assert [len(page) for page in pages] == [1000, 1000, LINES - 2000]
    assert [one for page in pages for one in page] == list(range(1, LINES + 1))
    some = ada.get(f"/api/jobs/{job_id}/history", params={"after": LINES - 2, "limit": 2})
    assert ([line["sequence"] for line in some.json()], some.links) == ([LINES - 1, LINES], {})
    assert ada.get(f"/api/jobs/{job_id}/history", params={"limit": 1001}).status_code == 422


def test_a_job_says_when_it_was_stopped_however_long_its_history_is(app: Penstock, serve: Serve) -> None:
    job_id = with_long_history(app)
    job = serve(worker=False).client().get(f"/api/jobs/{job_id}").json()
    assert datetime.fromisoformat(job["killed_at"]) == app.jobs.history(job_id)[-1].at


def test_a_stream_outlives_a_database_that_is_away_for_a_moment(
    app: Penstock, serve: Serve, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    app.kind("quick")(lambda item: 1)
    ada = serve().client()
    job = app.submit("quick", owner="ada").job
    real, failures = read_news, iter(range(2))

    def away(*given: Any, **named: Any) -> Any:
        if next(failures, None) is not None:
            raise StoreUnavailable("the database is away")
        return real(*given, **named)

    monkeypatch.setattr(live, "read_news", away)
    with ada.stream("GET", f"/api/jobs/{job.id}/events") as answer:
        seen = [name for name, _, _ in events(answer)]
    assert (seen[0], seen[-1]) == ("history", "end")
    assert next(failures, None) is None
    assert "Traceback" not in caplog.text


def test_a_server_that_stops_lets_those_who_listen_go(app: Penstock, serve: Serve) -> None:
    app.kind("held")(lambda item: None)
    served = serve(worker=False)
    ada = served.client()
    job = app.submit("held", {}, owner="ada").job
    with ada.stream("GET", f"/api/jobs/{job.id}/events") as answer:
        following = events(answer)
        assert next(following)[0] == "history"
        served.server.handle_exit(15, None)
        assert [name for name, _, _ in following if name != "progress"] == []


@on_sqlite
def test_one_unforeseen_error_silences_no_follower(
    app: Penstock, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_feed, "_PAUSE_AFTER_FAILURE_SECONDS", 0.01)
    app.kind("held")(lambda item: None)
    job = app.submit("held", {}, owner="ada").job
    ask, has_failed = System.change_marks, threading.Event()

    def fail_once(system: System, job_ids: Any) -> Any:
        if not has_failed.is_set():
            has_failed.set()
            raise RuntimeError("can't start new thread")
        return ask(system, job_ids)

    monkeypatch.setattr(System, "change_marks", fail_once)
    ada = serve(worker=False).client()
    with ada.stream("GET", f"/api/jobs/{job.id}/events") as answer:
        told = events(answer)
        next(told)
        assert has_failed.wait(PATIENCE)
        app.jobs.cancel(job.id)
        assert [name for name, _, _ in told][-1] == "end"


@on_sqlite
def test_a_stream_of_a_job_that_is_gone_ends(app: Penstock, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    app.kind("held")(lambda item: None)
    job = app.submit("held", {}, owner="ada").job
    ada = serve(worker=False).client()
    with ada.stream("GET", f"/api/jobs/{job.id}/events") as answer, capture_logs() as lines:
        told = events(answer)
        next(told)

        def gone(*_: Any, **__: Any) -> Any:
            raise JobNotFound(f"there is no job {job.id}")

        monkeypatch.setattr(live, "read_news", gone)
        app.jobs.pause(job.id)
        assert "end" not in [name for name, _, _ in told]
    assert not [line for line in lines if line["log_level"] == "error"]
