"""Writes records, each confirmed by all replicas in sync, in a bounded time.

The client sends in threads of its own and reports in callbacks, which run while somebody polls: whoever waits for a
delivery does. So many can be under way at once, and one wait brings the reports of all.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka import Message as ClientMessage

from penstock.errors import BrokerUnavailable, PenstockError
from penstock.messages.kafka.client_log import client_log
from penstock.messages.kafka.client_options import Options
from penstock.messages.kafka.failures import configuration_error, error_of, translate

DELIVERY_SECONDS = 10.0
"""The longest a record takes to be confirmed; well below the minute that a relay has."""
_REPORT_SECONDS = 5.0
"""How long the client may take to report after that."""
_POLL_SECONDS = 0.1
_TOPIC_SECONDS = 5.0
"""How long a topic that the broker does not know is waited for."""
_CLOSE_SECONDS = 2.0
_HEADER_BYTES = 65_536


class KafkaDelivery:
    """A record on its way."""

    __slots__ = ("_deadline", "_error", "_is_reported", "_producer", "_topic", "_writer")

    def __init__(self, writer: KafkaProducer, producer: Producer, topic: str) -> None:
        self._writer = writer
        self._producer = producer
        self._topic = topic
        self._deadline = time.monotonic() + DELIVERY_SECONDS + _REPORT_SECONDS
        self._is_reported = False
        self._error: KafkaError | None = None

    def report(self, error: KafkaError | None, _: ClientMessage) -> None:
        """Called by the client, while somebody polls."""
        self._error = error
        self._is_reported = True

    def wait(self) -> None:
        """Until the record is safe, or an error says why not."""
        while not self._is_reported:
            if time.monotonic() > self._deadline:
                raise BrokerUnavailable("the client has not reported in time whether the message was confirmed")
            self._producer.poll(_POLL_SECONDS)
        if self._error is not None:
            raise self._writer.explain(self._error, self._topic)


class KafkaProducer:
    """An idempotent producer, which connects when it is first needed and is made anew when it is broken for good."""

    def __init__(self, options: Options, *, max_bytes: int) -> None:
        self._options = {
            **options,
            "enable.idempotence": True,
            "delivery.timeout.ms": int(DELIVERY_SECONDS * 1000),
            "topic.metadata.propagation.max.ms": int(_TOPIC_SECONDS * 1000),
            "message.max.bytes": min(max_bytes + _HEADER_BYTES, 1_000_000_000),
            # What Java's clients do: whoever else writes to the topic puts a key into the same partition.
            "partitioner": "murmur2_random",
        }
        self._lock = threading.Lock()
        self._producer: Producer | None = None
        self._last_trouble: tuple[float, str] | None = None

    def write(
        self, topic: str, value: bytes | None, *, key: bytes | None, headers: Mapping[str, str | bytes | None]
    ) -> KafkaDelivery:
        """Begin to write a record; the answer is to be waited for."""
        producer = self._connect()
        delivery = KafkaDelivery(self, producer, topic)
        try:
            producer.produce(topic, value, key, headers=dict(headers), on_delivery=delivery.report)
        except BufferError:
            raise BrokerUnavailable("too many messages wait for the broker already") from None
        except KafkaException as exception:
            raise self.explain(error_of(exception), topic) from None
        return delivery

    def list_topics(self) -> frozenset[str]:
        """The topics that the broker has."""
        producer = self._connect()
        try:
            return frozenset(producer.list_topics(timeout=DELIVERY_SECONDS).topics)
        except KafkaException as exception:
            producer.poll(0)  # the client says why when it is polled, and not before
            reason = self._last_trouble[1] if self._last_trouble is not None else error_of(exception).str()
            raise BrokerUnavailable(f"no broker answers: {reason}") from None

    def explain(self, error: KafkaError, topic: str) -> PenstockError:
        """What an error means; after one that is for good the next record gets a new producer."""
        if error.fatal():
            with self._lock:
                self._producer = None
        trouble = self._last_trouble
        is_recent = trouble is not None and time.monotonic() - trouble[0] < 2 * DELIVERY_SECONDS
        return translate(error, topic=topic, reason=trouble[1] if trouble is not None and is_recent else None)

    def close(self) -> None:
        """Let go; what is under way gets a moment."""
        with self._lock:
            producer, self._producer = self._producer, None
        if producer is not None:
            producer.flush(_CLOSE_SECONDS)
            producer.purge()

    def _connect(self) -> Producer:
        with self._lock:
            if self._producer is None:
                try:
                    self._producer = Producer({**self._options, "error_cb": self._note_trouble}, logger=client_log)
                except KafkaException as exception:
                    raise configuration_error(exception) from None
            return self._producer

    def _note_trouble(self, error: KafkaError) -> None:
        """What is wrong with the connections: a message's own error says only that it was not confirmed in time."""
        if error.code() != KafkaError._ALL_BROKERS_DOWN or self._last_trouble is None:
            self._last_trouble = (time.monotonic(), error.str())
