"""What every transport promises: at least once, in order within a key, one effect for one id, no silent loss."""

from __future__ import annotations

from collections import defaultdict
from queue import SimpleQueue
from typing import Any

import pytest

from penstock import Penstock
from penstock.app import Message
from penstock.errors import MessageRefused
from penstock.store import DatabaseConnection
from tests.transports.conftest import Carrier, OpenApp
from tests.waiting import eventually

PATIENCE = 60.0


@pytest.fixture
def app(carrier: Carrier, open_app: OpenApp, topic: str) -> Penstock:
    """A Penstock whose messages go by the transport."""
    carrier.make_topics(topic)
    return open_app(**carrier.settings)


def hear(app: Penstock, topic: str) -> SimpleQueue[Message]:
    heard: SimpleQueue[Message] = SimpleQueue()
    app.messages.subscribe(topic)(heard.put)
    return heard


def test_a_message_arrives_as_it_was_published(app: Penstock, topic: str) -> None:
    heard = hear(app, topic)
    payloads: list[Any] = [{"title": "Crème brûlée", "steps": [1, 2.5, None]}, "text", None, [], 2**63]
    with app.working():
        for number, payload in enumerate(payloads):
            app.messages.publish(topic, payload, key=f"key-{number}")
        app.messages.publish(topic, "without a key")
        messages = [heard.get(timeout=PATIENCE) for _ in range(6)]
    found = {message.key: message.payload for message in messages}
    assert found == {f"key-{number}": payload for number, payload in enumerate(payloads)} | {None: "without a key"}
    assert len({message.id for message in messages}) == 6
    assert {message.topic for message in messages} == {topic}
    assert all(message.created_at.tzinfo is not None for message in messages)


def test_messages_of_a_key_come_in_their_order(app: Penstock, topic: str) -> None:
    heard = hear(app, topic)
    for number in range(60):
        app.messages.publish(topic, number, key=f"key-{number % 4}")
    came: defaultdict[str | None, list[int]] = defaultdict(list)
    with app.working():
        for _ in range(60):
            message = heard.get(timeout=PATIENCE)
            came[message.key].append(message.payload)
    assert came == {f"key-{first}": list(range(first, 60, 4)) for first in range(4)}


def test_one_that_fails_comes_again_with_the_same_id_and_before_those_behind_it(app: Penstock, topic: str) -> None:
    heard: SimpleQueue[Message] = SimpleQueue()
    failures = iter([RuntimeError("not now")])

    @app.messages.subscribe(topic)
    def take(message: Message) -> None:
        heard.put(message)
        if (error := next(failures, None)) is not None:
            raise error

    app.messages.publish(topic, 1, key="k")
    app.messages.publish(topic, 2, key="k")
    with app.working():
        first, again, second = (heard.get(timeout=PATIENCE) for _ in range(3))
    assert (first.id, first.payload) == (again.id, again.payload)
    assert (second.payload, second.id != first.id) == (2, True)


def test_what_comes_twice_has_its_effect_once(app: Penstock, topic: str) -> None:
    """The subscriber dies right after its commit, as a killed worker would: the message comes again."""
    accepted: SimpleQueue[bool] = SimpleQueue()
    deaths = iter([RuntimeError("killed")])

    @app.messages.subscribe(topic)
    def apply(message: Message) -> None:
        def operation(connection: DatabaseConnection) -> bool:
            return app.messages.accept(message, subscriber="tests", connection=connection)

        accepted.put(app.in_transaction(operation))
        if (error := next(deaths, None)) is not None:
            raise error

    app.messages.publish(topic, 1)
    with app.working():
        assert accepted.get(timeout=PATIENCE)
        assert not accepted.get(timeout=PATIENCE)


def test_an_effect_that_was_rolled_back_is_not_counted(app: Penstock, topic: str) -> None:
    accepted: SimpleQueue[bool] = SimpleQueue()
    failures = iter([RuntimeError("rolled back")])

    @app.messages.subscribe(topic)
    def apply(message: Message) -> None:
        def operation(connection: DatabaseConnection) -> None:
            accepted.put(app.messages.accept(message, subscriber="tests", connection=connection))
            if (error := next(failures, None)) is not None:
                raise error

        app.in_transaction(operation)

    app.messages.publish(topic, 1)
    with app.working():
        assert accepted.get(timeout=PATIENCE)
        assert accepted.get(timeout=PATIENCE)


def test_two_subscribers_have_an_effect_each(app: Penstock, topic: str) -> None:
    accepted: SimpleQueue[tuple[str, bool]] = SimpleQueue()

    def subscribe(name: str) -> None:
        def apply(message: Message) -> None:
            accepted.put((name, app.in_transaction(
                lambda connection: app.messages.accept(message, subscriber=name, connection=connection)
            )))  # fmt: skip

        app.messages.subscribe(topic)(apply)

    subscribe("first")
    subscribe("second")
    app.messages.publish(topic, 1)
    with app.working():
        assert [accepted.get(timeout=PATIENCE) for _ in range(2)] == [("first", True), ("second", True)]


def test_one_that_is_refused_is_put_aside_with_the_reason_and_the_next_goes_on(
    app: Penstock, carrier: Carrier, topic: str
) -> None:
    heard: SimpleQueue[Any] = SimpleQueue()

    @app.messages.subscribe(topic)
    def take(message: Message) -> None:
        if message.payload == "bad":
            raise MessageRefused("it is bad")
        heard.put(message.payload)

    for payload in ("bad", "good"):
        app.messages.publish(topic, payload, key="k")
    with app.working():
        assert heard.get(timeout=PATIENCE) == "good"
    [(reason, payload)] = carrier.dead_letters(app, topic)
    assert (reason, payload in ("bad", b'"bad"')) == ("it is bad", True)


def test_a_message_that_nobody_takes_is_an_error_or_shown_as_unsubscribed(app: Penstock, topic: str) -> None:
    """In-process it waits for a subscriber, and is counted; a broker that has no such topic says so."""
    hear(app, topic)
    nobodys = f"{topic}-nobodys"
    app.messages.publish(nobodys, 1)
    with app.working():
        eventually(lambda: app.messages.backlog().unsubscribed or app.messages.backlog().last_error, PATIENCE)
        backlog = app.messages.backlog()
    assert backlog.waiting == 1
    assert backlog.unsubscribed == 1 or nobodys in (backlog.last_error or "")
