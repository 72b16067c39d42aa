"""What carries messages: a transport takes them out of the outbox, and may bring others in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeAlias

from penstock.lifecycle.payloads import JSON

EVERY_TOPIC = "*"
"""Among the topics of a transport: it carries the messages of all of them."""
_DEAD_LETTERS = "-dead-letters"


@dataclass(frozen=True, slots=True)
class Message:
    """One message: on its way out, or as it came in."""

    id: str
    """The same each time it is sent, and never another message's, of any database."""
    topic: str
    key: str | None
    payload: JSON
    created_at: datetime


@dataclass(frozen=True, slots=True)
class TransportHealth:
    """How a worker's consumer fares with what brings messages, as it saw it last."""

    is_reachable: bool
    lag: dict[str, int]
    """The messages of each topic that have not been handled yet, of the partitions that this consumer has."""
    error: str | None = None
    """Why it is not reachable, as far as that is known."""


class Delivery(Protocol):
    """A message on its way to where it is safe."""

    def wait(self) -> None:
        """Until it is there, for a time that the transport bounds; what it raises is an error of that message."""


class Consumer(Protocol):
    """What brings messages from elsewhere to subscribers; two threads call it again and again."""

    def poll(self) -> None:
        """Fetch what has come, within a moment."""

    def handle(self) -> None:
        """Hand the next message to its subscribers; wait a moment where there is none."""

    def health(self) -> TransportHealth | None:
        """How it fares; None as long as that is not known. It asks nobody, and returns at once."""

    def close(self) -> None:
        """Let go of everything: others get what was not handled."""


Send: TypeAlias = Callable[[Message], Delivery | None]


class Transport(Protocol):
    """What carries messages out of the outbox, and brings others in."""

    at_once: int
    """How many messages a relay best takes at a time: each time costs the same few statements."""

    def topics(self) -> frozenset[str]:
        """The topics whose messages it carries now, or EVERY_TOPIC."""

    def send(self, message: Message) -> Delivery | None:
        """Deliver one message of these topics, or begin to; what it raises is an error of that message."""

    def open_consumer(self) -> Consumer | None:
        """A consumer for the topics that have subscribers; None where nothing comes from elsewhere."""

    def check(self) -> list[str]:
        """Reach what carries the messages, changing nothing; what is wrong is raised.

        The answer is what its operator should know about it nonetheless.
        """

    def close(self) -> None:
        """Let go of connections."""


def dead_letter_topic(topic: str) -> str:
    """Where the messages of a topic go that nobody can take."""
    return topic + _DEAD_LETTERS


def is_dead_letter_topic(topic: str) -> bool:
    """Is it where messages of another topic were put aside?"""
    return topic.endswith(_DEAD_LETTERS)
