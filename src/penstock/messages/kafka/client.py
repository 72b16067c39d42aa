"""What the settings of Kafka lead to: producers, consumers and dead letters. It needs no database."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.lifecycle.transport import Message
from penstock.messages.kafka.client_options import client_options
from penstock.messages.kafka.consumer import Handle, KafkaConsumer
from penstock.messages.kafka.dead_letters import DeadLetters
from penstock.messages.kafka.producer import KafkaDelivery, KafkaProducer
from penstock.messages.kafka.records import message_headers, write_value
from penstock.settings import Settings


class KafkaClient:
    """One broker, or a cluster of them, as the settings name it."""

    def __init__(self, settings: Settings) -> None:
        self._options = client_options(settings)
        self._group = settings.kafka_group
        self._max_bytes = settings.kafka_max_message_bytes
        self.producer = KafkaProducer(self._options, max_bytes=self._max_bytes)
        """The one that all share; it connects when it is first needed."""

    def send(self, message: Message) -> KafkaDelivery:
        """Begin to write a message; the answer is to be waited for."""
        value = write_value(message.payload, max_bytes=self._max_bytes)
        key = None if message.key is None else message.key.encode()
        headers = message_headers(message.id, message.created_at)
        return self.producer.write(message.topic, value, key=key, headers=headers)

    def consumer(self, topics: Sequence[str], handle: Handle, *, group: str | None = None) -> KafkaConsumer:
        """A new member of the group of the settings, or of another one."""
        options = {**self._options, "group.id": group or self._group}
        return KafkaConsumer(options, topics, handle, self.producer, max_bytes=self._max_bytes)

    def list_topics(self) -> frozenset[str]:
        """The topics that the broker has, if it answers within some seconds."""
        return self.producer.list_topics()

    def dead_letters(self) -> DeadLetters:
        """The records that were put aside, by any group."""
        return DeadLetters({**self._options, "group.id": f"{self._group}-dead-letters"}, self.producer)

    def close(self) -> None:
        """Let go of connections."""
        self.producer.close()
