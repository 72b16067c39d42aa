"""Ten thousand photos: every answer about a job is true while it runs, and a cancel in the middle is heard at once."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx2
import pytest
from PIL import Image

from penstock import ItemStatus, Penstock, load_settings
from penstock_apps.catalogs.application import catalogs as catalogs_application
from penstock_apps.catalogs.settings import CatalogSettings
from tests.http.conftest import SECRET, Served, serving
from tests.sizes import size

PHOTOS, LOOKS, COPIES = size(1_000, 10_000), 40, size(50, 500)
PATIENCE, EVERY, QUIET_WITHIN = 100.0, 0.02, 2.0
RANKS = {"queued": 0, "running": 1, "completed": 2}
NEVER_BACK = ("current", "total", "percent", "batches_completed", "batches_total")
OPEN = (ItemStatus.PENDING, ItemStatus.PROCESSING)
Answer = dict[str, Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Forty pictures, each many times with another comment in it; the last five hundred are the same to the byte."""
    looks = [_picture(number) for number in range(LOOKS)]
    for number in range(PHOTOS):
        inside = tmp_path / "photos" / f"{number // 1000}"
        inside.mkdir(parents=True, exist_ok=True)
        bytes_of = _commented(looks[number % LOOKS], min(number, PHOTOS - COPIES))
        (inside / f"{number:05}.jpg").write_bytes(bytes_of)
    return tmp_path / "photos"


@pytest.fixture
def served(folder: Path, tmp_path: Path) -> Iterator[Served]:
    """A server with the catalogs, on an embedded database."""
    settings = load_settings(
        database_url=f"sqlite:///{tmp_path}/penstock.db", files_directory=tmp_path / "files", jwt_secret=SECRET
    )
    app = Penstock(settings=settings)
    app.install(
        catalogs_application, CatalogSettings(roots=(folder.resolve(),), thumbnails_directory=tmp_path / "thumbnails")
    )
    app.system.migrate()
    with serving(app, worker=True) as one:
        yield one
    app.close()


def _picture(number: int) -> bytes:
    """A JPEG of 16 by 16 that looks like no other."""
    picture = Image.new("L", (16, 16))
    picture.putdata([(number * 97 + at * at * (number + 3) + at * 31) % 256 for at in range(256)])
    kept = io.BytesIO()
    picture.save(kept, "JPEG", quality=90)
    return kept.getvalue()


def _commented(picture: bytes, number: int) -> bytes:
    """The same JPEG with a comment behind its first marker: other bytes, the same looks."""
    comment = f"photo {number}".encode()
    return picture[:2] + b"\xff\xfe" + (len(comment) + 2).to_bytes(2) + comment + picture[2:]


class Watched:
    """A job that is asked about until something is so; every answer on the way is checked."""

    def __init__(self, served: Served, client: httpx2.Client, address: str, **options: Any) -> None:
        started = client.post(address, json=options or None)
        assert started.status_code == 202, started.text
        self.id = UUID(started.json()["job_id"])
        self._app = served.app
        self._client = client
        self._pause = threading.Event()
        self.answers: list[Answer] = []

    def until(self, holds: Callable[[Answer], bool]) -> Answer:
        """The first answer of which this is so."""
        deadline = time.monotonic() + PATIENCE
        while True:
            answer: Answer = self._client.get(f"/api/jobs/{self.id}").json()
            self._check(answer)
            self.answers.append(answer)
            if holds(answer):
                return answer
            assert time.monotonic() < deadline, f"waited in vain: {answer}"
            self._pause.wait(EVERY)

    def completed(self) -> Answer:
        """Its last answer."""
        last = self.until(lambda answer: answer["status"] == "completed")
        assert any(one["status"] == "running" for one in self.answers), "it was over before anybody looked"
        return last

    def _check(self, answer: Answer) -> None:
        progress, completed = answer["progress"], answer["status"] == "completed"
        assert answer["status"] in RANKS, answer
        assert 0 <= progress["current"] <= progress["total"]
        assert (progress["percent"] == 100) is completed, answer
        if completed:
            assert progress["current"] == progress["total"]
            assert self._app.items.list(self.id, statuses=OPEN, limit=1) == [], "completed while an item was open"
        if self.answers:
            self._compare(self.answers[-1], answer)

    def _compare(self, before: Answer, now: Answer) -> None:
        assert RANKS[before["status"]] <= RANKS[now["status"]]
        for name in NEVER_BACK:
            was, is_ = before["progress"][name], now["progress"][name]
            assert was is None or (is_ is not None and was <= is_), f"{name} went from {was} to {is_}"
        assert before["failed_items"] <= now["failed_items"]

    def positions(self, *statuses: ItemStatus) -> set[int]:
        """The items of these statuses."""
        found: set[int] = set()
        after = 0
        while page := self._app.items.list(self.id, statuses=statuses, after=after):
            found.update(one.position for one in page)
            after = page[-1].position
        return found


@pytest.mark.slow
def test_ten_thousand_photos_with_a_status_that_never_lies(served: Served, folder: Path, tmp_path: Path) -> None:
    ada = served.client()
    made = ada.post("/api/catalogs", json={"name": "Many", "source_directories": [str(folder)]})
    address = f"/api/catalogs/{made.json()['id']}"
    scanned = Watched(served, ada, f"{address}/scan").completed()
    assert (scanned["result"]["processed"], scanned["result"]["new"], scanned["result"]["errors"]) == (
        PHOTOS, PHOTOS, 0,
    )  # fmt: skip
    left = PHOTOS - _cancelled_in_the_middle(Watched(served, ada, f"{address}/thumbnails", sizes=[16]), ada)
    thumbnails = Watched(served, ada, f"{address}/thumbnails", sizes=[16]).completed()["result"]
    assert (thumbnails["status"], thumbnails["errors"]) == ("completed", 0)
    assert left - COPIES <= thumbnails["processed"] <= left, "only those that were not there yet"
    contents = PHOTOS - COPIES + LOOKS
    assert len(list((tmp_path / "thumbnails").rglob("*.jpg"))) == contents
    copies = Watched(served, ada, f"{address}/detect-duplicates").completed()["result"]
    assert (copies["photos"], copies["copies"]) == (PHOTOS, PHOTOS - copies["groups"])
    assert 1 < copies["groups"] <= LOOKS


def _cancelled_in_the_middle(job: Watched, ada: httpx2.Client) -> int:
    """Stop a job once some of its items have ended; the answer is how many were done."""
    job.until(lambda answer: answer["progress"]["current"] > 0)
    answer = ada.delete(f"/api/jobs/{job.id}", params={"reason": "enough"})
    quiet_by = time.monotonic() + QUIET_WITHIN
    assert answer.status_code == 200, answer.text
    killed = answer.json()
    started = job.positions(ItemStatus.PROCESSING, ItemStatus.DONE)
    while job.positions(ItemStatus.PROCESSING):
        assert time.monotonic() < quiet_by, "something still runs"
    done = job.positions(ItemStatus.DONE)
    assert done <= started, "an item began after the cancel"
    at_kill = killed["progress_at_kill"]
    assert 0 < at_kill["processed"] <= len(done) < at_kill["total"] == PHOTOS, "not in the middle"
    seen = ada.get(f"/api/jobs/{job.id}").json()
    for one in (killed, seen):
        assert (one["status"], one["killed_by"], one["killed_reason"]) == ("killed", "user", "enough")
        assert (one["killed_at"], one["progress_at_kill"]) == (killed["killed_at"], at_kill)
        assert one["progress"]["percent"] < 100
    assert seen["progress"]["current"] == len(done)
    return len(done)
