"""Schedules over HTTP, for admins, and jobs that are submitted for later."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from pydantic import BaseModel

from penstock import Penstock
from penstock.app import Schedule
from penstock.operations.schedules import declare
from tests.http.conftest import Served, on_sqlite

Serve = Callable[..., Served]
HOUR = timedelta(hours=1)
pytestmark = on_sqlite


class Of(BaseModel):
    """What a report is about."""

    of: str


@pytest.fixture
def scheduled(app: Penstock) -> Penstock:
    """A kind that takes params, and a schedule of it."""

    @app.kind("report")
    class Report:
        params_schema = Of

        def process(self, item: object) -> None: ...

    nightly = Schedule("nightly", "0 3 * * *", "report", {"of": "day"}, zone="Europe/Berlin")
    app.store.write(partial(declare, schedules=[nightly], max_bytes=1_000))
    return app


def test_an_admin_sees_pauses_resumes_runs_and_removes(scheduled: Penstock, serve: Serve) -> None:
    root = serve(worker=False).client("root", admin=True)
    [shown] = root.get("/api/schedules").json()
    assert (shown["name"], shown["cron"], shown["zone"], shown["paused"]) == (
        "nightly", "0 3 * * *", "Europe/Berlin", False,
    )  # fmt: skip
    assert datetime.fromisoformat(shown["next_at"]) > datetime.now(UTC)
    paused = root.post("/api/schedules/nightly/pause").json()
    assert (paused["paused"], paused["next_at"]) == (True, None)
    run = root.post("/api/schedules/nightly/run")
    job = scheduled.jobs.get(run.json()["job_id"])
    assert (run.status_code, job.kind, job.params, job.title) == (202, "report", {"of": "day"}, "nightly")
    assert root.get(f"/api/jobs/{job.id}").json()["run_at"] is not None
    resumed = root.post("/api/schedules/nightly/resume").json()
    assert (resumed["next_at"], resumed["last_job_id"]) == (shown["next_at"], str(job.id))
    assert root.delete("/api/schedules/nightly").json()["name"] == "nightly"
    assert root.get("/api/schedules").json() == []


def test_they_are_for_admins_and_an_unknown_one_is_said(scheduled: Penstock, serve: Serve) -> None:
    served = serve(worker=False)
    for method, path in (("GET", ""), ("POST", "/nightly/run"), ("DELETE", "/nightly")):
        assert served.client(None).request(method, f"/api/schedules{path}").status_code == 401
        assert served.client().request(method, f"/api/schedules{path}").json()["code"] == "ADMINS_ONLY"
    unknown = served.client("root", admin=True).post("/api/schedules/weekly/pause")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "SCHEDULE_UNKNOWN")


def test_a_job_for_later_says_when(scheduled: Penstock, serve: Serve) -> None:
    ada = serve(worker=False).client()
    post = partial(ada.post, "/api/kinds/report/jobs", json={"of": "year"})
    accepted = post(params={"delay": "10m"}).json()
    shown = ada.get(f"/api/jobs/{accepted['job_id']}").json()
    run_at = datetime.fromisoformat(shown["run_at"])
    # Each is the moment of its own statement.
    assert timedelta(0) <= run_at - datetime.fromisoformat(shown["created_at"]) - timedelta(minutes=10) < HOUR
    assert (shown["state"], shown["progress"]["message"]) == ("created", f"Waiting until {run_at:%Y-%m-%d %H:%M} UTC")
    at = post(params={"run_at": "2099-01-01T00:00:00Z"}).json()
    assert ada.get(f"/api/jobs/{at['job_id']}").json()["run_at"].startswith("2099-01-01T00:00:00")


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"delay": "soon"}, "delay"),
        ({"delay": "-5m"}, "delay"),
        ({"run_at": "tomorrow"}, "run_at"),
        ({"run_at": "2099-01-01T00:00:00Z", "delay": "1s"}, "delay"),
    ],
)
def test_a_time_that_is_none_is_refused(scheduled: Penstock, serve: Serve, params: dict[str, str], field: str) -> None:
    refused = serve(worker=False).client().post("/api/kinds/report/jobs", json={"of": "year"}, params=params)
    assert (refused.status_code, refused.json()["field"]) == (422, field)
    assert scheduled.jobs.list() == []
