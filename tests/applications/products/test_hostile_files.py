"""Files that would take the server's memory or its time: read elsewhere, ended there, and said with a code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock import ItemStatus
from penstock.app import Limits
from penstock.errors import InvalidInput
from penstock.ingest import look_at_file, table_limits
from penstock_apps.products import file_reader, intake, kinds
from penstock_apps.products.planning import TableToRead, table_pieces
from penstock_apps.products.retailer import sample_image
from tests.applications.products.conftest import Market
from tests.applications.products.hostile_files import flat_png, workbook_of_strings, zip_of
from tests.applications.products.misbehaving import end_itself, hang, hang_after_a_row
from tests.http.conftest import on_sqlite, serving

MEBIBYTE = 1 << 20
_IN_ONE_PROCESS = """
import json, sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from penstock import Penstock, load_settings
from penstock.ingest import HandedFile, Sender, UploadOptions
from penstock_apps.products.application import products
from penstock_apps.products.service import Products

folder = Path(sys.argv[1])
settings = load_settings(database_url=f"sqlite:///{folder}/penstock.db", files_directory=folder / "files")
app = Penstock(settings=settings)
application = app.install(replace(products, install=partial(Products, backoff="10ms fixed")))
with open(folder / "pictures.zip", "rb") as file:
    job = application.intake.take_files([HandedFile(file, "pictures.zip")], UploadOptions(), Sender("ada")).jobs[0]
assert app.drain(timeout=100)
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
codes = sorted(item.error_code for item in app.items.list(job.id))
loaded = [name for name in ("PIL", "zxingcpp") if name in sys.modules]
print(json.dumps({"peak": int(peak.split()[1]) * 1024, "codes": codes, "loaded": loaded}))
app.close()
"""


def test_a_server_with_its_worker_stays_small_and_decodes_nothing(tmp_path: Path) -> None:
    """Pictures of forty megapixels take 160 MB each where they are decoded, and nothing here."""
    bomb = flat_png(8_000, 5_000)
    archive = zip_of(*((f"{number}.png", bomb) for number in range(2)), ("good.png", sample_image(0)))
    assert len(archive) < 2 * MEBIBYTE
    (tmp_path / "pictures.zip").write_bytes(archive)
    done = subprocess.run(
        [sys.executable, "-c", _IN_ONE_PROCESS, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
        env=os.environ | {"MAX_ATTEMPTS_NOT_FOUND": "1"},
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["codes"] == ["NO_BARCODE"] * 2 + ["NO_PROVIDER"]
    assert found["loaded"] == []
    assert found["peak"] < 160 * MEBIBYTE, f"{found['peak'] / MEBIBYTE:.0f} MiB"


@pytest.fixture
def narrow_market(market: Market) -> Market:
    """One where a picture may take little."""
    limits = Limits(timeout=20.0, memory_bytes=128 * MEBIBYTE)
    market.products.intake._files._picture_limits = limits
    return market


@on_sqlite
def test_a_picture_that_takes_too_much_memory_fails_with_a_code_and_the_others_go_on(narrow_market: Market) -> None:
    market = narrow_market
    taken = market.take(("all.zip", zip_of(("bomb.png", flat_png(8_000, 6_000)), ("good.png", sample_image(0)))))
    market.work()
    items = {item.position: item for item in market.app.items.list(taken.job.id)}
    assert (items[1].status, items[1].error_code) == (ItemStatus.ERROR, "IMAGE_TOO_COMPLEX")
    assert items[1].attempts == 1, "no other try would change that"
    assert items[2].status is ItemStatus.DONE


@on_sqlite
def test_a_picture_over_which_the_decoder_dies_is_its_own_failure(
    market: Market, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_reader, "read_barcodes", end_itself)
    taken = market.take(("a.png", sample_image(0)))
    market.work()
    [item] = market.app.items.list(taken.job.id)
    assert (item.status, item.error_code, item.attempts) == (ItemStatus.ERROR, "IMAGE_CRASHES_READER", 3)


@on_sqlite
def test_a_workbook_that_takes_too_much_memory_is_refused_at_the_door(market: Market) -> None:
    limits = {"ingest_memory_bytes": 96 * MEBIBYTE}
    market.app._runtime._settings = market.app.settings.model_copy(update=limits)
    with serving(market.app, worker=False) as served:
        files = {"file": ("bomb.xlsx", workbook_of_strings(400_000))}
        answer = served.client().post("/api/jobs", files=files)
    assert (answer.status_code, answer.json()["code"]) == (422, "FILE_TOO_COMPLEX")
    assert market.app.jobs.list() == []


@pytest.mark.parametrize(("function", "code"), [(hang, "FILE_TOO_COMPLEX"), (end_itself, "FILE_CRASHES_READER")])
@on_sqlite
def test_a_look_that_does_not_end_or_crashes_is_a_refusal(
    market: Market, monkeypatch: pytest.MonkeyPatch, function: object, code: str
) -> None:
    monkeypatch.setattr(intake, "look_at_files", function)
    market.app._runtime._settings = market.app.settings.model_copy(update={"ingest_look_seconds": 0.2})
    with pytest.raises(InvalidInput) as caught:
        market.take(("a.csv", b"sku\n1\n"))
    assert (caught.value.code, caught.value.field) == (code, "file")


@on_sqlite
def test_a_table_whose_next_rows_never_come_ends_its_job(market: Market, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = market.take(("a.csv", b"sku\n1\n"))
    monkeypatch.setattr(kinds, "table_pieces", hang_after_a_row)
    market.app._runtime._settings = market.app.settings.model_copy(update={"ingest_read_seconds": 0.2})
    market.work()
    job = market.app.jobs.get(taken.job.id)
    assert (job.state.value, job.error_code) == ("failed", "FILE_TOO_COMPLEX")


@on_sqlite
def test_a_table_comes_out_of_its_process_as_it_would_be_read_here(market: Market, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(b"sku;gtin\n" + b"".join(b"%d;x\n" % number for number in range(1_201)) + b";x\na;b;c\n")
    limits = table_limits(market.app.settings)
    shape = look_at_file(path, path.name, limits).shape
    assert shape is not None
    mapping: dict[str, str | None] = {"sku": "sku", "gtin": "gtin"}
    for after in (0, 700, 1_203):
        table = TableToRead(path, shape, limits, mapping, after)
        read_here = [row for piece in table_pieces(table) for row in piece]
        pieces = market.products.intake._files.stream(table_pieces, table)
        assert [row for piece in pieces for row in piece] == read_here
        assert len(read_here) == 1_203 - after
