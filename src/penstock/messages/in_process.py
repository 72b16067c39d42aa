"""The default transport: messages go to functions of this process."""

from __future__ import annotations

from penstock.errors import PenstockError
from penstock.lifecycle.transport import Message
from penstock.messages.subscriptions import Subscriptions


class InProcessMessages:
    """Hands each message to everyone who subscribed to its topic; one that fails is tried again later."""

    at_once = 100
    """A subscriber may take long, and what is taken is for no other relay meanwhile."""

    def __init__(self, subscriptions: Subscriptions) -> None:
        self._subscriptions = subscriptions

    def topics(self) -> frozenset[str]:
        """The topics that have subscribers here: messages of other topics are not for this process."""
        return self._subscriptions.topics()

    def send(self, message: Message) -> None:
        """Deliver one message."""
        if not self._subscriptions.deliver(message):
            raise PenstockError(f"nobody subscribes to {message.topic!r} here", code="NO_SUBSCRIBER")

    def open_consumer(self) -> None:
        """Nothing comes from elsewhere."""

    def check(self) -> list[str]:
        """It is always there."""
        return []

    def close(self) -> None:
        """There is nothing to let go of."""
