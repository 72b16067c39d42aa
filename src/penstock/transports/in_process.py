"""The default transport: messages go to functions of this process."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from penstock.operations.outbox import Message

Subscriber = Callable[[Message], None]


class InProcess:
    """Hands each message to everyone who subscribed to its topic; one that fails is tried again later."""

    def __init__(self) -> None:
        self._subscribers: defaultdict[str, list[Subscriber]] = defaultdict(list)

    def subscribe(self, topic: str, subscriber: Subscriber) -> None:
        """Call ``subscriber`` with every message of ``topic``, at least once each."""
        self._subscribers[topic].append(subscriber)

    def send(self, message: Message) -> None:
        """Deliver one message."""
        for subscriber in tuple(self._subscribers[message.topic]):
            subscriber(message)
