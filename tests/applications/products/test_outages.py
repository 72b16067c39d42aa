"""A retailer that is out of order for a while: nobody is told that a product is not there before it was looked for."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from penstock import Penstock, Settings
from penstock.worker import ProviderDelay
from penstock.worker.control import hold_off
from penstock_apps.products import call_pacing
from penstock_apps.products.retailer import CATALOGUE, Retailer, demo_retailer
from penstock_apps.products.settings import ProductSettings
from tests.applications.products.conftest import IMPATIENT, Market

ROWS = 6
KETTLE = CATALOGUE[0]
TABLE = (
    "sku,title\n" + "".join(f"{one['id']},no such thing {at}\n" for at, one in enumerate(CATALOGUE[:ROWS]))
).encode()
"""Each row is found by its number and by nothing else."""


@pytest.fixture(autouse=True)
def _short_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Delays double as ever, but begin with a millisecond; and nobody waits inside a call, nor the worker for long."""
    monkeypatch.setattr(call_pacing, "ProviderDelay", partial(ProviderDelay, first_delay=0.001, longest_delay=0.02))
    monkeypatch.setattr(call_pacing, "_MOMENT", 0.0)
    monkeypatch.setattr(hold_off, "_LONGEST_SECONDS", 0.01)


@contextmanager
def opened(settings: Settings, folder: Path, shop: Retailer, *shops: dict[str, Any], **tries: int) -> Iterator[Market]:
    """The application, which knows these shops."""
    described = folder / "shops.json"
    described.write_text(json.dumps(shops))
    app = Penstock(settings=settings)
    market = Market(app, app.install(IMPATIENT, ProductSettings(providers=str(described), **tries)), shop, folder)
    app.system.migrate()
    try:
        yield market
    finally:
        app.close()


TROUBLE: dict[str, Callable[[Retailer], None]] = {
    "fails": lambda shop: shop.fail(times=20, status=500),
    "is overloaded": lambda shop: shop.fail(times=20, status=503),
    "refuses": lambda shop: shop.throttle(times=20, retry_after="0"),
    "does not answer": lambda shop: shop.hang(times=12),
}


@pytest.mark.parametrize("trouble", TROUBLE)
def test_a_shop_that_comes_back_has_every_product_it_has(settings: Settings, tmp_path: Path, trouble: str) -> None:
    with demo_retailer() as shop:
        TROUBLE[trouble](shop)
        with opened(settings, tmp_path, shop, shop.configuration(timeout_seconds=0.2)) as market:
            taken = market.take(("products.csv", TABLE))
            market.work()
            items = market.app.items.list(taken.job.id, limit=1000)
            events = market.events(taken)
            gauges = market.products.gauges()["providers"]["demo"]
    assert Counter(item.status.value for item in items) == {"DONE": ROWS}
    assert {(item.result["matched_by"], item.result["sku"]) for item in items} == {
        ("sku", one["id"]) for one in CATALOGUE[:ROWS]
    }
    assert {event.strategy for event in events} == {"sku"}, "another question was asked before the first was answered"
    assert Counter(event.outcome == "FOUND" for event in events)[True] == ROWS
    assert len(events) == len(shop.calls), "every call is an event, those that found the outage going on too"
    # More calls failed than all items together have tries, but only those that met the outage first have lost one.
    assert max(item.attempts for item in items) <= 2
    assert gauges["throttle_rate"] > 0


def test_a_question_without_an_answer_is_asked_again_and_uses_up_no_other(settings: Settings, tmp_path: Path) -> None:
    table = f"sku,gtin,title\nNONE-1,{KETTLE['ean']},no such thing\n".encode()
    with demo_retailer() as shop, opened(settings, tmp_path, shop, shop.configuration()) as market:
        shop.fail(status=500)
        taken = market.take(("products.csv", table))
        market.work()
        [item] = market.app.items.list(taken.job.id)
        events = [(one.strategy, one.outcome) for one in market.events(taken)]
    assert events == [("sku", "PROVIDER_UNAVAILABLE"), ("sku", "NOT_FOUND"), ("gtin", "FOUND")]
    assert (item.status.value, item.attempts) == ("DONE", 3)


def test_a_later_run_asks_what_was_not_answered_too(settings: Settings, tmp_path: Path) -> None:
    table = f"sku,title\n{KETTLE['id']},no such thing\n".encode()
    with demo_retailer() as shop:
        impatient = shop.configuration(outage_seconds=0)
        with opened(settings, tmp_path, shop, impatient, max_attempts_error=1) as market:
            shop.fail(status=500)
            taken = market.take(("products.csv", table))
            market.work()
            [failed] = market.app.items.list(taken.job.id)
            market.app.jobs.reprocess(taken.job.id)
            market.work()
            [item] = market.app.items.list(taken.job.id)
            strategies = [one.strategy for one in market.events(taken)]
    assert (failed.status.value, failed.error_code) == ("ERROR", "PROVIDER_UNAVAILABLE")
    assert (item.status.value, strategies) == ("DONE", ["sku", "sku"])


def test_a_shop_that_never_comes_back_ends_in_errors_and_not_in_not_found(settings: Settings, tmp_path: Path) -> None:
    with demo_retailer() as shop:
        gone = shop.configuration(outage_seconds=0)
    with opened(settings, tmp_path, shop, gone) as market:
        taken = market.take(("products.csv", TABLE))
        market.work()
        items = market.app.items.list(taken.job.id, limit=1000)
    assert Counter((item.status.value, item.error_code) for item in items) == {("ERROR", "PROVIDER_UNAVAILABLE"): ROWS}
    assert {item.attempts for item in items} == {3}


def test_one_shop_that_is_out_of_order_does_not_hide_what_another_has(settings: Settings, tmp_path: Path) -> None:
    with demo_retailer() as broken, demo_retailer() as shop:
        broken.fail(times=1000, status=500)
        shops = (broken.configuration("broken", priority=0), shop.configuration())
        with opened(settings, tmp_path, shop, *shops) as market:
            taken = market.take(("products.csv", TABLE))
            market.work()
            items = market.app.items.list(taken.job.id, limit=1000)
    assert Counter((item.status.value, item.result["retailer"]) for item in items) == {("DONE", "demo"): ROWS}
