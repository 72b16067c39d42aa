"""Messages between programs that share a database: each delivers what it has a subscriber for."""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from structlog.testing import capture_logs

from penstock import Penstock
from penstock.app import Message
from penstock.clock import ManualClock

PATIENCE = 30.0
Open = Callable[..., Penstock]


def test_a_program_without_a_subscriber_leaves_the_messages_to_one_that_has(open_app: Open) -> None:
    shop, cron = open_app(), open_app()
    got: list[Any] = []
    shop.messages.subscribe("orders")(lambda message: got.append(message.payload))
    for number in range(5):
        shop.messages.publish("orders", number)
    cron.system.sweep()
    assert (got, cron.messages.backlog().waiting) == ([], 5)
    shop.system.sweep()
    assert (got, cron.messages.backlog().waiting) == ([0, 1, 2, 3, 4], 0)


def test_workers_too_and_they_say_what_they_subscribe_to(open_app: Open) -> None:
    brisk = {"heartbeat_seconds": 0.05}
    shop, other = open_app(**brisk), open_app(**brisk)
    got: SimpleQueue[Any] = SimpleQueue()
    shop.messages.subscribe("orders")(lambda message: got.put(message.payload))
    heard: SimpleQueue[Any] = SimpleQueue()
    other.messages.subscribe("bills")(lambda message: heard.put(message.payload))
    other.messages.publish("orders", 1)
    assert other.messages.backlog().unsubscribed == 1
    with other.working():
        other.messages.publish("bills", 1)
        heard.get(timeout=PATIENCE)  # its relay has been at work
        assert got.empty()
        with shop.working():
            assert got.get(timeout=PATIENCE) == 1
            other.messages.publish("orders", 2)
            assert got.get(timeout=PATIENCE) == 2
            assert other.messages.backlog().unsubscribed == 0


def test_a_subscriber_that_was_away_for_long_finds_its_messages_when_it_comes_back(open_app: Open) -> None:
    """Everything stood still for longer than messages without a subscriber are kept: the sweep must not drop them."""
    clock = ManualClock()
    shop = open_app(clock=clock)
    got: list[Message] = []
    shop.messages.publish("orders", 1)
    shop.messages.publish("forgotten", 2)
    clock.advance(40 * 86400)
    shop.messages.subscribe("orders")(got.append)
    with capture_logs() as lines:
        shop.system.sweep()
    assert [message.payload for message in got] == [1]
    assert [line["topics"] for line in lines if "topics" in line] == [{"forgotten": 1}]
