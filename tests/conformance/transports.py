"""Messages of the outbox, and transports that refuse them, or take their time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from penstock.lifecycle.transport import Message
from penstock.operations import outbox
from penstock.store.engine import Store
from penstock.testing.drive import MAX_BYTES


def append(store: Store, *payloads: Any, key: str | None = "k", topic: str = "topic") -> None:
    def all_of_them(transaction: Any) -> None:
        for payload in payloads:
            outbox.append(transaction, topic, payload, key=key, max_bytes=MAX_BYTES)

    store.write(all_of_them)


def backlog(store: Store, subscribed: Iterable[str] = ("topic",)) -> outbox.Backlog:
    return store.read(lambda one: outbox.backlog(one, frozenset(subscribed)))


class Transport:
    """Keeps what was sent; refuses the payloads it is told to."""

    def __init__(self, refuses: Iterable[Any] = ()) -> None:
        self.sent: list[Any] = []
        self.refuses = set(refuses)

    def __call__(self, message: Message) -> None:
        if message.payload in self.refuses:
            raise ConnectionError("broker\0down")
        self.sent.append(message.payload)


class Slow(Transport):
    """Lets time pass, and somebody else act, when a message has arrived."""

    def __init__(self, during: dict[Any, Callable[[], object]]) -> None:
        super().__init__()
        self.during = during

    def __call__(self, message: Message) -> None:
        super().__call__(message)
        self.during.pop(message.payload, lambda: None)()
