"""Files become jobs of the kind that takes them: by its name, or by what an intake finds in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import httpx2

from penstock import ItemContext, Penstock, owner
from penstock.ingest import HandedFile, Intake, Sender, TakenFiles, UploadOptions
from tests.http.conftest import Served, on_sqlite

Serve = Callable[..., Served]
pytestmark = on_sqlite


class Letters(Intake):
    """One job for all files that are sent together."""

    def __init__(self, app: Penstock, kind: str, *, finds_kind: bool) -> None:
        self._app, self._kind, self.finds_kind = app, kind, finds_kind

    def take_files(self, files: Sequence[HandedFile], options: UploadOptions, sender: Sender) -> TakenFiles:
        params = {"sizes": [len(file.stream.read(100)) for file in files], "sheet": options.sheet}
        submission = self._app.submit(
            self._kind, params, owner=sender.user, by=owner(sender.user), idempotency_key=sender.idempotency_key
        )
        return TakenFiles((submission.job,), tuple(file.name for file in files))


def add_kind(app: Penstock, name: str, *, finds_kind: bool) -> None:
    """A kind that takes files."""
    taking = Letters(app, name, finds_kind=finds_kind)

    @app.kind(name)
    class Letter:
        intake = taking

        def process(self, item: ItemContext) -> object:
            return item.input


def send(client: httpx2.Client, **fields: str) -> httpx2.Response:
    """Two files in one request."""
    files = [("file", ("a.txt", b"abc")), ("file", ("b.txt", b"de"))]
    return client.post("/api/jobs", files=files, data=fields)


def test_without_a_kind_that_takes_files_there_is_no_upload(app: Penstock, serve: Serve) -> None:
    app.kind("plain")(lambda item: None)
    assert send(serve(worker=False).client()).status_code == 405


def test_an_upload_goes_to_the_kind_that_is_named(app: Penstock, serve: Serve) -> None:
    add_kind(app, "letter", finds_kind=False)
    add_kind(app, "parcel", finds_kind=True)
    ada = serve(worker=False).client()
    named, found = send(ada, jobType="letter", sheet="s"), send(ada)
    assert (named.status_code, found.status_code) == (202, 202)
    assert named.json() == {
        "jobId": named.json()["jobId"], "jobType": "letter", "queueState": "QUEUED", "files": ["a.txt", "b.txt"],
        "mapping": None,
    }  # fmt: skip
    assert found.json()["jobType"] == "parcel"
    [parcel, letter] = app.jobs(payloads=True)
    assert (letter.params, parcel.params) == ({"sizes": [3, 2], "sheet": "s"}, {"sizes": [3, 2], "sheet": None})
    assert letter.user_id == "ada"


def test_what_cannot_be_placed_is_said(app: Penstock, serve: Serve) -> None:
    add_kind(app, "letter", finds_kind=False)
    add_kind(app, "card", finds_kind=False)
    ada = serve(worker=False).client()
    assert send(ada).json()["code"] == "JOB_TYPE_MISSING"
    unknown = send(ada, jobType="parcel")
    assert (unknown.status_code, unknown.json()["code"]) == (422, "JOB_TYPE_UNKNOWN")
    assert "card or letter" in unknown.json()["message"]
    source = ada.post("/api/jobs", json={"source": "/inbox", "jobType": "letter"})
    assert (source.status_code, "none are fetched" in source.json()["message"]) == (422, True)
    assert ada.post("/api/jobs", content=b"x").json()["code"] == "CONTENT_TYPE_UNKNOWN"
    document = ada.get("/openapi.json").json()
    form = document["paths"]["/api/jobs"]["post"]["requestBody"]["content"]["multipart/form-data"]["schema"]
    assert form["properties"]["jobType"]["enum"] == ["card", "letter"]
