"""The transport that carries messages over Kafka, for the relay and the workers of one database."""

from __future__ import annotations

from penstock.errors import MessageRefused
from penstock.lifecycle.transport import EVERY_TOPIC, Message, dead_letter_topic
from penstock.messages.kafka.client import KafkaClient
from penstock.messages.kafka.consumer import KafkaConsumer
from penstock.messages.kafka.producer import KafkaDelivery
from penstock.messages.subscriptions import Subscriptions
from penstock.settings import Settings


class KafkaMessages:
    """Sends every topic to the broker, and brings those that have subscribers here."""

    at_once = 1_000
    """All of them are under way together; with a hundred at a time, half of the time went into the statements."""

    def __init__(self, settings: Settings, subscriptions: Subscriptions) -> None:
        self._client = KafkaClient(settings)
        self._subscriptions = subscriptions

    def topics(self) -> frozenset[str]:
        """All of them: who reads them is the broker's affair."""
        return frozenset({EVERY_TOPIC})

    def send(self, message: Message) -> KafkaDelivery:
        """Begin to write a message; the answer is to be waited for."""
        return self._client.send(message)

    def open_consumer(self) -> KafkaConsumer | None:
        """A member of the group that reads what is subscribed to here; None where nothing is."""
        topics = sorted(self._subscriptions.topics())
        return self._client.consumer(topics, self._deliver) if topics else None

    def check(self) -> list[str]:
        """The broker answers; the topics that are subscribed to here, and their dead letters, should be there."""
        topics = [name for topic in self._subscriptions.topics() for name in (topic, dead_letter_topic(topic))]
        missing_topics = sorted(set(topics) - self._client.list_topics())
        return [f"the broker has no topic {topic!r}; create it" for topic in missing_topics]

    def close(self) -> None:
        """Let go of connections."""
        self._client.close()

    def _deliver(self, message: Message) -> None:
        if not self._subscriptions.deliver(message):
            raise MessageRefused(f"nobody subscribes to {message.topic!r} here")
