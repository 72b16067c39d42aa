"""The documents application end to end: create, submit, watch, on a real worker with real processes."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock import JobState, Penstock, owner
from penstock.errors import JobNotFound, TransitionRefused
from penstock.lifecycle import KilledBy, storable_texts
from penstock.settings import read_settings
from penstock.testing.invariants import violations
from penstock_apps.documents.application import documents as documents_application
from penstock_apps.documents.sample_pdf import pdf_bytes
from penstock_apps.documents.samples import write_samples
from penstock_apps.documents.service import Documents, metadata
from penstock_apps.documents.settings import DocumentSettings
from tests.applications.documents import hostile_files

PATIENCE = 60.0
ADA = owner("ada")


@pytest.fixture
def limits() -> DocumentSettings:
    """The limits of the application, with a bound on size that a test can reach."""
    return DocumentSettings(max_bytes=2 * 1024 * 1024)


@pytest.fixture
def documents(app: Penstock, limits: DocumentSettings) -> Documents:
    """The application on each database."""
    return app.install(documents_application, limits)


def submit(documents: Documents, data: bytes, name: str) -> Any:
    """Create and submit one document as Ada."""
    job = documents.create(io.BytesIO(data), name=name, user="ada")
    return documents.submit(job.id, by=ADA).id


def test_every_sample_is_read(app: Penstock, documents: Documents, tmp_path: Path) -> None:
    ids = [submit(documents, path.read_bytes(), path.name) for path in write_samples(tmp_path)]
    assert app.drain(timeout=PATIENCE)
    results = [documents.get(one, by=ADA).result for one in ids]
    assert [one["document_type"] for one in results] == ["PDF", "DOCX", "HTML", "TEXT"]
    assert all(one["text"] and one["word_count"] for one in results)
    assert results[0]["page_count"] == 3
    assert violations(app.store) == []


def test_a_job_has_the_fields_and_states_of_the_specification(app: Penstock, documents: Documents) -> None:
    created = documents.create(io.BytesIO(b"plain words"), name="note.txt", user="ada")
    before = metadata(created)
    assert before == {
        "jobId": str(created.id),
        "state": "CREATED",
        "createdAt": created.created_at,
        "startedAt": None,
        "completedAt": None,
        "retryCount": 0,
        "maxRetries": 3,
        "lastError": None,
        "errorType": None,
    }
    assert metadata(documents.submit(created.id, by=ADA))["state"] == "QUEUED"
    assert app.drain(timeout=PATIENCE)
    after = metadata(documents.get(created.id, by=ADA))
    assert after["state"] == "SUCCEEDED"
    assert None not in (after["startedAt"], after["completedAt"])
    states = [one.to_state.value for one in app.jobs.history(created.id)]
    assert states == ["created", "queued", "running", "succeeded"]


def test_a_second_submit_is_refused(documents: Documents) -> None:
    job = documents.create(io.BytesIO(b"words"), name="note.txt", user="ada")
    documents.submit(job.id, by=ADA)
    with pytest.raises(TransitionRefused, match="submitted already"):
        documents.submit(job.id, by=ADA)


def test_somebody_elses_document_is_not_there(documents: Documents) -> None:
    job = documents.create(io.BytesIO(b"words"), name="note.txt", user="ada")
    for ask in (documents.get, documents.submit):
        with pytest.raises(JobNotFound):
            ask(job.id, by=owner("eve"))


HOSTILE: dict[str, tuple[Callable[[Path], bytes], str, str]] = {
    "corrupt": (lambda _: b"%PDF-1.7\n1 0 obj\n<<", "torn.pdf", "DOCUMENT_CORRUPT"),
    "encrypted": (
        lambda directory: hostile_files.encrypted_pdf(write_samples(directory)[0], user_password="x"),
        "secret.pdf",
        "DOCUMENT_ENCRYPTED",
    ),
    "empty": (lambda _: b"", "empty.pdf", "DOCUMENT_EMPTY"),
    "oversized": (lambda _: b"a" * (2 * 1024 * 1024 + 1), "large.txt", "DOCUMENT_TOO_LARGE"),
    "mislabelled": (lambda _: b"<!doctype html><html><body>hello</body></html>", "not-a.pdf", "DOCUMENT_MISLABELLED"),
    "unsupported": (lambda _: b"\x89PNG\r\n\x1a\n" + bytes(100), "photo.png", "DOCUMENT_UNSUPPORTED"),
    "zip bomb": (lambda _: hostile_files.archive_bomb(1024**3), "bomb.docx", "DOCUMENT_TOO_COMPLEX"),
    "pdf bomb": (lambda _: hostile_files.pdf_bomb(1024**3), "bomb.pdf", "DOCUMENT_TOO_COMPLEX"),
}


def test_each_hostile_file_fails_at_once_with_its_code_and_the_worker_lives(
    app: Penstock, documents: Documents, tmp_path: Path
) -> None:
    ids = {what: submit(documents, make(tmp_path), name) for what, (make, name, _) in HOSTILE.items()}
    good = submit(documents, b"after all that, plain words", "note.txt")
    assert app.drain(timeout=PATIENCE)
    ended = {what: documents.get(one, by=ADA) for what, one in ids.items()}
    assert {what: job.error_code for what, job in ended.items()} == {
        what: code for what, (_, _, code) in HOSTILE.items()
    }
    for job in ended.values():
        told = metadata(job)
        assert (told["state"], told["retryCount"], told["errorType"]) == ("FAILED", 0, "TERMINAL")
        assert told["lastError"]
    assert documents.get(good, by=ADA).state is JobState.SUCCEEDED


def test_a_file_that_cannot_be_read_just_now_is_retried_three_times(app: Penstock, documents: Documents) -> None:
    job = documents.create(io.BytesIO(b"plain words"), name="note.txt", user="ada")
    path = app.files.path(job.file_id or "")
    path.unlink()
    path.symlink_to("/proc/self/mem")  # opens, and then answers EIO
    documents.submit(job.id, by=ADA)
    assert app.drain(timeout=PATIENCE)
    told = metadata(documents.get(job.id, by=ADA))
    assert (told["state"], told["retryCount"], told["errorType"]) == ("FAILED", 3, "TERMINAL")
    events = app.jobs.history(job.id)
    states = [one.to_state.value for one in events]
    assert states == ["created", "queued", "running"] + ["retrying", "queued", "running"] * 3 + ["failed"]
    # From the first start to the end: three waits of a second. A history row is written a moment after its change, so
    # that a single wait cannot be measured as well.
    assert (events[-1].at - events[2].at).total_seconds() >= 3.0


def test_a_file_that_is_readable_again_succeeds_on_the_retry(app: Penstock, documents: Documents) -> None:
    job = documents.create(io.BytesIO(b"plain words"), name="note.txt", user="ada")
    path = app.files.path(job.file_id or "")
    path.unlink()
    path.symlink_to("/proc/self/mem")
    documents.submit(job.id, by=ADA)
    with app.working() as worker:
        worker.signals.listen()
        assert worker.signals.wait("recorded", timeout=PATIENCE)
        failing = documents.get(job.id, by=ADA)
        path.unlink()
        path.write_bytes(b"plain words")
        done = app.jobs.wait(job.id, timeout=PATIENCE)
    assert metadata(failing)["state"] == "RETRYING"
    assert (failing.retries, failing.error_code, failing.error_type) == (1, "DOCUMENT_UNREADABLE", "RETRYABLE")
    told = metadata(done)
    assert (told["state"], told["retryCount"], told["lastError"], told["errorType"]) == ("SUCCEEDED", 1, None, None)


def test_a_document_that_takes_too_long_is_killed(app: Penstock, limits: DocumentSettings) -> None:
    documents = app.install(documents_application, limits.model_copy(update={"timeout": 0.2}))
    many = b"BT /F1 1 Tf " + b"(words) Tj " * 150_000 + b"ET"
    slow = hostile_files.pdf_with_contents(hostile_files.pdf_stream(many))
    job = documents.create(io.BytesIO(slow), name="slow.pdf", user="ada")
    documents.submit(job.id, by=ADA)
    assert app.drain(timeout=PATIENCE)
    done = documents.get(job.id, by=ADA)
    assert (done.state, done.killed_by, done.error_code) == (JobState.FAILED, KilledBy.TIMEOUT, "WORKER_TIMEOUT")
    assert metadata(done)["retryCount"] == 3


def test_a_document_that_takes_too_much_memory_is_killed_and_not_retried(
    app: Penstock, limits: DocumentSettings
) -> None:
    documents = app.install(
        documents_application, limits.model_copy(update={"memory_bytes": 60 * 1024**2, "max_bytes": 50 * 1024**2})
    )
    text = ("<p>" + "word " * 200 + "</p>") * 30_000
    job = documents.create(io.BytesIO(text.encode()), name="huge.html", user="ada")
    documents.submit(job.id, by=ADA)
    assert app.drain(timeout=PATIENCE)
    done = documents.get(job.id, by=ADA)
    assert (done.state, done.killed_by, done.retries) == (JobState.FAILED, KilledBy.OOM, 0)
    assert done.error_code == "DOCUMENT_TOO_COMPLEX"


def test_a_queue_above_its_bound_fails_the_newcomer(app: Penstock, limits: DocumentSettings) -> None:
    documents = app.install(documents_application, limits.model_copy(update={"queue_limit": 2}))
    ids = [submit(documents, f"note {number}".encode(), "note.txt") for number in range(3)]
    told = [metadata(documents.get(one, by=ADA)) for one in ids]
    assert [one["state"] for one in told] == ["QUEUED", "QUEUED", "FAILED"]
    assert documents.get(ids[2], by=ADA).error_code == "QUEUE_OVERLOAD"
    assert [one.to_state.value for one in app.jobs.history(ids[2])] == ["created", "queued", "failed"]
    assert told[2]["errorType"] == "RETRYABLE"


def test_a_document_that_waits_too_long_fails(app: Penstock, limits: DocumentSettings) -> None:
    documents = app.install(documents_application, limits.model_copy(update={"wait_limit": 0.0}))
    one = submit(documents, b"words", "note.txt")
    while app.jobs.get(one).state is JobState.QUEUED:
        app.system.sweep()
    done = documents.get(one, by=ADA)
    assert (done.state, done.error_code) == (JobState.FAILED, "QUEUE_WAIT_EXCEEDED")
    assert violations(app.store) == []


def test_a_document_that_nobody_submits_is_canceled_in_time(app: Penstock, limits: DocumentSettings) -> None:
    documents = app.install(documents_application, limits.model_copy(update={"hold_limit": 0.0}))
    created = documents.create(io.BytesIO(b"words"), name="note.txt", user="ada")
    while app.jobs.get(created.id).state is JobState.CREATED:
        app.system.sweep()
    job = documents.get(created.id, by=ADA)
    assert (job.state, job.killed_by) == (JobState.CANCELED, KilledBy.SYSTEM)
    told = metadata(job)
    assert (told["state"], told["errorType"], told["completedAt"]) == ("FAILED", "TERMINAL", job.canceled_at)
    assert "nobody submitted" in str(told["lastError"])
    with pytest.raises(TransitionRefused):
        documents.submit(job.id, by=ADA)
    assert violations(app.store) == []


def test_the_limits_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {
        "DOCUMENTS_TIMEOUT": "5s", "DOCUMENTS_MEMORY": "512MiB", "DOCUMENTS_QUEUE_LIMIT": "7",
        "DOCUMENTS_HOLD_LIMIT": "2h",
    }  # fmt: skip
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert read_settings(DocumentSettings) == DocumentSettings(
        timeout=5.0, memory_bytes=512 * 1024**2, queue_limit=7, hold_limit=7200.0
    )


def test_nul_and_broken_unicode_in_a_document_are_cleaned_and_not_a_failure(
    app: Penstock, documents: Documents
) -> None:
    page = b"<html><head><title>a&#0;b</title><meta name=author content='c&#xD800;d'></head><body>e &#0; g</body>"
    plain = b"one\0word " + b"and many more of them " * 50
    # A PDF's texts may be UTF-16, where half a pair can stand alone.
    pdf = pdf_bytes([["Hello"]], title="TITLE").replace(b"(TITLE)", b"<FEFF0061D80000620000>")
    ids = [submit(documents, data, name) for data, name in ((page, "a.html"), (pdf, "b.pdf"), (plain, "c.txt"))]
    assert app.drain(timeout=PATIENCE)
    for one in ids:
        job = documents.get(one, by=ADA)
        assert job.state is JobState.SUCCEEDED, job.last_error
        assert storable_texts(job.result) == job.result
    assert documents.get(ids[2], by=ADA).result["text"].startswith("oneword and")
