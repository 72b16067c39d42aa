"""Requests and results over a real broker: the shipped parser, a hostile one, and the broker's own console tools."""

from __future__ import annotations

import json
import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID, uuid4

import pytest
from confluent_kafka import Producer
from sqlalchemy import Table, func, select

from penstock import JobState, Settings
from penstock_apps.recipes.addresses import key_of
from penstock_apps.recipes.fetch_shares import OF_A_HOST
from penstock_apps.recipes.settings import RecipeSettings
from penstock_apps.recipes.tables import parse_result, parse_start, recipe
from tests.applications.recipes.conftest import Kitchen
from tests.applications.recipes.pages import SOUP, script
from tests.applications.recipes.parsers import parsing
from tests.http.conftest import on_sqlite
from tests.sizes import size
from tests.transports.broker import Broker
from tests.transports.conftest import kafka_settings
from tests.transports.foreign import reading
from tests.waiting import eventually

PATIENCE = 60.0
MANY = size(100, 10_000)
pytestmark = pytest.mark.timeout(size(600, 3_600))


@pytest.fixture
def recipe_settings(kafka_broker: Broker) -> RecipeSettings:
    """Topics that no other test has."""
    suffix = uuid4().hex[:12]
    topics = (f"parse-requests-{suffix}", f"parse-results-{suffix}")
    kafka_broker.create_topics(*topics, *(f"{topic}-dead-letters" for topic in topics), partitions=3)
    return RecipeSettings(parsed_elsewhere=True, requests_topic=topics[0], results_topic=topics[1])


@pytest.fixture
def settings(settings: Settings, kafka_broker: Broker) -> Settings:
    """The usual ones, and the broker."""
    more: dict[str, Any] = {"guest_requests_per_minute": 1_000_000, **kafka_settings(kafka_broker)}
    return settings.model_copy(update=more)


def ask(kitchen: Kitchen, url: str) -> str:
    answer = kitchen.served.client().post("/parse-requests", json={"url": url})
    assert answer.status_code == 202
    return str(answer.json()["requestId"])


def ended(kitchen: Kitchen, request: str) -> dict[str, Any]:
    kitchen.app.jobs.wait(UUID(request), timeout=PATIENCE)
    shown: dict[str, Any] = kitchen.served.client().get(f"/parse-requests/{request}").json()
    return shown


@on_sqlite
def test_the_parser_says_that_it_begins_and_what_came_of_it(kitchen: Kitchen) -> None:
    gate = kitchen.site.gate("/soup", script(SOUP))
    kitchen.site.page("/nothing", "<html><p>nothing to eat</p></html>")
    request = ask(kitchen, kitchen.site.url("/soup"))
    client = kitchen.served.client()
    begun = {"requestId": request, "status": "PROCESSING"}
    with parsing(kitchen):
        eventually(lambda: client.get(f"/parse-requests/{request}").json() == begun, PATIENCE)
        gate.set()
        shown = ended(kitchen, request)
        assert (shown["status"], shown["recipe"]["title"]) == ("COMPLETED", "Tomato soup")
        assert shown["recipe"]["ingredients"][0]["name"] == "olive oil"
        shown = ended(kitchen, ask(kitchen, kitchen.site.url("/nothing")))
    assert (shown["status"], bool(shown["error"])) == ("FAILED", True)


@on_sqlite
def test_a_slow_page_keeps_no_other_request_waiting(kitchen: Kitchen) -> None:
    """One parser, and pages that come only when all others have been answered, some of them of the same partitions."""
    slow_count, quick_count = OF_A_HOST - 1, 9
    gates = [kitchen.site.gate(f"/slow/{number}", script(SOUP)) for number in range(slow_count)]
    slow = [ask(kitchen, kitchen.site.url(f"/slow/{number}")) for number in range(slow_count)]
    quick_urls = [kitchen.site.page(f"/quick/{number}", script(SOUP)) for number in range(quick_count)]
    quick = [ask(kitchen, url) for url in quick_urls]
    with parsing(kitchen):
        assert {ended(kitchen, request)["status"] for request in quick} == {"COMPLETED"}
        assert not any(kitchen.app.jobs.get(UUID(request)).completed_at for request in slow)
        for gate in gates:
            gate.set()
        assert {ended(kitchen, request)["status"] for request in slow} == {"COMPLETED"}


@on_sqlite
def test_console_tools_read_requests_and_write_results(kitchen: Kitchen, kafka_broker: Broker) -> None:
    url = "https://kitchen.example/soup"
    request = ask(kitchen, url)
    server = ("--bootstrap-server", kafka_broker.address)
    shown = kafka_broker.run_tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer", *server, "--topic", kitchen.recipes.settings.requests_topic,
        "--from-beginning", "--max-messages", "1", "--timeout-ms", "30000", "--formatter-property", "print.key=true",
        "--formatter-property", "print.headers=true",
    )  # fmt: skip
    headers, key, value = shown.strip().split("\t")
    assert "message-id:" in headers
    assert (key, json.loads(value)["requestId"]) == (key_of(url), request)
    result = {"requestId": request, "urlHash": key_of(url), "success": True, "title": "Soup", "ingredients": []}
    kafka_broker.run_tool(
        "org.apache.kafka.tools.ConsoleProducer", *server, "--topic", kitchen.recipes.settings.results_topic,
        text=json.dumps(result) + "\n",
    )  # fmt: skip
    shown_request = ended(kitchen, request)
    assert (shown_request["status"], shown_request["recipe"]["title"]) == ("COMPLETED", "Soup")


def test_many_requests_end_to_end_with_answers_that_are_doubled_and_out_of_order(
    kitchen: Kitchen, kafka_broker: Broker
) -> None:
    """Each answer comes twice, with its start before, between or behind; nothing is lost, and nothing applied twice."""
    settings = kitchen.recipes.settings
    with ThreadPoolExecutor(4) as pool:
        urls = [f"https://kitchen.example/{number}" for number in range(MANY)]
        requests = list(pool.map(lambda url: kitchen.recipes.ask(url, user="ada").job.id, urls))
    chance = random.Random(7)
    producer = Producer({"bootstrap.servers": kafka_broker.address, "log_level": 0})
    with reading(kafka_broker, settings.requests_topic) as reader:
        told = [json.loads(record.value() or b"") for record in reader.read(MANY)]
    words: list[dict[str, Any]] = []
    for request in told:
        about = {"requestId": request["requestId"], "urlHash": request["urlHash"]}
        result = {**about, "success": True, "title": request["url"], "ingredients": []}
        answers = [result, result, {**about, "status": "PROCESSING"}]
        chance.shuffle(answers)
        words += answers
    for number, payload in enumerate(words):
        producer.produce(settings.results_topic, json.dumps(payload), payload["urlHash"])
        if number % 1000 == 999:
            producer.flush(PATIENCE)
    assert producer.flush(PATIENCE) == 0
    for request_id in requests:
        assert kitchen.app.jobs.wait(request_id, timeout=300.0).state is JobState.SUCCEEDED
    assert {UUID(request["requestId"]) for request in told} == set(requests)

    def count(table: Table) -> int:
        query = select(func.count()).select_from(table)
        found: int = kitchen.app.in_transaction(lambda link: link.execute(query).scalar_one())
        return found

    assert (count(parse_result), count(recipe), count(parse_start)) == (MANY, MANY, 0)
