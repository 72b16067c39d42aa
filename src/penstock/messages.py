"""The default transport: messages go to functions of this process."""

from __future__ import annotations

from collections.abc import Callable

from penstock.operations.outbox import Message

__all__ = ["InProcessMessages", "Subscriber"]

Subscriber = Callable[[Message], None]


class InProcessMessages:
    """Hands each message to everyone who subscribed to its topic; one that fails is tried again later."""

    def __init__(self) -> None:
        self._subscribers: dict[str, list[Subscriber]] = {}

    def subscribe(self, topic: str, subscriber: Subscriber) -> None:
        """Call ``subscriber`` with every message of ``topic``, at least once each."""
        self._subscribers.setdefault(topic, []).append(subscriber)

    def topics(self) -> frozenset[str]:
        """The topics that have subscribers here: messages of other topics are not for this process."""
        return frozenset(self._subscribers)

    def send(self, message: Message) -> None:
        """Deliver one message."""
        for subscriber in tuple(self._subscribers[message.topic]):
            subscriber(message)
