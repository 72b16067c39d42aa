"""A relay with a transport that confirms later: many are under way at once, and never two of one key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from structlog.testing import capture_logs

from penstock.errors import BrokerUnavailable, MessageRefused
from penstock.lifecycle.transport import Message
from penstock.operations import outbox
from penstock.testing.drive import Workbench
from tests.conformance.transports import append, backlog


class Broker:
    """Confirms when it is waited for; what it is told to do to a payload happens then."""

    def __init__(self, during: dict[Any, Callable[[], None]] | None = None) -> None:
        self.during = during or {}
        self.under_way: list[Any] = []
        self.log: list[str] = []

    def __call__(self, message: Message) -> Delivery:
        self.log.append(f"sent {message.payload}")
        self.under_way.append(message.payload)
        return Delivery(self, message.payload)


class Delivery:
    """One message on its way."""

    def __init__(self, broker: Broker, payload: Any) -> None:
        self.broker = broker
        self.payload = payload

    def wait(self) -> None:
        self.broker.under_way.remove(self.payload)
        self.broker.during.pop(self.payload, lambda: None)()
        self.broker.log.append(f"confirmed {self.payload}")


def fails_with(error: BaseException) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


def test_messages_of_other_keys_and_without_one_are_under_way_together(bench: Workbench) -> None:
    append(bench.store, 1, key="a")
    append(bench.store, 2, key="b")
    append(bench.store, 3, 4, key=None)
    broker = Broker()
    assert outbox.relay(bench.store, broker) == 4
    assert broker.log == [
        *(f"sent {number}" for number in range(1, 5)),
        *(f"confirmed {number}" for number in range(1, 5)),
    ]
    assert backlog(bench.store).waiting == 0


def test_as_many_as_the_transport_likes_are_taken_at_a_time(bench: Workbench) -> None:
    append(bench.store, *range(7), key=None)
    assert [outbox.relay(bench.store, Broker(), at_once=3) for _ in range(4)] == [3, 3, 1, 0]


def test_large_messages_are_read_a_few_at_a_time_and_the_others_are_due_at_once(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.operations.relay._MAX_CHARACTERS", 250)
    texts = [f"{number}{100 * 'é'}" for number in range(4)]
    append(bench.store, *texts, "x" * 1000, "small", key="k")
    sent: list[Any] = []
    passes = [outbox.relay(bench.store, lambda message: sent.append(message.payload)) for _ in range(4)]
    assert passes == [3, 2, 1, 0], "the one that is larger than the bound goes, too"
    assert sent == [*texts, "x" * 1000, "small"]


def test_one_of_a_key_goes_when_the_one_before_it_is_confirmed_and_marked(bench: Workbench) -> None:
    append(bench.store, 1, key="a")
    append(bench.store, 2, key="b")
    append(bench.store, 3, key="a")
    waiting: list[int] = []
    broker = Broker({3: lambda: waiting.append(backlog(bench.store).waiting)})
    assert outbox.relay(bench.store, broker) == 3
    assert broker.log == ["sent 1", "sent 2", "confirmed 1", "confirmed 2", "sent 3", "confirmed 3"]
    assert waiting == [1], "the others were marked before it was sent"


def test_one_that_is_not_confirmed_holds_up_its_key_and_no_other(bench: Workbench) -> None:
    append(bench.store, 1, key="a")
    append(bench.store, 2, key="b")
    append(bench.store, 3, key="a")
    append(bench.store, 4, key="b")
    broker = Broker({1: fails_with(RuntimeError("refused"))})
    assert outbox.relay(bench.store, broker) == 2
    assert [line for line in broker.log if line.startswith("sent")] == ["sent 1", "sent 2", "sent 4"]
    assert (backlog(bench.store).waiting, backlog(bench.store).last_error) == (2, "RuntimeError: refused")
    bench.clock.advance(1.1)
    assert outbox.relay(bench.store, broker) == 2


def test_while_the_broker_is_away_nothing_is_postponed_for_long(bench: Workbench) -> None:
    append(bench.store, 1, key="a")
    for _ in range(12):
        outbox.relay(bench.store, Broker({1: fails_with(BrokerUnavailable("nobody answers"))}))
        bench.clock.advance(5.1)
    assert backlog(bench.store).last_error == "BrokerUnavailable: nobody answers"
    broker = Broker()
    assert outbox.relay(bench.store, broker) == 1, "five seconds after it is back, not five minutes"


def test_a_broker_that_is_away_is_not_asked_for_every_message(bench: Workbench) -> None:
    """The first of a key is not confirmed; the second is not sent, and nor is anything behind it."""
    append(bench.store, 1, 2, key="a")
    append(bench.store, 3, key="b")
    broker = Broker({1: fails_with(BrokerUnavailable("nobody answers"))})
    assert outbox.relay(bench.store, broker) == 0
    assert broker.log == ["sent 1"]
    assert outbox.relay(bench.store, Broker()) == 1, "what was not tried is due at once"


def test_who_is_interrupted_leaves_nothing_that_nobody_may_take(bench: Workbench) -> None:
    append(bench.store, 1, key="a")
    append(bench.store, 2, key="b")
    with pytest.raises(KeyboardInterrupt):
        outbox.relay(bench.store, Broker({1: fails_with(KeyboardInterrupt())}))
    bench.clock.advance(61)
    assert outbox.relay(bench.store, Broker()) == 2


def test_one_that_is_refused_becomes_a_dead_letter_and_the_next_of_its_key_goes(bench: Workbench) -> None:
    append(bench.store, "bad", "good", key="a")
    sent: list[tuple[str, Any]] = []

    def send(message: Message) -> None:
        if message.payload == "bad":
            raise MessageRefused("it is\0bad")
        sent.append((message.topic, message.payload))

    with capture_logs() as lines:
        assert outbox.relay(bench.store, send) == 2
    assert [line["topic"] for line in lines if line["event"] == "a message was put aside"] == ["topic"]
    assert sent == [("topic", "good")]
    assert outbox.relay(bench.store, send) == 1
    assert sent[1:] == [("topic-dead-letters", {"reason": "it is\ufffdbad", "message": "bad"})]
    assert backlog(bench.store).waiting == 0


def test_a_dead_letter_that_is_refused_stays_one(bench: Workbench) -> None:
    append(bench.store, "bad", topic="topic-dead-letters")

    def send(message: Message) -> None:
        raise MessageRefused("again")

    assert outbox.relay(bench.store, send) == 0
    assert (backlog(bench.store).waiting, backlog(bench.store).last_error) == (1, "MessageRefused: again")


def test_a_topic_whose_name_has_no_room_for_dead_letters_keeps_its_message(bench: Workbench) -> None:
    append(bench.store, "bad", topic="t" * 250)

    def send(message: Message) -> None:
        raise MessageRefused("again")

    assert outbox.relay(bench.store, send) == 0
    assert backlog(bench.store).waiting == 1


def test_a_transport_of_every_topic_leaves_none_unsubscribed(bench: Workbench) -> None:
    append(bench.store, 1, topic="a")
    append(bench.store, 2, topic="b")
    found = backlog(bench.store, subscribed=["*"])
    assert (found.waiting, found.unsubscribed, found.oldest_seconds is not None) == (2, 0, True)
    assert bench.store.write(lambda one: outbox.drop_unsubscribed(one, {"*"}, days=0)) == 0
    assert outbox.relay(bench.store, Broker(), topics={"*"}) == 2
