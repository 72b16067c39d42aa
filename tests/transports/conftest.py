"""What carries messages, each behind the same few words: the contract asks no more of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from penstock import Penstock
from penstock.messages import KafkaClient
from penstock.messages.kafka import producer
from penstock.settings import load_settings
from tests.transports.broker import Broker

BRISK = {"heartbeat_seconds": 0.05, "sweep_seconds": 600.0}
OpenApp = Callable[..., Penstock]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record that nobody confirms is given up soon."""
    monkeypatch.setattr(producer, "DELIVERY_SECONDS", 2.0)


@pytest.fixture
def topic() -> str:
    """A name that no other test has."""
    return f"topic-{uuid4().hex[:12]}"


class Carrier:
    """A transport, as the contract sees it."""

    settings: dict[str, Any]

    def make_topics(self, *topics: str) -> None:
        """Have topics that messages can be sent to."""

    def dead_letters(self, app: Penstock, topic: str) -> list[tuple[str, Any]]:
        """The reason and the payload of each message that was put aside."""
        raise NotImplementedError


class InProcess(Carrier):
    """Functions of the workers."""

    def __init__(self) -> None:
        self.settings = {"transport": "in-process"}

    def dead_letters(self, app: Penstock, topic: str) -> list[tuple[str, Any]]:
        """They are messages of the outbox."""
        found: list[tuple[str, Any]] = []
        app.messages.subscribe(f"{topic}-dead-letters")(
            lambda message: found.append((message.payload["reason"], message.payload["message"]))
        )
        app.system.sweep()
        return found


class Kafka(Carrier):
    """A real broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.settings = kafka_settings(broker)

    def make_topics(self, *topics: str) -> None:
        """With several partitions, and their dead letters."""
        self._broker.create_topics(*topics, *(f"{topic}-dead-letters" for topic in topics), partitions=3)

    def dead_letters(self, app: Penstock, topic: str) -> list[tuple[str, Any]]:
        """They are records of the broker."""
        letters = KafkaClient(app.settings).dead_letters().waiting(topic, limit=100)
        return [(letter.reason, letter.record.value) for letter in letters]


def kafka_settings(broker: Broker, **more: Any) -> dict[str, Any]:
    """The settings of a worker that is a member of a group of its own."""
    return {
        "transport": "kafka",
        "kafka_servers": (broker.address,),
        "kafka_group": f"group-{uuid4().hex[:12]}",
        **more,
    }


@pytest.fixture(params=["in-process", "kafka"])
def carrier(request: pytest.FixtureRequest) -> Carrier:
    """Each transport."""
    return InProcess() if request.param == "in-process" else Kafka(request.getfixturevalue("kafka_broker"))


@pytest.fixture
def open_app(tmp_path: Path) -> Iterator[OpenApp]:
    """Opens a Penstock on the test's own database, with some settings; all are closed at the end."""
    with ExitStack() as stack:

        def opened(**settings: Any) -> Penstock:
            url = f"sqlite:///{tmp_path / 'messages.db'}"
            app = Penstock(settings=load_settings(database_url=url, files_directory=tmp_path, **{**BRISK, **settings}))
            stack.callback(app.close)
            return app

        yield opened
