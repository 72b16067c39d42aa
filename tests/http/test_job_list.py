"""The list of jobs over HTTP: what it shows, what it is asked, and results that wait for their owner."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import update

from penstock import Penstock
from penstock.http.jobs.schemas import JobListed, JobStatusResponse
from penstock.operations import read_jobs
from penstock.store.tables import jobs
from tests.http.conftest import Served, on_sqlite
from tests.http.shapes import read_as

PATIENCE = 30.0
Serve = Callable[..., Served]


def test_a_list_is_asked_for_in_many_ways(app: Penstock, serve: Serve) -> None:
    app.kind("held")(lambda item: None)
    app.kind("other")(lambda item: None)
    served = serve(worker=False)
    ada, root = served.client(), served.client("root", admin=True)
    paused = app.submit("held", {}, owner="ada", title="100%.csv").job
    app.jobs.pause(paused.id)
    app.submit("other", {}, owner="ada", title="summer.png")
    app.submit("held", {}, owner="bob", title="bobs.csv")
    [_, shown] = ada.get("/api/jobs").json()
    read_as(JobListed, shown)
    assert (shown["title"], shown["state"], shown["status"], shown["user_id"]) == (
        "100%.csv",
        "paused",
        "queued",
        "ada",
    )
    assert (shown["run"], shown["started_at"], shown["completed_at"]) == (1, None, None)

    def titles(client: Any = ada, **params: str) -> list[str]:
        answer = client.get("/api/jobs", params=params)
        assert answer.status_code == 200, answer.text
        return [one["title"] for one in answer.json()]

    soon = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    assert titles(state="paused") == ["100%.csv"]
    assert titles(state="paused, queued") == titles(status="queued") == ["summer.png", "100%.csv"]
    assert titles(state="paused,running", status="queued") == ["100%.csv"]
    assert titles(state="running", status="queued") == []
    assert titles(q="%") == titles(q="100") == ["100%.csv"]
    assert titles(q="bobs") == []
    assert titles(root, q="BOB") == ["bobs.csv"]
    assert titles(root, q=str(paused.id)[-8:]) == ["100%.csv"]
    assert titles(**{"from": "2026-01-01", "to": soon}) == ["summer.png", "100%.csv"]
    assert titles(**{"from": soon}) == titles(to="2026-01-01T00:00:00+02:00") == []
    # Clients send every filter they have, set or not.
    nothing = dict.fromkeys(("status", "state", "job_type", "q", "from", "to", "cursor", "limit"), "")
    assert titles(**nothing) == ["summer.png", "100%.csv"]
    for query, field in (
        ("state=done", "state"), ("state=paused,", "state"), ("from=soon", "from"), ("to=x", "to"),
        ("q=" + "x" * 256, "q"), ("limit=101", "limit"), ("cursor=x", "cursor"),
    ):  # fmt: skip
        wrong = ada.get(f"/api/jobs?{query}")
        assert (wrong.status_code, wrong.json()["code"], wrong.json()["field"]) == (422, "INVALID_INPUT", field), query


def test_failed_and_killed_are_asked_for_by_the_words_they_are_shown_by(
    app: Penstock, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    app.kind("held")(lambda item: None)
    ada = serve(worker=False).client()
    broken, timed_out, canceled = (app.submit("held", {}, owner="ada", title=f"{n}").job for n in range(3))
    app.jobs.cancel(canceled.id)
    with app.store.engine.begin() as connection:
        for job, killed_by in ((broken, None), (timed_out, "timeout")):
            connection.execute(
                update(jobs)
                .where(jobs.c.id == job.id)
                .values(state="failed", killed_by=killed_by, error_code="ANY", completed_at=job.created_at)
            )

    def shown(**params: str) -> list[tuple[str, str]]:
        return [(one["title"], one["status"]) for one in ada.get("/api/jobs", params=params).json()]

    assert shown(status="failed") == [("0", "failed")]
    assert shown(status="killed") == [("2", "killed"), ("1", "killed")]
    assert shown(status="killed", state="failed") == [("1", "killed")]
    assert shown(status="killed", q="1") == [("1", "killed")]
    assert shown(status="failed", q="1") == []
    assert shown(state="failed") == [("1", "killed"), ("0", "failed")]
    # What is looked through without being shown has a bound, as in a search.
    monkeypatch.setattr(read_jobs, "MAX_SEARCHED", 1)
    first = ada.get("/api/jobs", params={"status": "failed"})
    assert first.json() == []
    assert [one["title"] for one in ada.get(first.links["next"]["url"]).json()] == ["0"]


@on_sqlite
def test_an_empty_page_of_a_search_leads_on(app: Penstock, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_jobs, "MAX_SEARCHED", 2)
    app.kind("held")(lambda item: None)
    ada = serve(worker=False).client()
    for title in ("red", "-", "-"):
        app.submit("held", {}, owner="ada", title=title)
    first = ada.get("/api/jobs", params={"q": "red"})
    assert (first.status_code, first.json()) == (200, [])
    second = ada.get(first.links["next"]["url"])
    assert [one["title"] for one in second.json()] == ["red"]
    assert "next" not in second.links


def test_a_result_waits_for_its_owner_to_use_it_or_give_it_up(app: Penstock, serve: Serve) -> None:
    app.kind("kept", abandon_after="3h")(lambda item: 1)
    app.kind("plain")(lambda item: 1)
    served = serve(worker=False)
    ada, bob = served.client(), served.client("bob")
    used, unwanted, plain = (app.submit(kind, {}, owner="ada").job for kind in ("kept", "kept", "plain"))
    before = ada.get(f"/api/jobs/{used.id}").json()
    assert (before["has_mailbox"], before["expires_at"]) == (True, None)
    assert app.drain(timeout=PATIENCE)
    waiting = ada.get(f"/api/jobs/{used.id}").json()
    read_as(JobStatusResponse, waiting)
    passed = datetime.fromisoformat(waiting["expires_at"]) - datetime.fromisoformat(waiting["completed_at"])
    assert (waiting["has_mailbox"], passed) == (True, timedelta(hours=3))
    other = ada.get(f"/api/jobs/{plain.id}").json()
    assert (other["has_mailbox"], other["expires_at"]) == (False, None)

    theirs = bob.post(f"/api/jobs/{used.id}/commit")
    assert (theirs.status_code, theirs.json()["code"]) == (404, "JOB_NOT_FOUND")
    committed = ada.post(f"/api/jobs/{used.id}/commit", json={"reason": "it is in the book"})
    assert (committed.status_code, committed.json()["state"]) == (200, "committed")
    assert committed.json()["expires_at"] is None
    abandoned = ada.post(f"/api/jobs/{unwanted.id}/abandon", json={"reason": "not my taste"})
    assert (abandoned.status_code, abandoned.json()["state"]) == (200, "abandoned")
    for job, reason in ((used, "it is in the book"), (unwanted, "not my taste")):
        line = app.jobs.history(job.id)[-1]
        assert (line.actor_id, line.reason) == ("ada", reason)
    for again in (f"/api/jobs/{used.id}/abandon", f"/api/jobs/{unwanted.id}/commit"):
        refused = ada.post(again)
        assert (refused.status_code, refused.json()["code"]) == (409, "TRANSITION_REFUSED")
