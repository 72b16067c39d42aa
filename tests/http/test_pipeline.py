"""The pipeline over HTTP: the job's answer, the export, kickoffs, what people do to a job, and what waits."""

from __future__ import annotations

import csv
import io
import itertools
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any
from zipfile import ZipFile

import httpx2
import pytest

from penstock import ItemContext, Job, JobContext, NotFound, Penstock, Permanent, Planned, Retryable, Settings
from penstock.http.items.schemas import ErrorGroupShown
from penstock.http.jobs.schemas import JobStatusResponse
from penstock.http.service import Service
from penstock.operations import export
from tests.http.conftest import Served, on_sqlite, serving
from tests.http.shapes import read_as
from tests.workbooks import read_workbook

PATIENCE = 30.0
Serve = Callable[..., Served]
HEADERS = ["row", "status", "sku", "title", "price", "attempts", "error_code", "error"]


def service_of(served: Served) -> Service:
    """The server's own things."""
    found: Service = served.server.config.app.state.penstock  # type: ignore[union-attr]
    return found


def mixed(app: Penstock, *, reprocess: bool = True) -> None:
    """A kind whose rows end in every way, by what their input says."""

    @app.kind("mixed", retries=1, backoff="1ms fixed", reprocess=reprocess)
    class Mixed:
        columns = ("sku", "title", "price")

        def plan(self, job: JobContext) -> list[Planned]:
            params: Any = job.params
            return [
                Planned({"how": how, "hidden": "input"}, {"sku": f"A-{number}", "title": "=1+1"})
                for number, how in enumerate(params["rows"], start=1)
            ]

        async def process(self, item: ItemContext) -> dict[str, Any]:
            given: Any = item.input
            if given["how"] == "broken":
                raise Permanent("+bad row", code="BROKEN")
            if given["how"] == "busy":
                raise Retryable("@busy", code="BUSY_SHOP")
            if given["how"] == "missing":
                raise NotFound("no such thing")
            return {"sku": f"A-{item.position}", "title": "=1+1", "price": item.position * 1.5}


def over(app: Penstock, *rows: str) -> Job:
    """A job of these rows, done."""
    job = app.submit("mixed", {"rows": list(rows), "mapping": {"sku": "Article"}}, owner="ada").job
    assert app.drain(timeout=PATIENCE)
    return app.jobs.get(job.id)


def ids(client: httpx2.Client, job: Job) -> list[str]:
    """The ids of a job's rows, in order."""
    return [one["id"] for one in client.get(f"/api/jobs/{job.id}/items").json()["items"]]


def problem(answer: httpx2.Response) -> tuple[int, str]:
    """What is wrong."""
    return answer.status_code, answer.json()["code"]


def test_a_job_says_each_thing_once(app: Penstock, serve: Serve) -> None:
    mixed(app)
    job = over(app, "fine", "broken", "missing")
    answer = serve(worker=False).client().get(f"/api/jobs/{job.id}").json()
    assert [name for name in answer if name != name.lower()] == [], "one spelling, that of the columns"
    assert "failed" not in answer["progress"]


def test_a_job_has_the_fields_of_both_families(app: Penstock, serve: Serve) -> None:
    mixed(app)
    job = over(app, "fine", "broken", "missing")
    answer = serve(worker=False).client().get(f"/api/jobs/{job.id}").json()
    read_as(JobStatusResponse, answer)
    assert (answer["job_id"], answer["status"], answer["completed_with_errors"]) == (str(job.id), "completed", True)
    assert (answer["progress"]["current"], answer["progress"]["total"]) == (3, 3)
    of_pipeline: dict[str, Any] = {
        "job_id": str(job.id), "job_type": "mixed", "queue_state": "DONE", "user_id": "ada", "file_id": None,
        "total_items": 3, "processed_items": 3, "failed_items": 1, "not_found_items": 1, "skipped_items": 0,
        "deaths": 0,
        "mapping": {"sku": "Article"}, "controllers": [], "attempts": job.attempts, "last_error": job.last_error,
    }  # fmt: skip
    assert {name: answer[name] for name in of_pipeline} == of_pipeline
    assert answer["last_heartbeat"] is not None


@on_sqlite
def test_a_job_that_runs_says_how_its_workers_are_set(app: Penstock, serve: Serve) -> None:
    gate, sampled = threading.Event(), threading.Event()

    @app.kind("gated", concurrency=1)
    class Gated:
        def process(self, item: ItemContext) -> None:
            if item.position == 2:
                sampled.set()
                gate.wait(PATIENCE)

        def gauges(self) -> dict[str, Any]:
            return {"providers": {"shop": {"throttle_rate": 0.25}}}

    ada = serve().client()
    job = app.submit("gated", items=[1, 2], owner="ada").job
    assert sampled.wait(PATIENCE)
    shown: list[dict[str, Any]] = []
    answer: dict[str, Any] = {}
    deadline, pause = time.monotonic() + PATIENCE, threading.Event()
    while not shown and time.monotonic() < deadline:
        answer = ada.get(f"/api/jobs/{job.id}").json()
        shown = answer["controllers"]
        pause.wait(0.05)
    gate.set()
    assert (answer["queue_state"], len(shown)) == ("RUNNING", 1)
    [one] = shown
    assert one["claim_size"] >= 1
    assert one["concurrency"] == 1
    assert one["ingest_rows"] >= 1
    assert one["lease_seconds"] > 0
    assert {"items_sec", "error_rate", "db_latency_ewma", "pool_wait_ms", "ingest_ms"} <= one["signals"].keys()
    assert one["gauges"] == {"providers": {"shop": {"throttle_rate": 0.25}}}


def csv_lines(answer: httpx2.Response) -> list[list[str]]:
    """A CSV file's lines."""
    assert answer.status_code == 200, answer.text
    return list(csv.reader(io.StringIO(answer.content.decode("utf-8-sig"), newline="")))


def sheet_lines(answer: httpx2.Response) -> list[list[Any]]:
    """A workbook's lines; nothing in it is a formula."""
    assert answer.status_code == 200, answer.text
    with ZipFile(io.BytesIO(answer.content)) as book:
        for name in book.namelist():
            assert b"<f>" not in book.read(name), name
            assert b"<f " not in book.read(name), name
    [lines] = read_workbook(answer.content).values()
    return lines


def test_an_export_has_what_the_grid_has_cell_by_cell(app: Penstock, serve: Serve) -> None:
    mixed(app)
    job = over(app, "fine", "broken", "missing", "busy", "fine")
    ada = serve(worker=False).client()
    again = {"scope": "items", "itemIds": ids(ada, job)[-1:], "statuses": ["DONE"]}
    assert ada.post(f"/api/jobs/{job.id}/reprocess", json=again).json()["queue_state"] == "QUEUED"
    address = f"/api/jobs/{job.id}/export"
    plain = ada.post(address)
    assert plain.headers["content-type"] == "text/csv; charset=utf-8"
    assert plain.headers["content-disposition"] == f'attachment; filename="job-{job.id}.csv"'
    lines = csv_lines(plain)
    assert lines == [
        HEADERS,
        ["1", "DONE", "A-1", "'=1+1", "1.5", "1", "", ""],
        ["2", "ERROR", "A-2", "'=1+1", "", "1", "BROKEN", "'+bad row"],
        ["3", "NOT_FOUND", "A-3", "'=1+1", "", "1", "NOT_FOUND", "no such thing"],
        ["4", "ERROR", "A-4", "'=1+1", "", "2", "BUSY_SHOP", "'@busy"],
        ["5", "PENDING", "A-5", "'=1+1", "", "1", "", ""],
    ]
    book = ada.post(address, params={"format": "xlsx"})
    assert book.headers["content-disposition"] == f'attachment; filename="job-{job.id}.xlsx"'
    grid = ada.get(f"/api/jobs/{job.id}/items").json()
    shown = [
        [one["position"], one["status"], *one["cells"].values(), one["attempts"], one["errorCode"], one["lastError"]]
        for one in grid["items"]
    ]
    assert sheet_lines(book) == [HEADERS, *shown]
    in_text = [["" if cell is None else str(cell) for cell in row] for row in shown]
    assert [[cell.removeprefix("'") for cell in row] for row in lines[1:]] == in_text
    assert ada.post(address, params={"format": "pdf"}).json()["field"] == "format"


@on_sqlite
def test_an_export_of_a_kind_without_columns_or_of_nobodys(app: Penstock, serve: Serve, settings: Settings) -> None:
    mixed(app)
    app.kind("plain")(lambda item: {"n": item.input})
    plain, known = app.submit("plain", items=[1, 2], owner="ada").job, over(app, "fine")
    ada = serve(worker=False).client()
    headers = ["row", "status", "result", "attempts", "error_code", "error"]
    address = f"/api/jobs/{plain.id}/export"
    assert csv_lines(ada.post(address)) == [
        headers, ["1", "DONE", '{"n":1}', "1", "", ""], ["2", "DONE", '{"n":2}', "1", "", ""],
    ]  # fmt: skip
    assert sheet_lines(ada.post(address, params={"format": "xlsx"}))[1][2] == '{"n":1}'
    stranger = Penstock(settings=settings)
    with serving(stranger, worker=False) as served:
        eve = served.client()
        assert csv_lines(eve.post(f"/api/jobs/{known.id}/export"))[0] == headers
        [line] = sheet_lines(eve.post(f"/api/jobs/{known.id}/export", params={"format": "xlsx"}))[1:]
        assert (line[1], "A-1" in line[2]) == ("DONE", True)
        page = eve.get(f"/api/jobs/{known.id}/items").json()
        assert (page["columns"], list(page["items"][0]["cells"])) == (["result"], ["result"])
        assert "reprocess" not in eve.get(f"/api/jobs/{known.id}").json()["actions"]
    stranger.close()


@on_sqlite
@pytest.mark.parametrize("file_format", ["csv", "xlsx"])
def test_an_export_begins_before_its_rows_are_read_and_ends_when_nobody_listens(
    app: Penstock, serve: Serve, monkeypatch: pytest.MonkeyPatch, file_format: str
) -> None:
    app.kind("plain")(lambda item: None)
    job = app.submit("plain", items=[1], owner="ada").job
    gate, closed = threading.Event(), threading.Event()

    def endless_rows(*_: object) -> Iterator[list[Any]]:
        """The rows of a job without an end; the later ones wait until the first bytes are there."""
        try:
            for number in itertools.count(1):
                assert number < 4_000 or gate.wait(PATIENCE)
                yield [number, "DONE", random.Random(number).randbytes(100).hex(), 1, None, None]
        finally:
            closed.set()

    monkeypatch.setattr(export, "export_rows", endless_rows)
    served = serve(worker=False)
    ada, service = served.client(), service_of(served)
    with ada.stream("POST", f"/api/jobs/{job.id}/export", params={"format": file_format}) as answer:
        assert answer.status_code == 200
        assert next(answer.iter_raw())
        gate.set()
    assert closed.wait(PATIENCE), "the server reads on although nobody listens"
    assert all(service.exports._free.acquire(timeout=PATIENCE) for _ in range(4)), "its slot is not free again"


@on_sqlite
def test_exports_to_workbooks_have_their_slots(app: Penstock, serve: Serve) -> None:
    app.kind("plain")(lambda item: None)
    job = app.submit("plain", items=[1], owner="ada").job
    served = serve(worker=False)
    ada, one = served.client(), service_of(served)
    with ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(one.exports.take())
        answer = ada.post(f"/api/jobs/{job.id}/export", params={"format": "xlsx"})
        assert (*problem(answer), answer.headers["retry-after"]) == (429, "TOO_MANY_REQUESTS", "1")
        assert ada.post(f"/api/jobs/{job.id}/export").status_code == 200
    assert ada.post(f"/api/jobs/{job.id}/export", params={"format": "xlsx"}).status_code == 200


def test_kickoffs_alone_bring_a_job_to_its_end(app: Penstock, serve: Serve) -> None:
    mixed(app)
    ada = serve(worker=False).client()
    job = app.submit("mixed", {"rows": ["fine"] * 200}, owner="ada").job
    answers = []
    for _ in range(20):
        answer = ada.post(f"/api/jobs/{job.id}/kickoff", params={"durationMs": 1000})
        assert answer.status_code == 200, answer.text
        answers.append(answer.json())
    read_as(JobStatusResponse, answers[-1])
    assert (answers[-1]["queue_state"], answers[-1]["processed_items"]) == ("DONE", 200)
    done = [one["processed_items"] for one in answers]
    assert done == sorted(done)


@on_sqlite
def test_a_kickoff_has_bounds(app: Penstock, serve: Serve) -> None:
    mixed(app)
    served = serve(worker=False)
    ada, one = served.client(), service_of(served)
    job = app.submit("mixed", {"rows": ["fine"]}, owner="ada").job
    address = f"/api/jobs/{job.id}/kickoff"
    for wrong in ("99", "30001", "-1", "soon", "1e3"):
        answer = ada.post(address, params={"durationMs": wrong})
        assert (*problem(answer), answer.json()["field"]) == (422, "INVALID_INPUT", "durationMs"), wrong
    with ExitStack() as stack:
        for _ in range(8):
            stack.enter_context(one.kickoffs.take())
        answer = ada.post(address, params={"durationMs": 100})
        assert (*problem(answer), answer.headers["retry-after"]) == (429, "TOO_MANY_REQUESTS", "1")
    ada.post(f"/api/jobs/{job.id}/pause")
    assert problem(ada.post(address)) == (409, "TRANSITION_REFUSED")
    assert app.jobs.get(job.id).progress.processed == 0
    ada.post(f"/api/jobs/{job.id}/resume")
    assert ada.post(address).json()["queue_state"] == "DONE"


def test_the_history_keeps_why_somebody_paused(app: Penstock, serve: Serve) -> None:
    mixed(app)
    ada = serve(worker=False).client()
    job = app.submit("mixed", {"rows": ["fine"]}, owner="ada").job
    paused = ada.post(f"/api/jobs/{job.id}/pause", json={"reason": "the shop is closed"})
    assert (paused.status_code, paused.json()["queue_state"]) == (200, "PAUSED")
    assert problem(ada.post(f"/api/jobs/{job.id}/pause")) == (409, "TRANSITION_REFUSED")
    resumed = ada.post(f"/api/jobs/{job.id}/resume", json={"reason": "it is open again"})
    assert (resumed.status_code, resumed.json()["queue_state"]) == (200, "QUEUED")
    reasons = [(one.to_state.value, one.actor_id, one.reason) for one in app.jobs.history(job.id)][-2:]
    assert reasons == [("paused", "ada", "the shop is closed"), ("queued", "ada", "it is open again")]
    long = ada.post(f"/api/jobs/{job.id}/pause", json={"reason": "x" * 2001})
    assert (*problem(long), long.json()["field"]) == (422, "INVALID_INPUT", "reason")


def statuses(client: httpx2.Client, job: Job) -> list[str]:
    """How a job's rows stand, in order."""
    return [one["status"] for one in client.get(f"/api/jobs/{job.id}/items").json()["items"]]


def test_rows_run_again_within_the_guardrails(app: Penstock, serve: Serve) -> None:
    mixed(app)
    ada = serve(worker=False).client()
    rows = ("fine", "broken", "missing", "busy")
    address = "/api/jobs/{}/reprocess"

    # What was not found has one try, what failed has two: nothing has one left but what failed for good.
    job = over(app, *rows)
    assert problem(ada.post(address.format(job.id))) == (409, "NOTHING_TO_REPROCESS")
    answer = ada.post(address.format(job.id), json={"permanent": True, "reason": "prices changed"})
    assert app.jobs.history(job.id)[-1].reason == "prices changed"
    assert statuses(ada, job) == ["DONE", "PENDING", "NOT_FOUND", "ERROR"]
    assert (answer.json()["failed_items"], answer.json()["total_items"]) == (1, 4)

    job = over(app, *rows)
    answer = ada.post(address.format(job.id), json={"resetAttempts": True})
    assert (answer.status_code, answer.json()["processed_items"], answer.json()["not_found_items"]) == (200, 2, 0)
    assert statuses(ada, job) == ["DONE", "ERROR", "PENDING", "PENDING"]

    job = over(app, *rows)
    chosen = ids(ada, job)
    asked = {"scope": "items", "itemIds": chosen[:2], "statuses": ["DONE", "ERROR"], "permanent": True}
    ada.post(address.format(job.id), json=asked)
    assert statuses(ada, job) == ["PENDING", "PENDING", "NOT_FOUND", "ERROR"]

    job = over(app, *rows)
    asked = {"statuses": ["DONE", "ERROR"], "errorCodes": ["BROKEN", None], "permanent": True, "resetAttempts": True}
    ada.post(address.format(job.id), json=asked)
    assert statuses(ada, job) == ["PENDING", "PENDING", "NOT_FOUND", "ERROR"]


@on_sqlite
def test_what_is_not_reprocessed_says_why(app: Penstock, serve: Serve) -> None:
    mixed(app)
    app.kind("final", retries=0)(lambda item: 1 / 0)
    ada = serve(worker=False).client()
    once = app.submit("final", {}, owner="ada").job
    job, other = over(app, "broken", "busy"), over(app, "missing")
    address = f"/api/jobs/{job.id}/reprocess"
    assert problem(ada.post(f"/api/jobs/{once.id}/reprocess")) == (409, "REPROCESS_NOT_ALLOWED")
    assert problem(ada.post(address)) == (409, "NOTHING_TO_REPROCESS")
    # Rows of another job are passed over.
    theirs = {"scope": "items", "itemIds": ids(ada, other)}
    assert problem(ada.post(address, json=theirs)) == (409, "NOTHING_TO_REPROCESS")
    assert statuses(ada, other) == ["NOT_FOUND"]
    for body, field in (
        ({"scope": "items"}, "itemIds"),
        ({"scope": "job", "itemIds": ["1"]}, "itemIds"),
        ({"scope": "items", "itemIds": ["1"] * 10_001}, "itemIds"),
        ({"scope": "items", "itemIds": ["x"]}, "itemIds"),
        ({"scope": "items", "itemIds": ["1" * 19]}, "itemIds"),
        ({"scope": "items", "itemIds": ["²"]}, "itemIds"),
        ({"scope": "items", "itemIds": []}, "itemIds"),
        ({"scope": "rows"}, "scope"),
        ({"statuses": ["OPEN"]}, "statuses.0"),
        ({"statuses": []}, "statuses"),
        ({"errorCodes": []}, "errorCodes"),
        ({"errorCodes": ["X"] * 101}, "errorCodes"),
        ({"statuses": ["PENDING"]}, "statuses"),
    ):
        answer = ada.post(address, json=body)
        assert (*problem(answer), answer.json()["field"]) == (422, "INVALID_INPUT", field), (body, answer.text)
    mixture = {"scope": "items", "itemIds": [*ids(ada, other), *ids(ada, job)], "permanent": True}
    assert ada.post(address, json=mixture).status_code == 200
    assert (statuses(ada, job), statuses(ada, other)) == (["PENDING", "ERROR"], ["NOT_FOUND"])


@on_sqlite
def test_rows_that_used_up_their_tries_run_again_when_they_are_given_new_ones(app: Penstock, serve: Serve) -> None:
    mixed(app)
    job = over(app, "broken", "busy")
    ada = serve(worker=False).client()
    ada.post(f"/api/jobs/{job.id}/reprocess", json={"resetAttempts": True})
    assert statuses(ada, job) == ["ERROR", "PENDING"]


def test_what_went_wrong_is_told_by_code(app: Penstock, serve: Serve) -> None:
    mixed(app)
    job = over(app, "broken", "missing", "fine", "broken", "busy", "broken", "missing")
    found = serve(worker=False).client().get(f"/api/jobs/{job.id}/errors").json()
    for one in found:
        read_as(ErrorGroupShown, one)
    assert found == [
        {"status": "ERROR", "errorCode": "BROKEN", "count": 3, "example": "+bad row"},
        {"status": "NOT_FOUND", "errorCode": "NOT_FOUND", "count": 2, "example": "no such thing"},
        {"status": "ERROR", "errorCode": "BUSY_SHOP", "count": 1, "example": "@busy"},
    ]
