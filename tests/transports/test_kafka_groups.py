"""Members of a group: a slow message, a partition that moves in the middle of it, and one that is polled for long."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from uuid import uuid4

from penstock import Penstock
from penstock.app import Message
from penstock.messages import KafkaClient, KafkaConsumer
from penstock.messages.kafka.client_options import client_options
from penstock.store import DatabaseConnection
from tests.transports.broker import Broker
from tests.transports.conftest import OpenApp, kafka_settings
from tests.transports.foreign import write

PATIENCE = 60.0
SILENT_MS = 10_000
"""How long a member may be silent; the broker allows six seconds, which a busy machine may take."""


def member(app: Penstock, topic: str, group: str, handle: Callable[[Message], None]) -> KafkaConsumer:
    """One that is taken for dead soon."""
    options = client_options(app.settings) | {
        "group.id": group, "session.timeout.ms": SILENT_MS, "max.poll.interval.ms": SILENT_MS,
        "heartbeat.interval.ms": 500,
    }  # fmt: skip
    return KafkaConsumer(options, [topic], handle, KafkaClient(app.settings).producer, max_bytes=1_000_000)


def applier(app: Penstock, effects: list[str], name: str) -> Callable[[Message], None]:
    def apply(message: Message) -> None:
        def operation(connection: DatabaseConnection) -> bool:
            return app.messages.accept(message, subscriber="tests", connection=connection)

        if app.in_transaction(operation):
            effects.append(f"{name} {message.payload}")

    return apply


def step_until(happened: Callable[[], object], *steps: Callable[[], None]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < deadline, "it has not happened"
        for step in steps:
            step()


@contextmanager
def in_the_middle(
    broker: Broker, app: Penstock, topic: str, group: str, apply: Callable[[Message], None]
) -> Iterator[tuple[KafkaConsumer, Callable[[], None]]]:
    """A member that is in the middle of a message, and what lets it finish."""
    begun, go_on = threading.Event(), threading.Event()

    def slow(message: Message) -> None:
        begun.set()
        go_on.wait(PATIENCE)
        apply(message)

    def finish() -> None:
        go_on.set()
        handling.join(PATIENCE)

    broker.create_topics(topic)
    first = member(app, topic, group, slow)
    write(broker, topic, b"1")
    handling = threading.Thread(target=lambda: step_until(begun.is_set, first.handle))
    handling.start()
    try:
        step_until(begun.is_set, first.poll)
        yield first, finish
    finally:
        finish()
        first.close()


def test_the_zombie_of_a_rebalance_changes_nothing(kafka_broker: Broker, open_app: OpenApp, topic: str) -> None:
    """The first member stops polling in the middle of a message. The second gets the partition and applies it."""
    app, group, effects = open_app(**kafka_settings(kafka_broker)), uuid4().hex, list[str]()
    with in_the_middle(kafka_broker, app, topic, group, applier(app, effects, "zombie")) as (first, finish):
        second = member(app, topic, group, applier(app, effects, "heir"))
        step_until(lambda: effects, second.poll, second.handle)
        finish()
        first.poll()
        assert effects == ["heir 1"]
        second.close()


def test_a_slow_message_does_not_leave_the_group(kafka_broker: Broker, open_app: OpenApp, topic: str) -> None:
    app, group, effects = open_app(**kafka_settings(kafka_broker)), uuid4().hex, list[str]()
    with in_the_middle(kafka_broker, app, topic, group, applier(app, effects, "first")) as (first, finish):
        second = member(app, topic, group, applier(app, effects, "second"))
        until = time.monotonic() + 1.2 * SILENT_MS / 1000  # longer than a member may be silent
        step_until(lambda: time.monotonic() > until, first.poll, second.poll, second.handle)
        assert effects == []
        finish()
        assert effects == ["first 1"]
        second.close()
