"""Products over HTTP: uploads, files that wait at a source, and what is refused."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from penstock.exports import workbook_chunks
from penstock.ingest import SourceSettings
from penstock_apps.products.headers import FIELDS
from penstock_apps.products.retailer import CATALOGUE, sample_csv, sample_image
from tests.applications.products.conftest import Market
from tests.http.conftest import Served, on_sqlite, serving


@pytest.fixture
def served(market: Market) -> Iterator[Served]:
    with serving(market.app, worker=False) as one:
        yield one


def upload(client: httpx2.Client, *files: tuple[str, bytes], key: str | None = None, **fields: str) -> Any:
    headers = {} if key is None else {"Idempotency-Key": key}
    parts = [("file", (name, content, "application/octet-stream")) for name, content in files]
    return client.post("/api/jobs", files=parts, data=fields, headers=headers)


def test_a_table_is_taken_in_and_worked_off(served: Served, market: Market) -> None:
    answer = upload(served.client(), ("products.csv", sample_csv()))
    assert answer.status_code == 202
    body = answer.json()
    assert (body["jobType"], body["queueState"], body["files"]) == ("csv", "QUEUED", ["products.csv"])
    assert body["mapping"]["Hersteller"] == "brand"
    market.work()
    [job] = market.app.jobs.list()
    assert str(job.id) == body["jobId"]
    assert job.user_id == "ada"
    assert market.app.jobs.get(job.id).progress.done == 36


def test_pictures_fields_and_keys(served: Served) -> None:
    ada = served.client()
    pictures = upload(ada, ("a.png", sample_image(0)), ("b.png", sample_image(1)), jobType="image").json()
    assert (pictures["files"], pictures["mapping"]) == (["a.png", "b.png"], None)
    assert [job.title for job in served.app.jobs.list()] == ["a.png and 1 more"]
    table = ("a.txt", b"sku|title\n1|Kettle\n")
    first = upload(ada, table, key="k", delimiter="|", encoding="utf-8").json()
    assert first["mapping"] == {"sku": "sku", "title": "title"}
    assert upload(ada, table, key="k", delimiter="|", encoding="utf-8").json()["jobId"] == first["jobId"]
    assert upload(served.client("bob"), table, key="k", delimiter="|").json()["jobId"] != first["jobId"]


def test_columns_are_what_the_sender_says(served: Served, market: Market) -> None:
    ada = served.client()
    table = ("stock.csv", f"Regal;EAN-13;Name\n{CATALOGUE[0]['id']};{CATALOGUE[1]['ean']};Kettle\n".encode())
    mapping = '{"Regal": "sku", "EAN-13": null}'
    answer = upload(ada, table, key="k", mapping=mapping)
    assert answer.status_code == 202, answer.text
    expected = {"Regal": "sku", "EAN-13": None, "Name": "title"}
    assert answer.json()["mapping"] == expected
    assert upload(ada, table, key="k", mapping=mapping).json() == answer.json()
    assert upload(ada, table, key="k").json()["code"] == "IDEMPOTENCY_KEY_REUSED"
    (market.inbox / "stock.csv").write_bytes(table[1])
    at_source = {"source": str(market.inbox), "mapping": {"Regal": "sku", "EAN-13": None}}
    assert ada.post("/api/jobs", json=at_source).json()["mapping"] == expected
    market.work()
    for job in market.app.jobs.list():
        [item] = market.app.items.list(job.id)
        assert (item.result["gtin"], item.result["matched_by"]) == (CATALOGUE[0]["ean"], "sku")
        assert item.normalized == {"sku": CATALOGUE[0]["id"], "title": "Kettle", "warnings": []}


@pytest.mark.parametrize(
    ("mapping", "said"),
    [
        ("sku", "not JSON"),
        ("[1]", "no object"),
        ('{"sku": 1}', "no object"),
        ('{"nowhere": "sku"}', "'nowhere', and the table has 'sku', 'b'"),
        ('{"b": "colour"}', "'colour'; there are sku, gtin"),
        ('{"sku": "title", "b": "title"}', "both 'sku' and 'b'"),
    ],
)
def test_a_mapping_that_does_not_fit_is_refused(served: Served, mapping: str, said: str) -> None:
    problem = upload(served.client(), ("a.csv", b"sku,b\n1,2\n"), mapping=mapping)
    body = problem.json()
    assert (problem.status_code, body["code"], body["field"]) == (422, "MAPPING_INVALID", "mapping")
    assert said in body["message"]
    pictures = upload(served.client(), ("a.png", sample_image()), mapping="{}").json()
    assert pictures["code"] == "MAPPING_INVALID"
    assert (
        upload(served.client(), ("a.csv", b"sku\n1\n"), mapping='{"sku": null}').json()["code"] == "NO_PRODUCT_COLUMN"
    )


def test_columns_can_be_looked_at_before_a_table_is_sent(served: Served, market: Market) -> None:
    ada = served.client()

    def look(name: str, content: bytes, **fields: str) -> Any:
        return ada.post("/api/products/columns", files={"file": (name, content)}, data=fields)

    seen = look("a.csv", b"Art.-Nr.;Shelf\n K-1 ;4\n\nK-2;4\nK-3;5\nK-4;5\n").json()
    assert seen["columns"] == [
        {"name": "Art.-Nr.", "choice": "sku", "examples": ["K-1", "K-2", "K-3"]},
        {"name": "Shelf", "choice": None, "examples": ["4", "5"]},
    ]
    assert seen["note"] == "Read as utf-8, split at ';'."
    assert [choice["id"] for choice in seen["choices"]] == list(FIELDS)
    assert look("a.csv", b"a;b,c\n", delimiter=",").json()["columns"][0]["name"] == "a;b"
    assert look("a.csv", b"title\nPen, blue\n").json()["note"] == "Read as utf-8, one column."
    workbook = b"".join(workbook_chunks(["EAN"], [["4006381333931"]], sheet="Stock"))
    assert look("a.xlsx", workbook).json()["note"] == "The sheet 'Stock' is read."
    cut = b"sku,title\n" + b"1,Kettle\n" * 30_000 + b'2,"Ket'
    assert look("a.csv", cut).json()["columns"][1]["examples"] == ["Kettle"], "the beginning of a file"
    assert look("a.png", sample_image()).json()["code"] == "NOT_A_TABLE"
    assert served.client(None).post("/api/products/columns", files={"file": ("a", b"a")}).status_code == 401
    assert kept_files(market) == []


def kept_files(market: Market) -> list[str]:
    """The names of what is kept, and of what was only received."""
    files = (path for path in market.app.settings.files_directory.rglob("*") if path.is_file())
    return [path.name for path in files if path.name != ".lock"]


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("prices.csv", b"colour\nred\n", "NO_PRODUCT_COLUMN"),
        ("prices.xlsx", b"PK\x03\x04 and no more", "NOT_A_TABLE"),
        ("photos.zip", b"PK\x03\x04 and no more", "NOT_AN_ARCHIVE"),
        ("old prices.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "NOT_A_TABLE"),
    ],
)
def test_of_what_is_refused_nothing_is_kept_and_its_own_name_is_said(
    served: Served, market: Market, name: str, content: bytes, code: str
) -> None:
    problem = upload(served.client(), (name, content)).json()
    assert problem["code"] == code
    assert repr(name) in problem["message"]
    assert kept_files(market) == []
    assert upload(served.client(), ("good.csv", b"sku\n1\n")).status_code == 202
    assert len(kept_files(market)) == 1


def test_what_cannot_be_taken_is_refused_with_a_code(served: Served) -> None:
    ada = served.client()
    table = ("a.csv", b"sku\n1\n")
    assert upload(served.client(None), table).status_code == 401
    for answer, status, code in (
        (upload(ada, table, jobType="image"), 422, "JOB_TYPE_WRONG"),
        (upload(ada, table, ("b.png", sample_image())), 422, "MIXED_FILES"),
        (ada.post("/api/jobs", data={"jobType": "csv"}, files={"other": b"x"}), 422, "FILE_MISSING"),
        (ada.post("/api/jobs", content=b"sku\n1\n", headers={"Content-Type": "text/csv"}), 422, "CONTENT_TYPE_UNKNOWN"),
        (ada.post("/api/jobs", content=b"{", headers={"Content-Type": "application/json"}), 400, "REQUEST_REFUSED"),
        (ada.post("/api/jobs", json={"jobType": "csv"}), 422, "INVALID_INPUT"),
        (ada.post("/api/jobs", json={"source": "x" * 100_000}), 413, "BODY_TOO_LARGE"),
        (ada.post("/api/jobs", json={"source": "/etc/passwd"}), 403, "SOURCE_NOT_ALLOWED"),
        (ada.post("/api/ingestion/scan", json={"source": "/etc"}), 403, "SOURCE_NOT_ALLOWED"),
    ):
        assert (answer.status_code, answer.json()["code"]) == (status, code)
    broken = ada.post("/api/jobs", content=b"nothing", headers={"Content-Type": "multipart/form-data; boundary=x"})
    assert broken.status_code in (400, 422)
    assert served.app.jobs.list() == []


def test_uploads_can_be_switched_off(market: Market) -> None:
    market.app._runtime._settings = market.app.settings.model_copy(update={"db_ingest_enabled": False})
    with serving(market.app, worker=False) as served:
        ada = served.client()
        for answer in (
            upload(ada, ("a.csv", b"sku\n1\n")),
            ada.post("/api/jobs", json={"source": str(market.inbox)}),
            ada.post("/api/ingestion/scan", json={"source": str(market.inbox)}),
        ):
            assert (answer.status_code, answer.json()["code"]) == (503, "INGEST_DISABLED")


def test_a_scan_takes_each_file_once_also_when_it_is_repeated(served: Served, market: Market) -> None:
    (market.inbox / "a.csv").write_bytes(b"sku\n1\n")
    (market.inbox / "b.csv").write_bytes(b"colour\nred\n")
    (market.inbox / "c.png").write_bytes(sample_image())
    ada = served.client()

    def scan() -> Any:
        return ada.post("/api/ingestion/scan", json={"source": str(market.inbox)}).json()

    first = scan()
    assert sorted(one["name"] for one in first["taken"]) == ["a.csv", "c.png"]
    assert [(one["name"], one["code"]) for one in first["failed"]] == [("b.csv", "NO_PRODUCT_COLUMN")]
    again = scan()
    assert (again["taken"], again["already"]) == ([], 2)
    assert {str(job.id) for job in market.app.jobs.list()} == {one["jobId"] for one in first["taken"]}
    (market.inbox / "a.csv").write_bytes(b"sku\n1\n2\n")
    assert [one["name"] for one in scan()["taken"]] == ["a.csv"]
    assert len(market.app.jobs.list()) == 3


@on_sqlite
def test_a_source_that_does_not_answer_is_not_the_senders_fault(
    served: Served, market: Market, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"127.0.0.1:{closed.getsockname()[1]}"
    sources = SourceSettings.model_validate(
        {"PENSTOCK_INGEST_FTP_HOSTS": address, "PENSTOCK_INGEST_OWNERS": {f"ftp://{address}": ["ada"]}}
    )
    monkeypatch.setattr(market.products.intake, "_sources", sources)
    ada, body = served.client(), {"source": f"ftp://{address}/products"}
    for answer in (ada.post("/api/ingestion/scan", json=body), ada.post("/api/jobs", json=body)):
        problem = answer.json()
        assert (answer.status_code, problem["code"], problem["field"]) == (503, "SOURCE_UNAVAILABLE", "source")
    assert market.app.jobs.list() == []


def test_a_source_may_be_named_instead_of_an_upload(served: Served, market: Market) -> None:
    (market.inbox / "a.csv").write_bytes(b"sku\n1\n")
    ada = served.client()

    def ask(source: str, key: str | None = None) -> Any:
        headers = {} if key is None else {"Idempotency-Key": key}
        return ada.post("/api/jobs", json={"source": source}, headers=headers)

    one_file = ask(str(market.inbox / "a.csv"), "k").json()
    assert one_file["files"] == ["a.csv"]
    assert one_file["jobIds"] == [one_file["jobId"]]
    assert ask(str(market.inbox / "a.csv"), "k").json()["jobId"] == one_file["jobId"]
    (market.inbox / "b.csv").write_bytes(b"sku\n2\n")
    folder = ask(str(market.inbox)).json()
    assert sorted(folder["files"]) == ["a.csv", "b.csv"]
    assert one_file["jobId"] not in folder["jobIds"]
    (market.inbox / "empty").mkdir()
    assert ask(str(market.inbox / "empty")).json()["code"] == "FILE_MISSING"


def test_the_same_key_with_another_request_is_refused_before_it_is_kept(served: Served, market: Market) -> None:
    (market.inbox / "a.csv").write_bytes(b"sku\n1\n")
    ada = served.client()
    first = upload(ada, ("a.csv", b"sku\n1\n"), key="k").json()
    kept = sorted(market.app.settings.files_directory.rglob("*"))
    others = [
        upload(ada, ("a.csv", b"sku\n2\n"), key="k"),
        upload(ada, ("b.csv", b"sku\n1\n"), key="k"),
        upload(ada, ("a.csv", b"sku\n1\n"), key="k", delimiter=";"),
        ada.post("/api/jobs", json={"source": str(market.inbox)}, headers={"Idempotency-Key": "k"}),
    ]
    assert {(one.status_code, one.json()["code"]) for one in others} == {(422, "IDEMPOTENCY_KEY_REUSED")}
    assert upload(ada, ("a.csv", b"sku\n1\n"), key="k").json() == first
    assert sorted(market.app.settings.files_directory.rglob("*")) == kept
    assert len(market.app.jobs.list()) == 1


def test_the_same_key_with_another_source_is_refused(served: Served, market: Market) -> None:
    (market.inbox / "a.csv").write_bytes(b"sku\n1\n")
    (market.inbox / "b.csv").write_bytes(b"sku\n2\n")
    ada = served.client()

    def ask(name: str) -> Any:
        return ada.post("/api/jobs", json={"source": str(market.inbox / name)}, headers={"Idempotency-Key": "k"})

    first = ask("a.csv").json()
    assert ask("b.csv").json()["code"] == "IDEMPOTENCY_KEY_REUSED"
    assert ask("a.csv").json()["jobId"] == first["jobId"]
    assert len(market.app.jobs.list()) == 1


@on_sqlite
def test_a_source_is_for_its_owners_and_for_admins(served: Served, market: Market) -> None:
    (market.inbox / "a.csv").write_bytes(b"sku\n1\n")
    body = {"source": str(market.inbox)}
    for address in ("/api/ingestion/scan", "/api/jobs"):
        refused = served.client("ben").post(address, json=body)
        assert (refused.status_code, refused.json()["code"]) == (403, "SOURCE_NOT_ALLOWED")
        assert served.client(None).post(address, json=body).status_code == 401
    assert market.app.jobs.list() == []
    for client in (served.client("root", admin=True), served.client("ada")):
        assert [one["name"] for one in client.post("/api/ingestion/scan", json=body).json()["taken"]] == ["a.csv"]
        assert client.post("/api/jobs", json=body).status_code == 202
    assert {job.user_id for job in market.app.jobs.list()} == {"ada", "root"}


@on_sqlite
def test_one_request_takes_no_more_files_than_is_allowed(served: Served, market: Market) -> None:
    for number in range(5):
        (market.inbox / f"{number}.csv").write_bytes(b"sku\n%d\n" % number)
    market.app._runtime._settings = market.app.settings.model_copy(update={"ingest_scan_files": 2})
    ada, body = served.client(), {"source": str(market.inbox)}
    reports = [ada.post("/api/ingestion/scan", json=body).json() for _ in range(4)]
    assert [(len(one["taken"]), one["already"], one["more"]) for one in reports] == [
        (2, 0, True), (2, 2, True), (1, 4, False), (0, 5, False),
    ]  # fmt: skip
    asked = ada.post("/api/jobs", json=body).json()
    assert (len(asked["jobIds"]), [one["code"] for one in asked["failed"]]) == (2, ["TOO_MANY_FILES"])


@on_sqlite
def test_scans_are_counted_as_submissions_and_are_few_at_a_time(market: Market) -> None:
    market.app._runtime._settings = market.app.settings.model_copy(update={"submissions_per_minute": 3})
    with serving(market.app, worker=False) as served:
        ada, body = served.client(), {"source": str(market.inbox)}
        with market.products.intake._scans, market.products.intake._scans:
            busy = ada.post("/api/ingestion/scan", json=body)
        assert (busy.status_code, busy.json()["code"]) == (429, "TOO_MANY_SCANS")
        answers = [ada.post("/api/ingestion/scan", json=body).status_code for _ in range(3)]
        assert answers == [200, 200, 429]


def test_both_bodies_are_described(served: Served) -> None:
    described = served.client().get("/openapi.json").json()["paths"]["/api/jobs"]["post"]
    assert set(described["requestBody"]["content"]) == {"multipart/form-data", "application/json"}
    assert {"202", "400", "401", "403", "413", "422", "429", "503"} <= set(described["responses"])
