"""``/api/jobs``: the status of a job over HTTP never lies, and says who stopped it and why it failed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from penstock import ItemContext, Job, JobContext, Penstock, Permanent
from penstock.http.jobs.schemas import HistoryLine, JobKilled, JobListed, JobStatusResponse
from tests.http.conftest import Served
from tests.http.shapes import read_as

PATIENCE = 30.0
Serve = Callable[..., Served]


def finished(app: Penstock, job: Job) -> Job:
    """The job once it is over."""
    done = app.jobs.wait(job.id, timeout=PATIENCE, every=0.01)
    assert done.finished, done.state
    return done


def test_a_coordinator_is_running_until_its_last_item_and_its_finalizer_are_done(app: Penstock, serve: Serve) -> None:
    gate = threading.Event()

    @app.kind("thumbnails")
    class Thumbnails:
        def plan(self, job: JobContext) -> list[int]:
            return list(range(250))

        async def process(self, item: ItemContext) -> int:
            return int(item.input)

        def finalize(self, job: JobContext) -> dict[str, Any]:
            gate.wait(PATIENCE)
            return {"status": "completed", "processed": 250, "errors": 0}

    ada = serve().client()
    job = app.submit("thumbnails", {}, owner="ada").job
    seen: list[dict[str, Any]] = []
    while not seen or seen[-1]["progress"]["current"] < 250:
        seen.append(ada.get(f"/api/jobs/{job.id}").json())
    assert {one["status"] for one in seen} <= {"queued", "running"}
    last = seen[-1]
    assert (last["status"], last["celery_status"], last["progress"]["percent"]) == ("running", "SUCCESS", 99.9)
    assert (last["progress"]["batches_completed"], last["progress"]["batches_total"]) == (3, 3)
    percents = [one["progress"]["percent"] for one in seen]
    assert percents == sorted(percents)
    gate.set()
    finished(app, job)
    done = ada.get(f"/api/jobs/{job.id}").json()
    read_as(JobStatusResponse, done)
    assert (done["status"], done["progress"]["percent"], done["progress"]["message"]) == (
        "completed", 100.0, "Completed successfully",
    )  # fmt: skip
    assert done["result"] == {"status": "completed", "processed": 250, "errors": 0}
    assert done["progress"]["eta_seconds"] is None


def test_a_job_that_is_killed_says_who_did_it_when_and_why(app: Penstock, serve: Serve) -> None:
    started = threading.Event()

    @app.kind("endless")
    async def endless(item: ItemContext) -> None:
        started.set()
        await asyncio.Event().wait()

    ada = serve().client()
    job = app.submit("endless", items=list(range(3)), owner="ada").job
    assert started.wait(PATIENCE)
    running = ada.get(f"/api/jobs/{job.id}").json()
    assert running["status"] == "running"
    assert "cancel" in running["actions"]
    answer = ada.delete(f"/api/jobs/{job.id}", params={"reason": "changed my mind"})
    assert answer.status_code == 200
    read_as(JobKilled, answer.json())
    for killed in (answer.json(), ada.get(f"/api/jobs/{job.id}").json()):
        assert (killed["status"], killed["killed_by"], killed["killed_reason"]) == ("killed", "user", "changed my mind")
        assert killed["killed_at"]
        assert killed["progress_at_kill"] == {
            "processed": 0, "total": 3, "batches_completed": 0, "batches_total": 1,
        }  # fmt: skip
        assert killed["celery_status"] == "REVOKED"
    again = ada.delete(f"/api/jobs/{job.id}")
    assert (again.status_code, again.json()["code"]) == (409, "TRANSITION_REFUSED")


def test_a_job_that_failed_says_why_where_and_how_far_it_was(app: Penstock, serve: Serve) -> None:
    @app.kind("broken")
    def broken(item: ItemContext) -> None:
        raise Permanent("no space left for the output", code="DISK_FULL")

    @app.kind("buggy", retries=0)
    def buggy(item: ItemContext) -> float:
        return 1 / 0

    served = serve()
    ada = served.client()
    job = finished(app, app.submit("broken", {}, owner="ada").job)
    failed = ada.get(f"/api/jobs/{job.id}").json()
    read_as(JobStatusResponse, failed)
    assert (failed["status"], failed["error"], failed["error_code"], failed["failed_phase"]) == (
        "failed", "no space left for the output", "DISK_FULL", "processing",
    )  # fmt: skip
    assert (failed["error_type"], failed["failure_type"]) == ("Permanent", "TERMINAL")
    assert failed["failed_at"]
    assert failed["progress_at_failure"]["total"] == 1
    job = finished(app, app.submit("buggy", {}, owner="ada").job)
    assert ada.get(f"/api/jobs/{job.id}").json()["stack_trace"] is None, "stack traces are for admins"
    seen = served.client("root", admin=True).get(f"/api/jobs/{job.id}").json()
    assert (seen["error_code"], "ZeroDivisionError" in seen["stack_trace"]) == ("PROCESSING_ERROR", True)


def test_a_job_with_failed_items_is_completed_with_errors(app: Penstock, serve: Serve) -> None:
    @app.kind("picky")
    async def picky(item: ItemContext) -> int:
        if item.input == 3:
            raise Permanent("three is not for us", code="THREE")
        return int(item.input)

    ada = serve().client()
    job = finished(app, app.submit("picky", items=[1, 2, 3], owner="ada").job)
    done = ada.get(f"/api/jobs/{job.id}").json()
    read_as(JobStatusResponse, done)
    assert (done["status"], done["completed_with_errors"]) == ("completed", True)
    assert done["error_details"] == [
        {"position": 3, "error": "three is not for us", "error_code": "THREE", "attempts": 1, "deaths": 0}
    ]
    assert done["progress"]["message"] == "Completed, 1 failed"


def test_a_list_is_newest_first_and_pages_by_its_link(app: Penstock, serve: Serve) -> None:
    app.kind("held")(lambda item: None)
    ada = serve(worker=False).client()
    ids = [str(app.submit("held", {}, owner="ada").job.id) for _ in range(5)]
    first = ada.get("/api/jobs", params={"limit": 2})
    for one in first.json():
        read_as(JobListed, one)
    pages = [[one["job_id"] for one in first.json()]]
    answer = first
    while "next" in answer.links:
        answer = ada.get(answer.links["next"]["url"])
        pages.append([one["job_id"] for one in answer.json()])
    assert [one for page in pages for one in page] == ids[::-1]
    assert ada.get("/api/jobs", params={"status": "queued", "job_type": "held"}).json() != []
    assert ada.get("/api/jobs", params={"status": "completed"}).json() == []
    wrong = ada.get("/api/jobs", params={"status": "done"})
    assert (wrong.status_code, wrong.json()["code"], wrong.json()["field"]) == (422, "INVALID_INPUT", "status")


@pytest.mark.parametrize("cursor", ["x", "!!!!", "AAAA", "_" * 32, "%00", "é"])
def test_a_cursor_that_is_not_ours_is_an_error_and_nothing_worse(app: Penstock, serve: Serve, cursor: str) -> None:
    ada = serve(worker=False).client()
    answer = ada.get("/api/jobs", params={"cursor": cursor})
    assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (422, "INVALID_INPUT", "cursor")


def test_the_history_names_every_transition(app: Penstock, serve: Serve) -> None:
    app.kind("good")(lambda item: 1)
    ada = serve().client()
    job = finished(app, app.submit("good", {}, owner="ada").job)
    lines = ada.get(f"/api/jobs/{job.id}/history").json()
    for line in lines:
        read_as(HistoryLine, line)
    assert [line["to_state"] for line in lines] == ["queued", "running", "succeeded"]
    assert ada.get(f"/api/jobs/{job.id}/history", params={"after": 2}).json() == lines[2:]


def test_another_users_job_is_not_there(app: Penstock, serve: Serve) -> None:
    app.kind("held")(lambda item: None)
    served = serve(worker=False)
    job = app.submit("held", {}, owner="ada").job
    mallory, root = served.client("mallory"), served.client("root", admin=True)
    for method, path in (
        ("GET", ""), ("DELETE", ""), ("GET", "/history"), ("GET", "/events"),
    ):  # fmt: skip
        theirs = mallory.request(method, f"/api/jobs/{job.id}{path}")
        nobodys = mallory.request(method, f"/api/jobs/{uuid4()}{path}")
        assert (theirs.status_code, nobodys.status_code) == (404, 404), path
        assert theirs.json()["code"] == nobodys.json()["code"] == "JOB_NOT_FOUND"
    assert mallory.get("/api/jobs").json() == []
    assert [one["job_id"] for one in root.get("/api/jobs").json()] == [str(job.id)]
    killed = root.delete(f"/api/jobs/{job.id}").json()
    assert (killed["status"], killed["killed_by"]) == ("killed", "user")
    assert app.jobs.history(job.id)[-1].actor_id == "root"
