"""A program that knows Kafka and nothing of Penstock: it writes and reads records as they are."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

from confluent_kafka import Consumer, Message, Producer

from tests.transports.broker import Broker

PATIENCE = 60.0


def write(broker: Broker, topic: str, *values: bytes | None, key: bytes | None = None, **headers: bytes) -> None:
    """Write records, and return when the broker has them."""
    producer = Producer({"bootstrap.servers": broker.address, "log_level": 0, "message.max.bytes": 10_000_000})
    for value in values:
        producer.produce(topic, value, key, headers={name.replace("_", "-"): text for name, text in headers.items()})
    assert producer.flush(PATIENCE) == 0


class Reader:
    """Reads topics from their beginning."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer

    def read(self, count: int) -> list[Message]:
        """The next records, once they are there; none of them may be long in coming."""
        found: list[Message] = []
        deadline = time.monotonic() + PATIENCE
        while len(found) < count:
            assert time.monotonic() < deadline, f"only {len(found)} of {count} records came"
            message = self._consumer.poll(0.2)
            if message is not None and message.error() is None:
                found.append(message)
                deadline = time.monotonic() + PATIENCE
        return found


@contextmanager
def reading(broker: Broker, *topics: str) -> Iterator[Reader]:
    """A reader with a group of its own."""
    consumer = Consumer({
        "bootstrap.servers": broker.address, "group.id": uuid4().hex, "auto.offset.reset": "earliest", "log_level": 0,
    })  # fmt: skip
    consumer.subscribe(list(topics))
    try:
        yield Reader(consumer)
    finally:
        consumer.close()
