"""Retailers: which answers are believed, who is asked when, and what becomes of a shop's bad day."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock import Permanent, Retryable
from penstock.errors import ConfigurationError, HandlerError, Postponed
from penstock_apps.products.call_pacing import CallPacing
from penstock_apps.products.headers import map_headers
from penstock_apps.products.http_json import (
    LARGEST_ANSWER,
    HttpJsonProvider,
    load_providers,
)
from penstock_apps.products.products import Product, Unusable
from penstock_apps.products.provider_settings import parse_retailers
from penstock_apps.products.providers import (
    FoundProduct,
    ProviderCall,
    Providers,
    StillInTrouble,
    best_match,
    score,
)
from penstock_apps.products.retailer import CATALOGUE, Retailer, demo_retailer, sample_csv
from penstock_apps.products.strategies import Query, Strategy, choose_query, queries_for
from tests.applications.products.rows import normalize_row

KETTLE = CATALOGUE[0]
BY_GTIN = Query(Strategy.GTIN, KETTLE["ean"], gtin=KETTLE["ean"])


@pytest.fixture(scope="module")
def open_shop() -> Iterator[Retailer]:
    with demo_retailer() as shop:
        yield shop


@pytest.fixture
def shop(open_shop: Retailer) -> Iterator[Retailer]:
    open_shop.calls.clear()
    open_shop.seen_headers.clear()
    yield open_shop
    open_shop._next.clear()


def described(shop: Retailer, environment: dict[str, str] | None = None, **other: Any) -> HttpJsonProvider:
    [settings] = parse_retailers(json.dumps([shop.configuration(**other)]).encode(), environment or {})
    return HttpJsonProvider(settings)


def ask(provider: HttpJsonProvider, *asked: Query) -> list[FoundProduct | HandlerError | None]:
    """Every answer, or the error in its place."""

    async def all_of_them() -> list[FoundProduct | HandlerError | None]:
        answers: list[FoundProduct | HandlerError | None] = []
        for query in asked:
            try:
                answers.append(await provider.look_up(query))
            except HandlerError as error:
                answers.append(error)
        await provider.close()
        return answers

    return asyncio.run(all_of_them())


def refused(provider: HttpJsonProvider, query: Query = BY_GTIN) -> tuple[type, str, float | None]:
    [error] = ask(provider, query)
    assert isinstance(error, HandlerError)
    return type(error), error.code, getattr(error, "retry_after", None)


# Which answers are believed


def test_the_same_gtin_is_certain_and_another_gtin_is_another_product() -> None:
    query = Query(Strategy.TITLE, "Kettle", sku="A", gtin="036000291452", title="Kettle")
    assert score(query, FoundProduct(gtin="0036000291452", title="Something")) == 1.0
    assert score(query, FoundProduct(gtin="4006381333931", sku="A", title="Kettle")) == 0.0
    assert score(query, FoundProduct(sku="a")) == 0.95


def test_titles_fit_by_their_words_and_a_different_size_does_not() -> None:
    query = Query(Strategy.TITLE, "", brand="Millrace", title="Enamel mug 350 ml")
    assert score(query, FoundProduct(title="Millrace Enamel Mug, 350 ml")) == 0.9
    assert score(query, FoundProduct(title="Millrace Enamel Mug, 500 ml")) < 0.6
    assert score(query, FoundProduct(title="Garden hose")) == 0.0
    assert score(query, FoundProduct()) == 0.0


def test_the_best_one_is_taken_and_none_where_none_fits() -> None:
    query = Query(Strategy.SKU, "A", sku="A", title="Blue pen")
    picked = best_match(
        query, [FoundProduct(title="Blue pen"), FoundProduct(sku="A"), FoundProduct(sku="A", title="second")]
    )
    assert picked == FoundProduct(sku="A", score=0.95)
    assert best_match(query, [FoundProduct(title="Red bicycle")]) is None
    assert best_match(query, []) is None


# Over HTTP


@pytest.mark.parametrize(
    "product",
    [
        Product(gtin=KETTLE["ean"]),
        Product(sku=KETTLE["id"].lower()),
        Product(brand="Millrace", title="Kettle 1.7 l"),
        Product(title=KETTLE["name"]),
    ],
)
def test_the_shop_finds_a_product_by_each_question(shop: Retailer, product: Product) -> None:
    [found] = ask(described(shop), queries_for(product)[0])
    assert isinstance(found, FoundProduct)
    assert (found.gtin, found.price, found.currency, found.retailer) == (KETTLE["ean"], "7.35", "EUR", "demo")
    assert found.url == f"{shop.address}/p/{KETTLE['id']}"


def test_what_only_looks_alike_is_not_found(shop: Retailer) -> None:
    query = Query(Strategy.TITLE, "Millrace sundial", title="Millrace sundial made of brass")
    assert ask(described(shop), query) == [None]
    assert len(shop.calls) == 1


def test_values_are_quoted_and_cannot_leave_their_place(shop: Retailer) -> None:
    provider = described(shop)
    odd = "../x?y=1&z#é/"
    assert ask(provider, Query(Strategy.SKU, odd, sku=odd), Query(Strategy.SKU, "..", sku="..")) == [None, None]
    assert shop.calls == ["/products/..%2Fx%3Fy%3D1%26z%23%C3%A9%2F"]


def test_a_question_without_an_address_is_not_asked(shop: Retailer) -> None:
    provider = described(shop, url={"sku": f"{shop.address}/products/{{sku}}"})
    assert not provider.understands(BY_GTIN)
    assert provider.understands(Query(Strategy.SKU, "A-1", sku="A-1"))
    assert ask(provider, BY_GTIN) == [None]
    assert shop.calls == []


def test_keys_come_from_the_environment_and_are_sent_but_not_shown(shop: Retailer) -> None:
    provider = described(shop, {"SHOP_KEY": "s3cret"}, headers={"Authorization": "Bearer ${SHOP_KEY}"})
    ask(provider, BY_GTIN)
    assert shop.seen_headers[0]["authorization"] == "Bearer s3cret"
    assert "s3cret" not in repr(provider._settings)


def test_a_throttled_shop_is_left_alone_for_as_long_as_it_says(shop: Retailer) -> None:
    shop.throttle(retry_after="1800")
    first, second = ask(described(shop), BY_GTIN, BY_GTIN)
    assert isinstance(first, Retryable)
    assert isinstance(second, Postponed)
    assert (first.code, first.retry_after, second.code) == ("PROVIDER_THROTTLED", 1800.0, "PROVIDER_THROTTLED")
    assert 1000 < second.retry_after <= 1800
    assert len(shop.calls) == 1


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        (500, Retryable, "PROVIDER_UNAVAILABLE"), (503, Retryable, "PROVIDER_UNAVAILABLE"),
        (408, Retryable, "PROVIDER_TIMEOUT"), (400, Permanent, "PROVIDER_REFUSED"),
        (401, Permanent, "PROVIDER_REFUSED"), (403, Permanent, "PROVIDER_REFUSED"),
    ],
)  # fmt: skip
def test_what_a_status_means(shop: Retailer, status: int, kind: type, code: str) -> None:
    shop.fail(status=status)
    assert refused(described(shop))[:2] == (kind, code)


def test_a_shop_that_says_404_does_not_have_it(shop: Retailer) -> None:
    shop.fail(status=404)
    assert ask(described(shop), BY_GTIN) == [None]


def test_a_shop_that_does_not_answer_times_out(shop: Retailer) -> None:
    shop.hang()
    assert refused(described(shop, timeout_seconds=0.05))[:2] == (Retryable, "PROVIDER_TIMEOUT")


def test_a_shop_that_is_closed_is_unavailable() -> None:
    with demo_retailer() as shop:
        provider = described(shop)
    assert refused(provider)[:2] == (Retryable, "PROVIDER_UNAVAILABLE")


@pytest.mark.parametrize(
    "answer",
    [
        b"<html>",
        {"data": {}},
        {"data": {"items": ["text"]}},
        {"data": {"items": [{"name": {"en": "Kettle"}}]}},
        b'{"data":{"items":[]}}' + b" " * LARGEST_ANSWER,
    ],
)
def test_an_answer_that_is_not_what_the_paths_say_cannot_be_read(shop: Retailer, answer: object) -> None:
    shop.say(200, answer)
    assert refused(described(shop))[:2] == (Permanent, "PROVIDER_ANSWER_UNREADABLE")


@pytest.mark.parametrize("items", [None, []])
def test_an_empty_list_or_null_is_not_found(shop: Retailer, items: object) -> None:
    shop.say(200, {"data": {"items": items}})
    assert ask(described(shop), BY_GTIN) == [None]


def test_redirects_are_followed_at_home_and_nowhere_else(shop: Retailer) -> None:
    shop.say(302, {}, headers={"Location": f"/products?gtin={KETTLE['ean']}"})
    [found] = ask(described(shop), Query(Strategy.SKU, "x", sku="x", gtin=KETTLE["ean"]))
    assert isinstance(found, FoundProduct)
    shop.say(302, {}, headers={"Location": "http://localhost:1/elsewhere"})
    assert refused(described(shop))[:2] == (Permanent, "PROVIDER_REFUSED")
    shop.say(302, {}, times=9, headers={"Location": "/again"})
    assert refused(described(shop))[:2] == (Permanent, "PROVIDER_REFUSED")


# Who is asked when


class Scripted:
    """A provider that answers as it was told."""

    def __init__(
        self, name: str, priority: int, answer: FoundProduct | HandlerError | None, *, knows: bool = True
    ) -> None:
        self.name, self.priority, self._answer, self._knows = name, priority, answer, knows

    def understands(self, query: Query) -> bool:
        return self._knows

    async def look_up(self, query: Query) -> FoundProduct | None:
        if isinstance(self._answer, HandlerError):
            raise self._answer
        return self._answer


GOOD = FoundProduct(gtin=KETTLE["ean"])
BUSY = Retryable("busy", code="PROVIDER_THROTTLED", retry_after=30)
BUSIER = Retryable("busier", code="PROVIDER_THROTTLED", retry_after=60)
SHUT = Permanent("no", code="PROVIDER_REFUSED")
AWAY = Postponed("away", code="PROVIDER_THROTTLED", retry_after=30)
AWAY_LONGER = Postponed("away for longer", code="PROVIDER_THROTTLED", retry_after=60)
STILL_AWAY = StillInTrouble("still away", code="PROVIDER_UNAVAILABLE", retry_after=20)


def test_priority_decides_and_each_attempt_starts_with_the_next() -> None:
    providers = Providers([Scripted("c", 3, None), Scripted("a", 1, None), Scripted("b", 2, None)])
    orders = ["".join(one.name for one in providers.order(attempt)) for attempt in (1, 2, 3, 4)]
    assert orders == ["abc", "bca", "cab", "abc"]
    assert Providers([]).order(3) == ()


def outcomes(providers: Providers) -> tuple[FoundProduct | HandlerError | None, list[tuple[str, str]]]:
    """What came of a question, and what was told of it."""
    asked: list[ProviderCall] = []
    try:
        found: FoundProduct | HandlerError | None = asyncio.run(providers.look_up(BY_GTIN, on_call=asked.append))
    except HandlerError as error:
        found = error
    return found, [(one.provider, one.outcome) for one in asked]


def test_one_shop_in_trouble_does_not_hide_the_product_at_another() -> None:
    shops = [Scripted("a", 1, BUSY), Scripted("b", 2, SHUT), Scripted("c", 3, AWAY), Scripted("d", 4, GOOD)]
    found, told = outcomes(Providers(shops))
    assert isinstance(found, FoundProduct)
    assert (found.retailer, found.score) == ("d", 1.0)
    assert told == [("a", "PROVIDER_THROTTLED"), ("b", "PROVIDER_REFUSED"), ("d", "FOUND")]


@pytest.mark.parametrize(
    ("answers", "raised"),
    [
        ([BUSIER, None, BUSY], BUSY),
        ([SHUT, BUSY], BUSY),
        ([SHUT, SHUT], SHUT),
        # Nobody was asked, or nobody who was asked has it: nothing failed, and nothing is known.
        ([AWAY_LONGER, AWAY], AWAY),
        ([None, AWAY], AWAY),
        ([SHUT, AWAY], AWAY),
        ([None, STILL_AWAY, AWAY], STILL_AWAY),
        # Somebody was asked and failed: that was a try.
        ([AWAY, BUSIER], BUSIER),
    ],
)
def test_not_found_is_not_said_while_somebody_could_not_be_asked(answers: list[Any], raised: HandlerError) -> None:
    found, told = outcomes(Providers(Scripted(str(at), at, answer) for at, answer in enumerate(answers)))
    assert found is raised
    assert len(told) == sum(type(answer) is not Postponed for answer in answers)


def test_a_shop_that_does_not_understand_the_question_is_passed_over() -> None:
    mute = Scripted("mute", 1, GOOD, knows=False)
    assert outcomes(Providers([mute, Scripted("b", 2, None)])) == (None, [("b", "NOT_FOUND")])
    assert outcomes(Providers([mute, Scripted("b", 2, SHUT)])) == (SHUT, [("b", "PROVIDER_REFUSED")])
    assert outcomes(Providers([mute])) == (None, [])


def test_not_found_when_all_answered_and_an_answer_that_does_not_fit_is_none() -> None:
    wrong = FoundProduct(gtin="4006381333931", title="Something else")
    providers = Providers([Scripted("a", 1, None), Scripted("b", 2, wrong), Scripted("c", 3, SHUT)])
    assert asyncio.run(providers.look_up(BY_GTIN)) is None


def test_calls_are_kept_apart_and_nobody_waits_too_long() -> None:
    time = [100.0]
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async def four_calls() -> list[float | None]:
        return [await pace.wait(sleep) for _ in range(4)]

    pace = CallPacing(2, 1.0, 900.0, now=lambda: time[0])
    assert asyncio.run(four_calls()) == [None, None, None, 1.5]
    assert slept == [0.5, 1.0]
    time[0] = 110.0
    pace.learn(429, 5)
    assert asyncio.run(pace.wait(sleep)) == 5.0
    assert pace.gauges == {"throttle_rate": 0.05, "delay_seconds": 5.0}
    time[0] = 115.0
    assert asyncio.run(pace.wait(sleep)) is None


def test_who_waits_for_a_turn_goes_back_when_the_shop_breaks_down_meanwhile() -> None:
    async def breaks_down(seconds: float) -> None:
        pace.learn(503, 30)

    pace = CallPacing(2, 1.0, 900.0, now=lambda: 100.0)
    assert asyncio.run(pace.wait(breaks_down)) is None
    assert asyncio.run(pace.wait(breaks_down)) == 30.0


def test_a_shop_is_given_up_when_it_was_out_of_order_for_long_and_does_not_say_for_how_long() -> None:
    time = [0.0]
    pace = CallPacing(2, 1.0, 60.0, now=lambda: time[0])
    pace.learn(None)
    assert (pace.is_in_trouble, pace.is_given_up) == (True, False)
    time[0] = 60.0
    assert (pace.is_outage_over_long, pace.is_given_up) == (True, True)
    pace.learn(503, 600)
    assert (pace.is_outage_over_long, pace.is_given_up) == (True, False)
    pace.learn(200)
    assert (pace.is_in_trouble, pace.is_outage_over_long) == (False, False)


# Descriptions


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": ""}, "number 1: 'name'"),
        ({"url": None}, "corner: 'url'"),
        ({"url": {}}, "corner: 'url'"),
        ({"url": {"colour": "http://x/{sku}"}}, "'url.colour'"),
        ({"url": {"sku": "ftp://x/{sku}"}}, "'url.sku'"),
        ({"url": {"sku": "http://{sku}/"}}, "'url.sku'"),
        ({"url": {"sku": "http://me:pw@x/{sku}"}}, "'url.sku'"),
        ({"url": {"sku": "http://x/"}}, "'url.sku'"),
        ({"url": {"sku": "http://x:abc/{sku}"}}, "'url.sku'"),
        ({"url": {"sku": "http://x/{secret}"}}, "{secret}"),
        ({"headers": {"X-Key": "${MISSING}"}}, "'headers.X-Key' needs the environment variable MISSING"),
        ({"headers": {"X-Key": "a\r\nB: c"}}, "'headers.X-Key'"),
        ({"fields": {"colour": "x"}}, "'fields.colour'"),
        ({"fields": {"price": "x"}}, "'fields'"),
        ({"items": 3}, "'items'"),
        ({"calls_per_second": 0}, "'calls_per_second'"),
        ({"concurrency": True}, "'concurrency'"),
        ({"timeout_seconds": "10"}, "'timeout_seconds'"),
        ({"timeout": 10}, "'timeout' is not known"),
    ],
)
def test_what_is_wrong_is_said_with_the_retailer_and_the_key(change: dict[str, Any], said: str) -> None:
    good = {"name": "corner", "url": {"sku": "http://x/{sku}"}, "fields": {"sku": "id"}}
    assert parse_retailers(json.dumps([good]).encode(), {})[0].name == "corner"
    with pytest.raises(ConfigurationError) as caught:
        parse_retailers(json.dumps([{**good, **change}]).encode(), {})
    assert said in caught.value.message


def test_a_file_of_retailers_is_read_and_a_bad_one_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "shops.json"
    good = {"name": "corner", "url": {"sku": "http://x/{sku}"}, "fields": {"sku": "id"}, "priority": 7}
    file.write_text(json.dumps([good]))
    assert [(one.name, one.priority) for one in load_providers(str(file), {})] == [("corner", 7)]
    assert load_providers("", {}) == ()
    for content, said in (("{", "not JSON"), ("{}", "a list"), ("[1]", "not an object")):
        file.write_text(content)
        with pytest.raises(ConfigurationError, match=said):
            load_providers(str(file), {})
    file.write_text(json.dumps([good, good]))
    with pytest.raises(ConfigurationError, match="two retailers"):
        load_providers(str(file), {})
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load_providers(str(tmp_path / "none.json"), {})


# All of it


def test_the_sample_table_is_looked_up_whole(shop: Retailer) -> None:
    rows = csv.DictReader(io.StringIO(sample_csv().decode("utf-8-sig")), delimiter=";")
    fields = map_headers(list(rows.fieldnames or ()))
    assert list(fields.values()) == ["sku", "gtin", "brand", "title", "price", None]
    outcomes: Counter[str] = Counter()

    async def every_row() -> None:
        provider = described(shop)
        providers = Providers([provider])
        for row in rows:
            try:
                product = normalize_row({field: row[header] for header, field in fields.items() if field})
            except Unusable:
                outcomes["unusable"] += 1
                continue
            found = await providers.look_up(choose_query(queries_for(product), 0))
            outcomes["found" if found else "not found"] += 1
        await provider.close()

    asyncio.run(every_row())
    assert outcomes == {"found": 36, "not found": 2, "unusable": 1}
