"""The persist-first seed's whole API, address by address as its text has them, with curl and a real server."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from penstock_apps.products.retailer import Retailer, demo_retailer, sample_csv, sample_image
from tests.acceptance.terminal import PATIENCE, Terminal, next_line, until
from tests.http.conftest import SECRET
from tests.workbooks import read_workbook

# As the seed has them; ids, cursors and values between bars are filled in.
INGEST = "POST /api/jobs"
JOB = "GET /api/jobs/:jobId"
ITEMS = "GET /api/jobs/:jobId/items?status=&page=&pageSize=&sort="
KICKOFF = "POST /api/jobs/:jobId/kickoff?durationMs=5000"
RESUME, PAUSE = "POST /api/jobs/:jobId/resume", "POST /api/jobs/:jobId/pause"
REPROCESS = "POST /api/jobs/:jobId/reprocess"
EXPORT_XLSX, EXPORT_CSV = "POST /api/jobs/:jobId/export?format=xlsx", "POST /api/jobs/:jobId/export?format=csv"
SCAN = "POST /api/ingestion/scan"
PENDING_OF_JOB = "GET /api/jobs/:jobId/items?statuses=PENDING,PROCESSING&pageSize=100&after=..."
PENDING = "GET /api/pending?statuses=PENDING,PROCESSING&userId=me&jobType=&pageSize=100&after=..."
PENDING_OF_ALL = PENDING.replace("userId=me", "userId=all")
METRICS = (
    "ingest_ms", "items_sec", "error_rate", "not_found_rate", "db_latency_ewma", "pool_wait_ms", "queue_depth",
    "api_throttle_rate", "pending_count",
)  # fmt: skip
MAPPING = {
    "Art.-Nr.": "sku", "EAN-13": "gtin", "Hersteller": "brand", "Bezeichnung": "title", "Preis": "price",
    "Lagerort": None,
}  # fmt: skip
SUNDIAL = {"id": "XYZ-1", "ean": "4006381333931", "name": "Left-handed sundial", "maker": "Nobody"}


@dataclass(frozen=True)
class Answer:
    """What the server says."""

    status: int
    body: bytes

    @property
    def json(self) -> Any:
        """The body, read."""
        return json.loads(self.body)

    @property
    def refusal(self) -> tuple[int, str]:
        """What is wrong, for machines."""
        return self.status, self.json["code"]


class Curl:
    """Somebody with a token, and the seed's addresses."""

    def __init__(self, directory: Path, address: str, token: str) -> None:
        self._directory = directory
        self._address = address
        self._token = token

    def __call__(self, line: str, *more: str, job: str = "", body: object = None, after: str | None = None) -> Answer:
        """Ask for one of the seed's lines; what it names without a value, and a cursor nobody has, are left out."""
        method, path = line.replace(":jobId", job).replace("after=...", f"after={after or ''}").split(" ")
        path = re.sub(r"(?<=[?&])\w+=(&|$)", "", path).rstrip("?&")
        if body is not None:
            more = (*more, "-H", "Content-Type: application/json", "-d", json.dumps(body))
        ended = subprocess.run(
            ["curl", "-sS", "-X", method, self._address + path, "-H", f"Authorization: Bearer {self._token}", *more,
             "-w", "%{stderr}%{http_code}"],
            cwd=self._directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
            check=True,
        )  # fmt: skip
        return Answer(int(ended.stderr), ended.stdout)

    def until_done(self, job: str, ask: str = JOB) -> dict[str, Any]:
        """Ask again and again until the job is over; the last answer."""
        answers: list[dict[str, Any]] = []

        def done() -> bool:
            answers.append(self(ask, job=job).json)
            return answers[-1]["queue_state"] in ("DONE", "FAILED")

        until(done, "the job is over")
        return answers[-1]


@dataclass(frozen=True)
class Desk:
    """A terminal whose server asks the shop in this process; the table is in its directory."""

    terminal: Terminal
    shop: Retailer
    in_full: bool
    """On the second database, what is the same on every database is left out."""

    @contextmanager
    def serving(self, *options: str, **environment: str) -> Iterator[dict[str, Curl]]:
        """A server, and who asks it."""
        with self.terminal.running("serve", "--port", 0, *options, **environment) as server:
            said = next_line(server)
            assert said.startswith("serving on "), server.communicate()[1]
            address = said.split()[2].rstrip(";")
            tokens = self.terminal.run_each(
                ("token", "--user", "alice"), ("token", "--user", "bob"), ("token", "--user", "root", "--admin")
            )
            yield {
                name: Curl(self.terminal.directory, address, token.out.strip())
                for name, token in zip(("alice", "bob", "root"), tokens, strict=True)
            }


@pytest.fixture(params=["sqlite", "postgresql"])
def desk(request: pytest.FixtureRequest, terminal: Terminal) -> Iterator[Desk]:
    """On each database."""
    with demo_retailer() as shop:
        folder = terminal.directory
        (folder / "retailers.json").write_text(json.dumps([shop.configuration()]))
        (folder / "products.csv").write_bytes(sample_csv())
        (folder / "inbox").mkdir()
        terminal.environment |= {
            "PENSTOCK_APP": "penstock.applications:app",
            "PRODUCT_PROVIDERS": "retailers.json",
            "MAX_ATTEMPTS_ERROR": "2",
            "MAX_ATTEMPTS_NOT_FOUND": "2",
            "PENDING_DASHBOARD_ENABLED": "true",
            "PENSTOCK_INGEST_ROOTS": str(folder / "inbox"),
            "PENSTOCK_INGEST_OWNERS": json.dumps({str(folder / "inbox"): ["alice"]}),
            "PENSTOCK_INGEST_SETTLE_SECONDS": "0",
        }
        if request.param == "postgresql":
            terminal.environment |= {
                "PENSTOCK_DATABASE_URL": request.getfixturevalue("postgres_url"),
                "PENSTOCK_JWT_SECRET": SECRET,
            }
            migrated = terminal.run("migrate")
            assert migrated.code == 0, migrated.err
        yield Desk(terminal, shop, in_full=request.param == "sqlite")


def test_a_worker_does_what_is_uploaded_and_what_waits_in_a_folder(desk: Desk) -> None:
    folder = desk.terminal.directory
    with desk.serving() as asked_by:
        alice = asked_by["alice"]
        taken = alice(INGEST, "-F", "file=@products.csv")
        assert taken.status == 202
        assert taken.json["queueState"] in ("QUEUED", "RUNNING")
        assert (taken.json["jobType"], taken.json["files"], taken.json["mapping"]) == ("csv", ["products.csv"], MAPPING)
        job = taken.json["jobId"]
        done = alice.until_done(job)
        assert (done["job_id"], done["user_id"], done["queue_state"]) == (job, "alice", "DONE")
        assert {name: done[f"{name}_items"] for name in ("total", "processed", "failed", "not_found", "skipped")} == {
            "total": 39, "processed": 39, "failed": 1, "not_found": 2, "skipped": 0,
        }  # fmt: skip
        assert done["file_id"]
        assert done["last_heartbeat"]
        assert {"/products/XYZ-2", "/search?q=Nobody%20Portable%20waterfall%203%20m"} <= set(desk.shop.calls)
        _owners_and_admins_alone(asked_by, job)
        _grid_and_exports_agree(alice, job)
        if desk.in_full:
            _pictures(alice, folder)
        _scanned(alice, folder)
        _figures(alice)


def _owners_and_admins_alone(asked_by: dict[str, Curl], job: str) -> None:
    for line in (JOB, ITEMS, PENDING_OF_JOB, KICKOFF, PAUSE, RESUME, REPROCESS, EXPORT_CSV, EXPORT_XLSX):
        assert asked_by["bob"](line, job=job).refusal == (404, "JOB_NOT_FOUND"), line
    assert asked_by["root"](JOB, job=job).json["user_id"] == "alice"


def _grid_and_exports_agree(alice: Curl, job: str) -> None:
    by_page = ITEMS.replace("pageSize=&sort=", "pageSize=20&sort=position")
    first, second = (alice(by_page.replace("page=", f"page={page}"), job=job).json for page in (1, 2))
    rows = [*first["items"], *second["items"]]
    assert (first["total"], [row["position"] for row in rows]) == (39, list(range(1, 40)))
    shown = [[str(row["position"]), row["status"], *(row["cells"][name] for name in first["columns"])] for row in rows]
    assert shown[0][:6] == ["1", "DONE", "MIL-1001", "2900000000018", "Millrace", "Millrace Kettle 1.7 l"]
    missing = alice(ITEMS.replace("status=", "status=NOT_FOUND"), job=job).json["items"]
    assert {row["inputSummary"]["sku"] for row in missing} == {"XYZ-1", "XYZ-2"}
    assert {row["attempts"] for row in missing} == {2}, "each was tried again, in another way"
    assert alice(ITEMS, job=job).json["items"] == rows, "nothing has to be said"
    in_csv = list(csv.reader(io.StringIO(alice(EXPORT_CSV, job=job).body.decode("utf-8-sig"), newline="")))
    width = 2 + len(first["columns"])
    assert in_csv[0][:width] == ["row", "status", *first["columns"]]
    assert [line[:width] for line in in_csv[1:]] == [
        ["" if cell is None else str(cell) for cell in row] for row in shown
    ]
    [lines] = read_workbook(alice(EXPORT_XLSX, job=job).body).values()
    for line, texts in zip(lines, in_csv, strict=True):
        # A number has no text of its own in a workbook: 1 and 1.0 are the same there.
        assert [_text(one) if isinstance(one, str | None) else float(one) for one in line] == [
            text if isinstance(one, str | None) else float(text) for one, text in zip(line, texts, strict=True)
        ]


def _text(cell: object) -> str:
    return "" if cell is None else str(cell)


def _pictures(alice: Curl, folder: Path) -> None:
    for at in (0, 3):
        (folder / f"{at}.png").write_bytes(sample_image(at))
    taken = alice(INGEST, "-F", "file=@0.png", "-F", "file=@3.png").json
    assert (taken["jobType"], taken["files"]) == ("image", ["0.png", "3.png"])
    alice.until_done(taken["jobId"])
    rows = alice("GET /api/jobs/:jobId/items", job=taken["jobId"]).json["items"]
    assert [row["cells"]["sku"] for row in rows] == ["MIL-1001", "MIL-1004"]


def _scanned(alice: Curl, folder: Path) -> None:
    (folder / "inbox" / "monday.csv").write_text("SKU\nMIL-1002\n")
    source = {"source": str(folder / "inbox")}
    scanned = alice(SCAN, body=source).json
    [one] = scanned["taken"]
    assert (one["name"], scanned["already"], scanned["failed"]) == ("monday.csv", 0, [])
    assert alice.until_done(one["jobId"])["total_items"] == 1
    assert alice(SCAN, body=source).json == {"taken": [], "already": 1, "failed": [], "more": False}
    referred = alice(INGEST, body={"source": str(folder / "inbox" / "monday.csv")})
    assert (referred.status, referred.json["files"]) == (202, ["monday.csv"]), "an adapter may name the file, too"
    assert alice(SCAN, body={"source": str(folder)}).refusal == (403, "SOURCE_NOT_ALLOWED")


def _figures(alice: Curl) -> None:
    def told() -> bool:
        text = alice("GET /metrics").body.decode()
        return all(f"# TYPE penstock_{name} gauge" in text for name in METRICS) and all(
            f'penstock_{name}{{kind="csv",' in text for name in METRICS if name not in ("queue_depth", "pending_count")
        )

    until(told, "every figure of the seed is told, those of the workers with values")


def test_without_a_worker_kickoffs_do_it_and_uploads_can_be_switched_off(desk: Desk) -> None:
    with desk.serving("--no-worker") as asked_by:
        alice = asked_by["alice"]
        job = alice(INGEST, "-F", "file=@products.csv").json["jobId"]
        paused = alice(PAUSE, job=job, body={"reason": "the shop is closed"})
        assert (paused.status, paused.json["queue_state"]) == (200, "PAUSED")
        assert alice(KICKOFF, job=job).refusal == (409, "TRANSITION_REFUSED")
        assert alice(RESUME, job=job).json["queue_state"] == "QUEUED"
        done = alice.until_done(job, ask=KICKOFF)
        assert (done["processed_items"], done["failed_items"], done["not_found_items"]) == (39, 1, 2)
        used_up = alice(REPROCESS, job=job, body={"scope": "job"})
        assert used_up.refusal == (409, "NOTHING_TO_REPROCESS"), "all have had their tries, or failed for good"
        _waiting(asked_by, job)
        _again(alice, job, desk.shop)
    if not desk.in_full:
        return
    with desk.serving("--no-worker", DB_INGEST_ENABLED="false", PENDING_DASHBOARD_ENABLED="false") as asked_by:
        alice = asked_by["alice"]
        for answer in (alice(INGEST, "-F", "file=@products.csv"), alice(SCAN, body={"source": "/"})):
            assert answer.refusal == (503, "INGEST_DISABLED")
        assert alice(PENDING).refusal == (404, "PENDING_DASHBOARD_DISABLED")
        assert alice(PENDING_OF_JOB, job=job).json["items"] == [], "the tab of a job is always there"
        assert alice(JOB, job=job).json["queue_state"] == "DONE"
        assert alice(EXPORT_CSV, job=job).body.count(b"\n") == 40


def _waiting(asked_by: dict[str, Curl], job: str) -> None:
    """The failed ones are asked for again and wait; both lists have them, page by page."""
    alice = asked_by["alice"]
    again = {"scope": "job", "statuses": ["ERROR", "NOT_FOUND"], "resetAttempts": True, "permanent": True}
    asked = alice(REPROCESS, job=job, body=again)
    assert (asked.status, asked.json["run"], asked.json["processed_items"]) == (200, 2, 36)
    for line in (PENDING_OF_JOB, PENDING):
        whole = alice(line, job=job).json
        assert {row["position"] for row in whole["items"]} == {37, 38, 39}, line
        assert {(row["status"], row["attempts"], row["lockedBy"]) for row in whole["items"]} == {("PENDING", 0, None)}
        assert all("input" not in row for row in whole["items"]), "a summary, never the whole"
        in_twos = line.replace("pageSize=100", "pageSize=2")
        first = alice(in_twos, job=job).json
        second = alice(in_twos, job=job, after=first["next"]).json
        assert [row["id"] for row in (*first["items"], *second["items"])] == [row["id"] for row in whole["items"]]
        assert (len(first["items"]), second["next"]) == (2, None)
    assert len(alice(PENDING.replace("jobType=", "jobType=csv")).json["items"]) == 3
    assert alice(PENDING.replace("jobType=", "jobType=image")).json["items"] == []
    assert asked_by["bob"](PENDING).json["items"] == []
    assert asked_by["bob"](PENDING_OF_ALL).refusal == (403, "ADMINS_ONLY")
    assert {row["userId"] for row in asked_by["root"](PENDING_OF_ALL).json["items"]} == {"alice"}


def _again(alice: Curl, job: str, shop: Retailer) -> None:
    """They end as before; then the shop has one of them, and that one alone is asked for again."""
    assert alice.until_done(job, ask=KICKOFF)["not_found_items"] == 2
    missing = alice("GET /api/jobs/:jobId/items?statuses=NOT_FOUND", job=job).json["items"]
    [sundial] = [row for row in missing if row["inputSummary"]["sku"] == "XYZ-1"]
    shop.say(200, {"data": {"items": [SUNDIAL]}})
    asked = alice(REPROCESS, job=job, body={"scope": "items", "itemIds": [sundial["id"]], "resetAttempts": True})
    assert (asked.json["run"], asked.json["processed_items"]) == (3, 38)
    done = alice.until_done(job, ask=KICKOFF)
    assert (done["not_found_items"], done["failed_items"], done["processed_items"]) == (1, 1, 39)
    row = alice("GET /api/jobs/:jobId/items?page=37&pageSize=1&sort=position", job=job).json["items"][0]
    assert (row["id"], row["status"], row["cells"]["title"]) == (sundial["id"], "DONE", "Left-handed sundial")
