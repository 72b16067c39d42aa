"""The broker is killed and comes back: nothing is lost, nothing has its effect twice, and people see what is wrong."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue
from typing import Any
from uuid import UUID

import pytest
from structlog.testing import capture_logs

from penstock import JobState, Penstock, Worker, load_settings
from penstock.app import Message
from penstock.cli.program import run
from penstock.lifecycle.transport import TransportHealth
from penstock.messages.kafka import consumer as consumer_module
from penstock.store import DatabaseConnection
from penstock_apps.recipes.settings import RecipeSettings
from tests.applications.recipes.conftest import Kitchen, open_kitchen
from tests.applications.recipes.pages import SOUP, script
from tests.applications.recipes.parsers import parsing
from tests.applications.recipes.site import open_site
from tests.conftest import unavailable
from tests.http.conftest import SECRET
from tests.private_brokers import BrokerUnavailable, private_broker
from tests.transports.broker import Broker
from tests.transports.conftest import BRISK, OpenApp, kafka_settings
from tests.waiting import eventually

PATIENCE = 200.0
pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("kept_logs")]


@pytest.fixture(scope="module")
def mortal() -> Iterator[Broker]:
    """A broker that may be killed."""
    with ExitStack() as stack:
        try:
            broker = stack.enter_context(private_broker(Broker))
        except BrokerUnavailable as error:
            unavailable(str(error))
        yield broker


def health_of(worker: Worker) -> TransportHealth:
    """What a worker's consumer knows of the broker, and says when it signs."""
    assert worker._consumer is not None
    return worker._consumer.health() or TransportHealth(is_reachable=False, lag={})


@pytest.mark.usefixtures("impatient")
def test_messages_come_once_and_in_order_through_a_broker_that_dies(
    mortal: Broker,
    open_app: OpenApp,
    topic: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It dies while some are being read and others sent, and more are published while it is away."""
    monkeypatch.setattr(consumer_module, "STATISTICS_MS", 500)
    monkeypatch.setenv("PENSTOCK_KAFKA_SERVERS", mortal.address)
    mortal.create_topics(topic, f"{topic}-dead-letters", partitions=3)
    app = open_app(**kafka_settings(mortal))
    effects: SimpleQueue[tuple[str | None, int]] = SimpleQueue()
    go_on = threading.Event()

    @app.messages.subscribe(topic)
    def apply(message: Message) -> None:
        def operation(connection: DatabaseConnection) -> bool:
            return app.messages.accept(message, subscriber="tests", connection=connection)

        go_on.wait(PATIENCE)
        if app.in_transaction(operation):
            effects.put((message.key, message.payload))

    def publish(numbers: range) -> None:
        for number in numbers:
            app.messages.publish(topic, number, key=f"key-{number % 5}")

    publish(range(60))
    with app.working() as worker:
        eventually(lambda: health_of(worker) == TransportHealth(is_reachable=True, lag={topic: 60}), PATIENCE)
        eventually(lambda: not app.messages.backlog().waiting, PATIENCE)
        go_on.set()
        came = [effects.get(timeout=PATIENCE) for _ in range(30)]
        publish(range(60, 80))
        mortal.kill()
        publish(range(80, 100))
        eventually(lambda: app.messages.backlog().failing, PATIENCE)
        backlog = app.messages.backlog()
        assert "no broker has confirmed it" in (backlog.last_error or "")
        assert (20 <= backlog.waiting <= 40, backlog.unsubscribed) == (True, 0)
        eventually(lambda: not health_of(worker).is_reachable, PATIENCE)
        assert signed_health(app, worker)["error"], "it says why"
        mortal.start()
        came += [effects.get(timeout=PATIENCE) for _ in range(70)]
        eventually(lambda: not app.messages.backlog().waiting, PATIENCE)
        eventually(lambda: health_of(worker) == TransportHealth(is_reachable=True, lag={topic: 0}), PATIENCE)
        assert signed_health(app, worker) == {"is_reachable": True, "lag": {topic: 0}, "error": None}
    assert run(["dead-letters"]) == 0
    assert capsys.readouterr().out == "no dead letters\n"
    assert effects.empty()
    numbers: defaultdict[str | None, list[int]] = defaultdict(list)
    for key, number in came:
        numbers[key].append(number)
    assert numbers == {f"key-{first}": list(range(first, 100, 5)) for first in range(5)}


def signed_health(app: Penstock, worker: Worker) -> dict[str, Any]:
    """What others are told by the worker's signature."""
    worker._sign()
    [seen] = app.system.workers()
    health: dict[str, Any] = seen.data["transport"]
    return health


@pytest.fixture
def kitchen(mortal: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kitchen]:
    """The recipes application, whose pages are parsed elsewhere."""
    recipe_settings = RecipeSettings(parsed_elsewhere=True)
    topics = (recipe_settings.requests_topic, recipe_settings.results_topic)
    mortal.create_topics(*topics, *(f"{topic}-dead-letters" for topic in topics))
    settings = load_settings(
        database_url=f"sqlite:///{tmp_path / 'kitchen.db'}", files_directory=tmp_path, jwt_secret=SECRET,
        **BRISK, **kafka_settings(mortal),
    )  # fmt: skip
    with open_site() as site:
        monkeypatch.setenv("PENSTOCK_FETCH_ALLOW_HOSTS", site.host)
        with open_kitchen(settings, site, RecipeSettings(parsed_elsewhere=True)) as one:
            yield one


@pytest.mark.usefixtures("impatient")
def test_requests_and_parsers_wait_for_the_broker(mortal: Broker, kitchen: Kitchen) -> None:
    """One parser cannot say what it found, another is started while there is no broker."""
    client = kitchen.served.client()

    def ask(path: str) -> str:
        answer = client.post("/parse-requests", json={"url": kitchen.site.url(path)})
        assert answer.status_code == 202, answer.text
        return str(answer.json()["requestId"])

    def status(request: str) -> str:
        return str(client.get(f"/parse-requests/{request}").json()["status"])

    gate = kitchen.site.gate("/soup", script(SOUP))
    kitchen.site.page("/stew", script(SOUP | {"name": "Stew"}))
    with parsing(kitchen):
        begun = ask("/soup")
        eventually(lambda: status(begun) == "PROCESSING", PATIENCE)
        mortal.kill()
        with capture_logs() as lines:
            gate.set()
            eventually(lambda: any("it is tried again" in line["event"] for line in lines), PATIENCE)
        waiting = ask("/stew")
        with parsing(kitchen):
            eventually(lambda: kitchen.app.messages.backlog().failing, PATIENCE)
            assert (status(begun), status(waiting)) == ("PROCESSING", "PENDING")
            mortal.start()
            for request in (begun, waiting):
                assert kitchen.app.jobs.wait(UUID(request), timeout=PATIENCE).state is JobState.SUCCEEDED
    assert (status(begun), status(waiting)) == ("COMPLETED", "COMPLETED")
