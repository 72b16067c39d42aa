"""The broker is killed and comes back: nothing is lost, and nothing has its effect twice."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from queue import SimpleQueue
from typing import Any

import pytest

from penstock.app import Message
from penstock.store import DatabaseConnection
from tests.conftest import unavailable
from tests.transports.broker import Broker, KafkaUnavailable, private_kafka
from tests.transports.conftest import OpenApp, kafka_settings
from tests.transports.foreign import reading, write
from tests.waiting import eventually

PATIENCE = 60.0
pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def mortal() -> Iterator[Broker]:
    """A broker that may be killed."""
    with ExitStack() as stack:
        try:
            broker = stack.enter_context(private_kafka())
        except KafkaUnavailable as error:
            unavailable(str(error))
        yield broker


@pytest.mark.usefixtures("impatient")
def test_messages_wait_for_the_broker_and_flow_when_it_is_back(mortal: Broker, open_app: OpenApp, topic: str) -> None:
    mortal.create_topics(topic, partitions=3)
    app = open_app(**kafka_settings(mortal))
    with reading(mortal, topic) as reader, app.working():
        for number in range(20):
            app.messages.publish(topic, number, key=f"key-{number % 5}")
        came = reader.read(20)
        mortal.kill()
        for number in range(20, 60):
            app.messages.publish(topic, number, key=f"key-{number % 5}")
        eventually(lambda: app.messages.backlog().failing, PATIENCE)
        backlog = app.messages.backlog()
        assert "no broker has confirmed it" in (backlog.last_error or "")
        assert (backlog.waiting > 0, backlog.unsubscribed) == (True, 0)
        mortal.start()
        came += reader.read(40)
        eventually(lambda: not app.messages.backlog().waiting, PATIENCE)
    numbers: defaultdict[Any, list[int]] = defaultdict(list)
    seen: set[Any] = set()
    for record in came:
        message_id = dict(record.headers() or [])["message-id"]  # what was on its way when it died may come twice
        if message_id not in seen:
            seen.add(message_id)
            numbers[record.key()].append(json.loads(record.value() or b""))
    assert numbers == {f"key-{first}".encode(): list(range(first, 60, 5)) for first in range(5)}


def test_what_is_read_while_the_broker_dies_has_its_effect_once(mortal: Broker, open_app: OpenApp, topic: str) -> None:
    mortal.create_topics(topic, partitions=3)
    app = open_app(**kafka_settings(mortal))
    effects: SimpleQueue[int] = SimpleQueue()

    @app.messages.subscribe(topic)
    def apply(message: Message) -> None:
        def operation(connection: DatabaseConnection) -> bool:
            return app.messages.accept(message, subscriber="tests", connection=connection)

        if app.in_transaction(operation):
            effects.put(message.payload)

    write(mortal, topic, *(str(number).encode() for number in range(100)))
    with app.working():
        came = [effects.get(timeout=PATIENCE) for _ in range(30)]
        mortal.kill()
        mortal.start()
        write(mortal, topic, *(str(number).encode() for number in range(100, 150)))
        came += [effects.get(timeout=PATIENCE) for _ in range(120)]
    assert effects.empty()
    assert sorted(came) == list(range(150))
