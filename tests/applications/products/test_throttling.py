"""A shop that wants to be left alone: only an item that really was refused loses a try."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from penstock import Item, Penstock, Settings
from penstock_apps.products import call_pacing
from penstock_apps.products.repository import SearchEvent
from penstock_apps.products.retailer import CATALOGUE, Retailer, demo_retailer
from penstock_apps.products.settings import ProductSettings
from tests.applications.products.conftest import IMPATIENT, Market

ITEMS = 30
TABLE = ("sku\n" + "".join(f"{one['id']}\n" for one in CATALOGUE[:ITEMS])).encode()


@pytest.fixture(autouse=True)
def _nobody_waits_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second is waited out by the call itself; here everybody goes back instead."""
    monkeypatch.setattr(call_pacing, "_MOMENT", 0.0)


def worked_off(
    settings: Settings, folder: Path, attempts: int, *shops: dict[str, object], shop: Retailer
) -> tuple[list[Item], list[SearchEvent]]:
    """The items of a table, each with so many tries, and all that was asked for them."""
    described = folder / "shops.json"
    described.write_text(json.dumps(shops))
    app = Penstock(settings=settings)
    tries = ProductSettings(max_attempts_error=attempts, providers=str(described))
    market = Market(app, app.install(IMPATIENT, tries), shop, folder)
    app.system.migrate()
    try:
        taken = market.take(("products.csv", TABLE))
        market.work()
        return list(app.items.list(taken.job.id, limit=1000)), market.events(taken)
    finally:
        app.close()


@pytest.mark.parametrize(("attempts", "lost"), [(1, 1), (2, 0)])
def test_only_the_item_that_was_refused_loses_a_try(
    settings: Settings, tmp_path: Path, attempts: int, lost: int
) -> None:
    with demo_retailer() as shop:
        shop.throttle(times=1, retry_after="1")
        # One call at a time: the refusal is known before the others ask.
        one_by_one = shop.configuration(concurrency=1)
        items, events = worked_off(settings, tmp_path, attempts, one_by_one, shop=shop)
    assert Counter(item.status.value for item in items) == Counter(DONE=ITEMS - lost) + Counter(ERROR=lost)
    # Who was not asked made no event and no try.
    assert Counter(event.outcome for event in events) == {"PROVIDER_THROTTLED": 1, "FOUND": ITEMS - lost}
    assert len(events) == len(shop.calls)
    assert Counter(item.attempts for item in items) == (
        {1: ITEMS} if attempts == 1 else {1: ITEMS - 1, 2: 1}
    )  # fmt: skip


def test_a_shop_without_an_address_for_the_question_makes_no_event(settings: Settings, tmp_path: Path) -> None:
    with demo_retailer() as shop:
        mute = shop.configuration("mute", priority=0, url={"gtin": f"{shop.address}/products?gtin={{gtin}}"})
        items, events = worked_off(settings, tmp_path, 1, mute, shop.configuration(), shop=shop)
    assert {item.status.value for item in items} == {"DONE"}
    assert Counter(event.provider for event in events) == {"demo": ITEMS}
