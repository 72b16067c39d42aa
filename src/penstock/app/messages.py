"""``app.messages``: publish in a transaction, subscribe to topics; what is not sent yet is in the outbox.

What carries them is a setting (``PENSTOCK_TRANSPORT``): functions of the workers, or a broker.
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.app.runtime import Runtime
from penstock.lifecycle.payloads import JSON
from penstock.lifecycle.transport import Message
from penstock.messages.subscriptions import Subscriber
from penstock.operations import inbox, outbox
from penstock.operations.outbox import Backlog
from penstock.operations.workers import subscribed_topics
from penstock.store.callers_connection import CallersConnection


class Messages:
    """The messages of one application: they belong to nobody, so they need no caller."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def publish(
        self, topic: str, payload: JSON, *, key: str | None = None, connection: CallersConnection | None = None
    ) -> None:
        """Send a message once the transaction has committed, at least once; it survives a crash in the outbox.

        Messages of one topic and ``key`` are sent in their order.
        """
        max_bytes = self._runtime.settings.max_payload_bytes
        self._runtime.write(
            connection, lambda transaction: outbox.append(transaction, topic, payload, key=key, max_bytes=max_bytes)
        )

    def subscribe(self, topic: str) -> Callable[[Subscriber], Subscriber]:
        """Register a function for the messages of a topic, which workers of this process deliver.

        They wait for a process that subscribes, and are dropped after PENSTOCK_UNSUBSCRIBED_MESSAGE_DAYS without one.
        """

        def register(subscriber: Subscriber) -> Subscriber:
            self._runtime.subscriptions.add(topic, subscriber)
            return subscriber

        return register

    def accept(self, message: Message, *, subscriber: str, connection: CallersConnection) -> bool:
        """Write down that this transaction applies the message; False when another one has.

        Messages come at least once. With this in the transaction of its effect, a message has it once for each
        ``subscriber``, whose name must stay the same.
        """
        return self._runtime.write(
            connection, lambda transaction: inbox.accept(transaction, message, subscriber=subscriber)
        )

    def check_transport(self) -> list[str]:
        """Reach the broker, if there is one, changing nothing; what is wrong is raised.

        The answer is what its operator should know about it nonetheless.
        """
        return self._runtime.transport.check()

    def backlog(self) -> Backlog:
        """How many messages wait to be sent, and for how long; and how many of them nobody subscribes to."""
        return self._runtime.store.read(lambda transaction: outbox.backlog(transaction, subscribed_topics(transaction)))
