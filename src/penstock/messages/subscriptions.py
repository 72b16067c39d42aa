"""Who subscribes to what, in this process; whatever transport brings the messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from penstock.errors import InvalidInput
from penstock.lifecycle.bounds import TOPIC
from penstock.lifecycle.transport import EVERY_TOPIC, Message

Subscriber: TypeAlias = Callable[[Message], None]


class Subscriptions:
    """The subscribers of each topic, in the order in which they came."""

    def __init__(self) -> None:
        self._subscribers: dict[str, list[Subscriber]] = {}

    def add(self, topic: str, subscriber: Subscriber) -> None:
        """Call ``subscriber`` with every message of ``topic``, at least once each."""
        TOPIC.require(topic)
        if topic == EVERY_TOPIC:
            raise InvalidInput(f"{topic!r} is no topic; subscribe to each by its name", field="topic")
        self._subscribers.setdefault(topic, []).append(subscriber)

    def topics(self) -> frozenset[str]:
        """The topics that have subscribers."""
        return frozenset(self._subscribers)

    def deliver(self, message: Message) -> bool:
        """Hand a message to its subscribers, one after the other; False when there is none.

        What one of them raises is raised here, and those behind it have not seen the message.
        """
        subscribers = tuple(self._subscribers.get(message.topic, ()))
        for subscriber in subscribers:
            subscriber(message)
        return bool(subscribers)
