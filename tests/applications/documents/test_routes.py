"""Documents over HTTP: created, submitted once, watched, in the specification's fields."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest

from penstock import Penstock, Settings
from penstock_apps.documents.application import documents as documents_application
from penstock_apps.documents.schemas import DocumentJob
from penstock_apps.documents.settings import DocumentSettings
from tests.http.conftest import Served, app, serving, settings

__all__ = ["app", "settings"]
PATIENCE = 60.0
Serve = Callable[..., Served]


@pytest.fixture
def served(app: Penstock, settings: Settings) -> Iterator[Served]:
    app.install(documents_application, DocumentSettings(timeout=30.0, max_bytes=1_000))
    with serving(app, worker=True) as one:
        yield one


def test_a_document_goes_from_created_to_succeeded(app: Penstock, served: Served) -> None:
    ada = served.client()
    created = ada.post("/api/documents/jobs", files={"file": ("log.txt", b"five words are in here")})
    assert created.status_code == 201
    body = created.json()
    DocumentJob.model_validate(body)
    assert (body["state"], body["retryCount"], body["maxRetries"], body["startedAt"]) == ("CREATED", 0, 3, None)
    address = f"/api/documents/jobs/{body['jobId']}"
    assert ada.get(address).json()["state"] == "CREATED"
    submitted = ada.post(f"{address}/submit")
    assert (submitted.status_code, submitted.json()["state"]) in [(200, "QUEUED"), (200, "RUNNING")]
    second = ada.post(f"{address}/submit")
    assert (second.status_code, second.json()["code"]) == (409, "TRANSITION_REFUSED")
    [job] = app.jobs()
    assert job.title == "log.txt"
    app.wait(job.id, timeout=PATIENCE)
    done = ada.get(address).json()
    DocumentJob.model_validate(done)
    assert (done["state"], done["lastError"], done["errorType"]) == ("SUCCEEDED", None, None)
    assert done["completedAt"]
    assert ada.get(f"/api/jobs/{job.id}").json()["result"]["text"] == "five words are in here"


def test_a_document_that_cannot_be_read_fails_with_its_reason(app: Penstock, served: Served) -> None:
    ada = served.client()
    body = ada.post("/api/documents/jobs", files={"file": ("big.txt", b"x" * 5_000)}).json()
    ada.post(f"/api/documents/jobs/{body['jobId']}/submit")
    [job] = app.jobs()
    app.wait(job.id, timeout=PATIENCE)
    failed = ada.get(f"/api/documents/jobs/{body['jobId']}").json()
    assert (failed["state"], failed["errorType"]) == ("FAILED", "TERMINAL")
    assert failed["lastError"]


def test_the_same_key_is_the_same_document(served: Served) -> None:
    ada, bob = served.client(), served.client("bob")
    sent = {"files": {"file": ("log.txt", b"once")}, "headers": {"Idempotency-Key": "k1"}}
    first, again = (ada.post("/api/documents/jobs", **sent).json() for _ in range(2))  # type: ignore[arg-type]
    assert first["jobId"] == again["jobId"]
    assert bob.post("/api/documents/jobs", **sent).json()["jobId"] != first["jobId"]  # type: ignore[arg-type]


def test_the_same_key_with_another_document_is_refused_before_it_is_kept(app: Penstock, served: Served) -> None:
    ada = served.client()
    headers = {"Idempotency-Key": "k1"}
    first = ada.post("/api/documents/jobs", files={"file": ("log.txt", b"once")}, headers=headers).json()
    kept = sorted(app.settings.files_directory.rglob("*"))
    for name, content in (("log.txt", b"twice"), ("other.txt", b"once")):
        other = ada.post("/api/documents/jobs", files={"file": (name, content)}, headers=headers)
        assert (other.status_code, other.json()["code"]) == (422, "IDEMPOTENCY_KEY_REUSED")
    assert ada.post("/api/documents/jobs", files={"file": ("log.txt", b"once")}, headers=headers).json() == first
    assert sorted(app.settings.files_directory.rglob("*")) == kept


def test_another_users_document_and_another_kinds_job_are_not_there(app: Penstock, served: Served) -> None:
    ada, mallory = served.client(), served.client("mallory")
    body = ada.post("/api/documents/jobs", files={"file": ("log.txt", b"mine")}).json()
    for job_id in (body["jobId"], uuid4()):
        for method, path in (("GET", ""), ("POST", "/submit")):
            answer = mallory.request(method, f"/api/documents/jobs/{job_id}{path}")
            assert (answer.status_code, answer.json()["code"]) == (404, "JOB_NOT_FOUND")
    app.kind("other")(lambda item: 1)
    other = app.submit("other", {}, owner="ada", hold=True).job
    assert ada.get(f"/api/documents/jobs/{other.id}").status_code == 404
    assert ada.post(f"/api/documents/jobs/{other.id}/submit").status_code == 404


@pytest.mark.parametrize(
    "sent",
    [{}, {"files": {"other": ("a", b"a")}}, {"data": {"file": "text, not a file"}}, {"content": b"not a form at all"}],
)
def test_what_is_no_upload_is_said_to_be_none(served: Served, sent: dict[str, object]) -> None:
    answer = served.client().post("/api/documents/jobs", **sent)  # type: ignore[arg-type]
    assert (answer.status_code, answer.json()["code"]) == (422, "INVALID_INPUT")


def test_submissions_are_counted_by_user(app: Penstock, settings: Settings) -> None:
    few = settings.model_copy(update={"submissions_per_minute": 2})
    one = Penstock(settings=few)
    one.install(documents_application, DocumentSettings())
    with serving(one, worker=False) as served:
        ada, bob = served.client(), served.client("bob")
        sent = {"files": {"file": ("log.txt", b"once")}}
        statuses = [ada.post("/api/documents/jobs", **sent).status_code for _ in range(3)]  # type: ignore[arg-type]
        assert statuses == [201, 201, 429]
        refused = ada.post("/api/documents/jobs", **sent)  # type: ignore[arg-type]
        assert (refused.json()["code"], int(refused.headers["retry-after"]) > 0) == ("TOO_MANY_REQUESTS", True)
        assert bob.post("/api/documents/jobs", **sent).status_code == 201  # type: ignore[arg-type]
        assert ada.get("/api/jobs").status_code == 200, "looking is not submitting"
    one.close()
