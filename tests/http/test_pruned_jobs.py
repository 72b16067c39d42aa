"""A job that was pruned: who could see it is told so, at every address and in a stream that is open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from penstock import ItemContext, Penstock
from penstock.http.jobs import live
from penstock.http.jobs.status import read_news
from tests.http.conftest import Served

Serve = Callable[..., Served]


def pruned(app: Penstock) -> str:
    """The id of a job of Ada's that is gone."""

    @app.kind("short", keep_for=0)
    def short(_item: ItemContext) -> int:
        return 1

    job = app.submit("short", owner="ada").job
    app.drain()
    assert [tuple(count) for count in app.system.prune()] == [("short", "succeeded", 1, 1)]
    return str(job.id)


def test_who_could_see_it_is_told_and_others_are_not(app: Penstock, serve: Serve) -> None:
    served = serve(worker=False)
    job_id = pruned(app)
    paths = ("", "/items", "/history", "/events", "/stream", "/export.csv", "/samples")
    for path in paths:
        answer = served.client().get(f"/api/jobs/{job_id}{path}")
        if answer.status_code == 404 and answer.json()["code"] == "NO_SUCH_ADDRESS":
            continue
        assert (answer.status_code, answer.json()["code"]) == (410, "JOB_PRUNED"), path
    changes = [served.client().post(f"/api/jobs/{job_id}/{verb}") for verb in ("pause", "commit", "reprocess")]
    assert {(answer.status_code, answer.json()["code"]) for answer in changes} == {(410, "JOB_PRUNED")}
    stranger = served.client("eve").get(f"/api/jobs/{job_id}")
    assert (stranger.status_code, stranger.json()["code"]) == (404, "JOB_NOT_FOUND")


def test_a_stream_that_is_open_says_so(app: Penstock, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two looks of the stream the job ends and goes."""

    @app.kind("gated", keep_for=0)
    def gated(_item: ItemContext) -> int:
        return 1

    job = app.submit("gated", owner="ada").job
    looks = []

    def look(*arguments: Any, **options: Any) -> Any:
        looks.append(arguments)
        if len(looks) == 2:
            app.jobs.cancel(job.id)
            assert app.system.prune()
        return read_news(*arguments, **options)

    monkeypatch.setattr(live, "read_news", look)
    with serve(worker=False).client().stream("GET", f"/api/jobs/{job.id}/events") as answer:
        lines = list(answer.iter_lines())
    assert [line for line in lines if line.startswith("event:")][-1] == "event: gone"
    assert any("JOB_PRUNED" in line for line in lines)


def test_what_was_pruned_is_counted_in_the_metrics(app: Penstock, serve: Serve) -> None:
    served = serve(worker=False)
    pruned(app)
    text = served.client().get("/metrics").text
    assert 'penstock_pruned_jobs_total{kind="short",state="succeeded"} 1.0' in text
