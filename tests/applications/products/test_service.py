"""Products from the file to the result: rows and pictures, found, not found and bad."""

from __future__ import annotations

import io
import zipfile
from collections import Counter
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from PIL import Image

from penstock import ItemStatus, Penstock
from penstock.app import Files
from penstock.errors import ConfigurationError, InvalidInput, NotAllowed, PayloadTooLarge, StoreUnavailable
from penstock.ingest import UploadOptions
from penstock.settings import read_settings
from penstock_apps.products.application import products as products_application
from penstock_apps.products.kinds import COLUMNS
from penstock_apps.products.retailer import CATALOGUE, sample_csv, sample_image
from penstock_apps.products.settings import ProductSettings
from tests.applications.products.conftest import Market

KETTLE = CATALOGUE[0]


def statuses(market: Market, taken: Any) -> Counter[str]:
    return Counter(item.status.value for item in market.app.items.list(taken.job.id, limit=1000))


def code_of(market: Market, *files: tuple[str, bytes], **other: Any) -> str:
    with pytest.raises((InvalidInput, NotAllowed)) as refused:
        market.take(*files, **other)
    return refused.value.code


def archive(*members: tuple[str, bytes]) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as packed:
        for name, content in members:
            packed.writestr(name, content)
    return written.getvalue()


def dot(at: int) -> bytes:
    """A tiny picture like no other, with no barcode in it."""
    written = io.BytesIO()
    Image.new("RGB", (1, 1), (at % 256, at // 256, 0)).save(written, "PNG")
    return written.getvalue()


def test_a_table_becomes_rows_and_each_row_a_result_in_the_grids_shape(market: Market) -> None:
    taken = market.take(("products.csv", sample_csv()))
    assert taken.job_type == "csv"
    assert taken.report.mapping is not None
    assert taken.report.mapping["EAN-13"] == "gtin"
    assert taken.report.mapping["Lagerort"] is None
    market.work()
    assert statuses(market, taken) == {"DONE": 36, "NOT_FOUND": 2, "ERROR": 1}
    items = market.app.items.list(taken.job.id, limit=1000)
    results = [item.result for item in items if item.status is ItemStatus.DONE]
    assert all(isinstance(one, dict) and set(one) == set(COLUMNS) for one in results)
    first: Any = results[0]
    assert (first["sku"], first["gtin"], first["price"], first["currency"], first["retailer"]) == (
        KETTLE["id"], KETTLE["ean"], KETTLE["offers"][0]["price"], "EUR", "demo",
    )  # fmt: skip
    assert first["matched_by"] == "sku"
    assert first["score"] == 1.0
    bad = items[-1]
    assert bad.error_code == "ROW_HAS_NO_PRODUCT"
    assert bad.last_error is not None
    assert "row 40" in bad.last_error
    assert bad.input["cells"]["EAN-13"] == "4,00638E+12"


def test_a_row_that_cannot_be_read_is_an_item_and_the_rest_goes_on(market: Market) -> None:
    table = f"sku,title\n{KETTLE['id']},Kettle\nX,Y,one,too,many\n{CATALOGUE[1]['id']},Bread knife\n"
    taken = market.take(("products.csv", table.encode()))
    market.work()
    items = market.app.items.list(taken.job.id)
    assert [item.status.value for item in items] == ["DONE", "ERROR", "DONE"]
    assert items[1].error_code == "ROW_TOO_LONG"
    assert "row 3" in (items[1].last_error or "")


def test_a_shop_that_is_busy_is_asked_again(market: Market) -> None:
    market.shop.throttle(times=1, retry_after="0")
    taken = market.take(("products.csv", f"sku\n{KETTLE['id']}\n".encode()))
    market.work()
    assert statuses(market, taken) == {"DONE": 1}
    assert [(one.outcome, one.attempt) for one in market.events(taken)] == [("PROVIDER_THROTTLED", 1), ("FOUND", 2)]
    gauges = market.products.gauges()["providers"]["demo"]
    assert 0 < gauges["throttle_rate"] < 1


def test_a_plan_goes_on_behind_the_rows_it_has(market: Market) -> None:
    taken = market.take(("products.csv", sample_csv()))
    plan: Any = market.app.kinds.get("csv").plan
    job = SimpleNamespace(params=market.app.jobs.get(taken.job.id).params)
    whole = [one.input["row"] for one in plan(job, 0)]
    assert whole == list(range(2, 41)), "the headers are row 1"
    assert [one.input["row"] for one in plan(job, 37)] == [39, 40]


def test_pictures_are_looked_up_by_their_barcodes(market: Market) -> None:
    taken = market.take(("kettle.png", sample_image(0)), ("knife.png", sample_image(1)))
    assert (taken.job_type, taken.report.files, taken.report.mapping) == ("image", ("kettle.png", "knife.png"), None)
    market.work()
    results: list[Any] = [item.result for item in market.app.items.list(taken.job.id)]
    assert [(one["gtin"], one["matched_by"]) for one in results] == [
        (CATALOGUE[0]["ean"], "gtin"), (CATALOGUE[1]["ean"], "gtin"),
    ]  # fmt: skip


def test_an_archive_is_read_picture_by_picture_and_a_bad_one_says_why(market: Market) -> None:
    packed = archive(("a.png", sample_image(2)), ("notes.txt", b"no picture"), ("b/c.png", sample_image(3)))
    taken = market.take(("photos.zip", packed))
    market.work()
    items = market.app.items.list(taken.job.id)
    assert [item.status.value for item in items] == ["DONE", "ERROR", "DONE"]
    assert [one["picture"] for item in items if isinstance(one := item.input, dict)] == [
        "a.png",
        "notes.txt",
        "b/c.png",
    ]
    assert items[1].error_code == "NOT_AN_IMAGE"
    assert isinstance(items[2].result, dict)
    assert items[2].result["gtin"] == CATALOGUE[3]["ean"]
    plan: Any = market.app.kinds.get("image").plan
    job = SimpleNamespace(params=market.app.jobs.get(taken.job.id).params, owner="ada")
    [last] = plan(job, 2)
    assert last.input == items[2].input
    assert set(last.input) == {"row", "picture", "sha256"}


def test_an_archive_is_read_once_by_the_plan_and_never_by_an_item(
    market: Market, monkeypatch: pytest.MonkeyPatch
) -> None:
    size, bad = 300, 123
    monkeypatch.setattr("os.fsync", lambda _: None)  # hundreds of files, and no power cut to survive
    pictures = [(f"{at}.png", dot(at) if at != bad else b"no picture") for at in range(1, size + 1)]
    taken = market.take(("photos.zip", archive(*pictures)))
    kept: list[str] = []
    keep = Files.keep

    def keep_and_lose_the_archive(*given: Any, **said: Any) -> Any:
        """The second half of the plan is done by a try that goes on; then the archive is gone."""
        kept.append(said["name"])
        if len(kept) == 200:
            raise StoreUnavailable("the database went away")
        stored = keep(*given, **said)
        if said["name"] == f"{size} of photos.zip":
            market.app.files.path(UUID(params["file_id"])).unlink()
        return stored

    params: Any = market.app.jobs.get(taken.job.id).params
    monkeypatch.setattr(Files, "keep", keep_and_lose_the_archive)
    market.work()
    items = market.app.items.list(taken.job.id, limit=1000)
    about: list[Any] = [item.input for item in items]
    assert [(one["row"], one["picture"]) for one in about] == [(at, f"{at}.png") for at in range(1, size + 1)]
    assert [one["row"] for one in about if "sha256" not in one] == [bad]
    assert len({one["sha256"] for one in about if "sha256" in one}) == size - 1
    codes = Counter(item.error_code for item in items)
    assert codes == {"NO_BARCODE": size - 1, "NOT_AN_IMAGE": 1}
    assert items[bad - 1].status is ItemStatus.ERROR
    # What was persisted before the failure was not kept again.
    assert kept.count("1 of photos.zip") == 1
    assert size <= len(kept) < 2 * size


def test_a_name_that_is_none_for_a_file_does_not_stop_an_archive(market: Market) -> None:
    taken = market.take(("photos.zip", archive((" ", sample_image(0)), ("a\\", sample_image(1)))))
    market.work()
    assert statuses(market, taken) == {"DONE": 2}


@pytest.mark.parametrize("retailers", [""])
def test_without_a_retailer_items_say_what_to_configure(market: Market) -> None:
    taken = market.take(("products.csv", b"sku\nA-1\n"))
    market.work()
    [item] = market.app.items.list(taken.job.id)
    assert (item.status.value, item.error_code) == ("ERROR", "NO_PROVIDER")
    assert "PRODUCT_PROVIDERS" in (item.last_error or "")
    assert market.shop.calls == []


def test_a_job_that_found_nothing_is_run_again_with_other_questions(market: Market) -> None:
    table = b"sku,gtin,title\nNONE-1,4006381333931,Left-handed sundial\n"
    taken = market.take(("products.csv", table))
    market.work()
    assert [one.strategy for one in market.events(taken)] == ["sku", "gtin"]
    market.app.jobs.reprocess(taken.job.id)
    market.work()
    assert [one.strategy for one in market.events(taken)] == ["sku", "gtin", "title", "sku"]


def test_files_that_make_no_job_are_refused_with_a_code(market: Market) -> None:
    table, picture = ("a.csv", b"sku\n1\n"), ("a.png", sample_image())
    assert code_of(market) == "FILE_MISSING"
    assert code_of(market, table, picture) == "MIXED_FILES"
    assert code_of(market, table, ("b.csv", b"sku\n2\n")) == "TOO_MANY_FILES"
    assert code_of(market, *[("a.png", b"x")] * 1001) == "TOO_MANY_FILES"
    assert code_of(market, table, options=UploadOptions(job_type="image")) == "JOB_TYPE_WRONG"
    assert code_of(market, picture, options=UploadOptions(job_type="csv")) == "JOB_TYPE_WRONG"
    assert code_of(market, table, options=UploadOptions(job_type="pdf")) == "JOB_TYPE_UNKNOWN"
    assert code_of(market, ("a.csv", b"colour,size\nred,3\n")) == "NO_PRODUCT_COLUMN"
    assert market.app.jobs.list() == []


def test_a_file_over_the_bound_is_refused(market: Market) -> None:
    small = market.app.settings.model_copy(update={"ingest_max_file_bytes": 10})
    app = Penstock(settings=small)
    products = app.install(products_application, ProductSettings())
    market.products = products
    with pytest.raises(PayloadTooLarge) as refused:
        market.take(("a.csv", b"sku\n" + b"1\n" * 100))
    assert refused.value.code == "FILE_TOO_LARGE"
    app.close()


def test_the_same_key_gives_the_same_job(market: Market) -> None:
    first = market.take(("a.csv", b"sku\n1\n"), idempotency_key="k")
    again = market.take(("a.csv", b"sku\n1\n"), idempotency_key="k")
    other = market.take(("a.csv", b"sku\n1\n"), idempotency_key="k", user="bob")
    assert first.report.is_new
    assert not again.report.is_new
    assert first.job.id == again.job.id != other.job.id


@pytest.mark.parametrize("text", ["0", "-1", "many", "101", ""])
def test_attempts_are_a_whole_number(text: str) -> None:
    with pytest.raises(ConfigurationError, match="MAX_ATTEMPTS_NOT_FOUND"):
        read_settings(ProductSettings, MAX_ATTEMPTS_NOT_FOUND=text)
    assert read_settings(ProductSettings, MAX_ATTEMPTS_ERROR="7").max_attempts_error == 7


def test_nul_and_broken_unicode_in_a_table_or_a_name_are_said_of_their_row_alone(market: Market) -> None:
    table = sample_csv().splitlines(keepends=True)
    rows = [table[0], table[1], b"a\0b" + table[1], b"\xed\xa0\x80" + table[1], table[2]]
    taken = market.take(("caf\udce9\0.csv", b"".join(rows)))
    picture = market.take(("bad\ud800.png", dot(7)))
    market.work()
    job = market.app.jobs.get(taken.job.id)
    assert (job.state.value, job.progress.total) == ("succeeded", 4)
    codes = [item.error_code for item in market.app.items.list(taken.job.id)]
    assert codes == [None, "ROW_UNREADABLE", "ROW_UNREADABLE", None]
    assert [item.error_code for item in market.app.items.list(picture.job.id)] == ["NO_BARCODE"]


def test_a_question_that_no_shop_understands_is_no_try_of_a_row(market: Market) -> None:
    [retailer] = market.products._retailers
    search = {"text": f"{market.shop.address}/search?q={{text}}"}
    retailer._settings = retailer._settings.model_copy(update={"url": search})
    rows = f"sku,gtin,brand,title\n{KETTLE['id']},{KETTLE['ean']},Millrace,Kettle 1.7 l\nK-1,,,\n"
    taken = market.take(("products.csv", rows.encode()))
    market.work()
    found, unasked = market.app.items.list(taken.job.id)
    result: Any = found.result
    assert (found.status.value, found.attempts, result["matched_by"]) == ("DONE", 1, "brand_title")
    assert (unasked.status.value, unasked.error_code) == ("ERROR", "NO_PROVIDER_UNDERSTANDS")
    assert len(market.events(taken)) == 1
