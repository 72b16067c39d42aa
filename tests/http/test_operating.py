"""For those who look after a server: health, readiness, metrics, request ids, the reference, mounting."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import httpx2
import pytest
from fastapi import APIRouter, FastAPI
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from starlette.responses import StreamingResponse
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

from penstock import Penstock, Settings
from penstock.app import Jobs, System
from penstock.errors import PenstockError, StatementRefused, StoreUnavailable
from penstock.http.errors import STATUSES, status_of
from penstock.operations.samples import keep_samples
from penstock.server import create_app
from tests.http.conftest import Served, on_sqlite, serving

Serve = Callable[..., Served]


def test_alive_and_ready(app: Penstock, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = serve(worker=False).client(None)
    assert nobody.get("/healthz").json() == {"status": "ok"}
    assert nobody.get("/readyz").json() == {"status": "ok"}

    def away(self: System) -> None:
        raise StoreUnavailable("the database is not available: connection refused")

    monkeypatch.setattr(System, "check_database", away)
    answer = nobody.get("/readyz")
    assert (answer.status_code, answer.json()["code"], answer.headers["retry-after"]) == (503, "DB_CONN_REFUSED", "1")
    assert nobody.get("/healthz").status_code == 200


def test_metrics_count_jobs_and_requests_by_route(app: Penstock, serve: Serve) -> None:
    app.kind("held")(lambda item: None)
    served = serve(worker=False)
    job = app.submit("held", {}, owner="ada").job
    served.client().get(f"/api/jobs/{job.id}")
    served.client().get("/nowhere")
    text = served.client(None).get("/metrics").text
    assert 'penstock_jobs{kind="held",state="queued"} 1.0' in text
    assert 'penstock_http_request_seconds_count{method="GET",route="/api/jobs/{job_id}",status="200"} 1.0' in text
    assert str(job.id) not in text


def test_metrics_show_how_old_the_oldest_items_are_and_what_went_wrong(app: Penstock, serve: Serve) -> None:
    app.kind("held")(lambda item: None)
    served = serve(worker=False)
    app.submit("held", {})
    data = {"late_outcomes": 2, "store_errors": 3}
    app.store.write(lambda one: keep_samples(one, "worker-1", {"held": data}))
    text = served.client(None).get("/metrics").text
    assert 'penstock_oldest_waiting_item_seconds{kind="held"}' in text
    assert 'penstock_oldest_running_item_seconds{kind="held"} 0.0' in text
    assert "penstock_expired_leases 0.0" in text
    assert 'penstock_late_outcomes_total{kind="held",worker="worker-1"} 2.0' in text
    assert 'penstock_store_errors_total{kind="held",worker="worker-1"} 3.0' in text


def test_a_request_has_an_id(app: Penstock, serve: Serve) -> None:
    ada = serve(worker=False).client()
    assert ada.get("/healthz", headers={"X-Request-ID": "mine-1"}).headers["x-request-id"] == "mine-1"
    for odd in ("", "a b", "x" * 65, "<script>"):
        given = ada.get("/healthz", headers={"X-Request-ID": odd}).headers["x-request-id"]
        assert given != odd
        assert len(given) == 32
    problem = ada.get("/api/jobs/nonsense", headers={"X-Request-ID": "mine-2"})
    assert (problem.status_code, problem.json()["code"], problem.json()["request_id"]) == (
        422,
        "INVALID_INPUT",
        "mine-2",
    )


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nowhere", 404, "NO_SUCH_ADDRESS"),
        ("PUT", "/api/jobs", 405, "METHOD_NOT_ALLOWED"),
        ("GET", "/api/jobs?limit=0", 422, "INVALID_INPUT"),
        ("GET", "/api/jobs?limit=many", 422, "INVALID_INPUT"),
        ("GET", "/api/jobs/nonsense", 422, "INVALID_INPUT"),
    ],
)
def test_every_problem_has_the_same_body(
    app: Penstock, serve: Serve, method: str, path: str, status: int, code: str
) -> None:
    answer = serve(worker=False).client().request(method, path)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert sorted(answer.json()) == ["code", "detail", "field", "message", "request_id"]
    assert answer.json()["detail"] == answer.json()["message"]


def test_a_mistake_of_ours_tells_nothing_but_where_to_look(
    app: Penstock, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(self: Jobs, *_: object, **__: object) -> None:
        raise RuntimeError("the password is swordfish")

    monkeypatch.setattr(Jobs, "page", breaks)
    served = serve(worker=False)
    with capture_logs([merge_contextvars]) as lines:
        answer = served.client().get("/api/jobs")
    assert (answer.status_code, answer.json()["code"]) == (500, "INTERNAL_ERROR")
    assert "swordfish" not in answer.text
    request_id = answer.json()["request_id"]
    assert answer.headers["x-request-id"] == request_id
    assert answer.headers["x-content-type-options"] == "nosniff"
    [of_the_defect] = [line for line in lines if "exc_info" in line]
    assert of_the_defect["request_id"] == request_id
    assert isinstance(of_the_defect["exc_info"], RuntimeError)
    [of_the_request] = [line for line in lines if line["event"] == "request"]
    assert (of_the_request["request_id"], of_the_request["status"]) == (request_id, 500)
    text = served.client(None).get("/metrics").text
    assert 'penstock_http_request_seconds_count{method="GET",route="/api/jobs",status="500"} 1.0' in text


def test_an_answer_that_breaks_in_its_middle_is_found_too(app: Penstock) -> None:
    more = APIRouter()

    @more.get("/halves")
    def halves() -> StreamingResponse:
        def pieces() -> Iterator[bytes]:
            yield b"one half"
            raise RuntimeError("no other half")

        return StreamingResponse(pieces())

    with (
        serving(app, worker=False, more=[more]) as served,
        capture_logs([merge_contextvars]) as lines,
        pytest.raises(httpx2.RemoteProtocolError),
    ):
        served.client(None).get("/halves", headers={"X-Request-ID": "mine-3"})
    [of_the_defect] = [line for line in lines if "exc_info" in line]
    assert (of_the_defect["request_id"], str(of_the_defect["exc_info"])) == ("mine-3", "no other half")


@on_sqlite
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ('{"kind": "held"} y', "Extra data, line 1, column 18"),
        ('{"params": 1,\n nothing}', "Expecting property name enclosed in double quotes, line 2, column 2"),
    ],
)
def test_json_that_cannot_be_read_names_its_place_and_no_field(
    app: Penstock, serve: Serve, body: str, reason: str
) -> None:
    ada = serve(worker=False).client()
    answer = ada.post("/api/sessions/end", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (422, "INVALID_INPUT", None)
    assert answer.json()["message"] == f"the body is not JSON: {reason}"


@pytest.mark.parametrize(
    "statement",
    ["SELECT nothing FROM nowhere", "INSERT INTO rules (id, name) VALUES (1, NULL)"],
    ids=["a table that is not there", "a row that breaks a rule"],
)
def test_a_statement_that_the_database_refuses_is_our_defect(
    app: Penstock, serve: Serve, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    app.in_transaction(lambda link: link.execute(text("CREATE TABLE rules (id integer, name text NOT NULL)")))

    def breaks(self: Jobs, *_: object, **__: object) -> None:
        app.in_transaction(lambda link: link.execute(text(statement)))

    monkeypatch.setattr(Jobs, "page", breaks)
    with capture_logs() as lines:
        answer = serve(worker=False).client().get("/api/jobs")
    assert (answer.status_code, answer.json()["code"]) == (500, "STATEMENT_REFUSED")
    assert "rules" not in answer.text
    assert "nowhere" not in answer.text
    [line] = [line for line in lines if line.get("code") == "STATEMENT_REFUSED"]
    assert isinstance(line["exc_info"], StatementRefused)
    assert isinstance(line["exc_info"].__cause__, DBAPIError), "the traceback leads to the statement"


@pytest.mark.parametrize("migrated_url", ["postgresql"], indirect=True)
def test_a_value_that_the_database_refuses_is_the_callers(
    app: Penstock, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asks(self: Jobs, *_: object, **__: object) -> None:
        app.in_transaction(lambda link: link.execute(text("SELECT CAST(:given AS integer)"), {"given": "seven"}))

    monkeypatch.setattr(Jobs, "page", asks)
    answer = serve(worker=False).client().get("/api/jobs")
    assert (answer.status_code, answer.json()["code"]) == (422, "STORE_REFUSED")


def test_every_error_has_a_status() -> None:
    def subclasses(one: type[PenstockError]) -> list[type[PenstockError]]:
        return [one, *(found for each in one.__subclasses__() for found in subclasses(each))]

    for one in subclasses(PenstockError):
        assert next(STATUSES[each] for each in one.__mro__ if each in STATUSES) in range(400, 600)
    assert status_of(PenstockError("busy", code="BUSY")) == 409


def test_the_reference_documents_every_answer(app: Penstock, serve: Serve) -> None:
    reference = serve(worker=False).client(None).get("/openapi.json").json()
    for path, methods in reference["paths"].items():
        for method, operation in methods.items():
            assert operation["summary"], (method, path)
            if path.startswith("/api/"):
                assert {"401", "422", "503"} <= operation["responses"].keys(), (method, path)
                assert {"200", "202"} & operation["responses"].keys(), (method, path)
                assert operation["security"], (method, path)


def test_it_can_be_mounted_in_an_application_of_ones_own(settings: Settings) -> None:
    app = Penstock(settings=settings)
    jobs = create_app(app)
    site = FastAPI(lifespan=jobs.router.lifespan_context)
    site.mount("/work", jobs)
    paths = [getattr(route, "path", "") for route in site.routes]
    assert "/work" in paths
    app.close()
