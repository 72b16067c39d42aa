"""Messages go out at least once, those of one key in their order, whatever the transport does."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select
from structlog.testing import capture_logs

from penstock.lifecycle.transport import Message
from penstock.operations import outbox
from penstock.operations.relay import Take
from penstock.store.tables import outbox as rows
from penstock.testing.drive import MAX_BYTES, Workbench
from tests.conformance.transports import Transport, append, backlog


def test_in_the_order_they_were_written(bench: Workbench) -> None:
    transport = Transport()
    append(bench.store, *range(250))
    assert [outbox.relay(bench.store, transport) for _ in range(4)] == [100, 100, 50, 0]
    assert transport.sent == list(range(250))


def test_a_message_says_what_it_is(bench: Workbench) -> None:
    append(bench.store, {"n": 1})
    seen: list[Message] = []
    outbox.relay(bench.store, seen.append)
    [message] = seen
    assert (message.topic, message.key, message.payload, message.created_at) == (
        "topic", "k", {"n": 1}, bench.clock.held(),
    )  # fmt: skip


def test_one_that_fails_holds_up_its_key_and_no_other(bench: Workbench) -> None:
    append(bench.store, "k1", "k2")
    append(bench.store, "other", key="o")
    append(bench.store, "free", key=None)
    transport = Transport(refuses=["k1"])
    assert outbox.relay(bench.store, transport) == 2
    assert transport.sent == ["other", "free"]
    append(bench.store, "k3")
    assert outbox.relay(bench.store, transport) == 0
    transport.refuses.clear()
    for _ in range(20):
        bench.clock.advance(0.1)
        outbox.relay(bench.store, transport)
    assert transport.sent == ["other", "free", "k1", "k2", "k3"]


def test_a_failure_is_written_down_and_tried_later_and_later(bench: Workbench) -> None:
    append(bench.store, "bad")
    transport = Transport(refuses=["bad"])
    tries = []
    for second in range(30):
        outbox.relay(bench.store, transport)
        row = bench.store.read(lambda one: one.connection.execute(select(*rows.c)).one())
        tries.append(row.attempts)
        assert row.last_error == "ConnectionError: broker\ufffddown", second
        bench.clock.advance(1)
    assert tries[0] == 1
    assert 4 <= tries[-1] <= 7


def test_those_whose_relay_died_are_sent_again(bench: Workbench) -> None:
    append(bench.store, 1, 2)

    def dies(message: Message) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        outbox.relay(bench.store, dies)
    transport = Transport()
    bench.clock.advance(59)
    append(bench.store, 3)
    assert outbox.relay(bench.store, transport) == 0
    bench.clock.advance(2)
    outbox.relay(bench.store, transport)
    assert transport.sent == [1, 2, 3]


def test_nothing_goes_out_that_did_not_happen(bench: Workbench) -> None:
    def fails(transaction: Any) -> None:
        outbox.append(transaction, "topic", 1, key=None, max_bytes=MAX_BYTES)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        bench.store.write(fails)
    assert outbox.relay(bench.store, Transport()) == 0


def test_what_was_sent_is_forgotten_after_a_week(bench: Workbench) -> None:
    append(bench.store, 1)
    outbox.relay(bench.store, Transport())
    append(bench.store, 2)
    bench.clock.advance(7 * 86400)
    assert bench.store.write(outbox.forget_sent) == 0
    bench.clock.advance(1)
    assert bench.store.write(outbox.forget_sent) == 1
    assert bench.store.read(lambda one: one.values(int, select(rows.c.payload))) == [2]


def test_the_backlog_is_what_waits_and_for_how_long(bench: Workbench) -> None:
    assert backlog(bench.store) == outbox.Backlog(0, None, 0, None)
    append(bench.store, "sent")
    outbox.relay(bench.store, Transport())
    bench.clock.advance(5)
    append(bench.store, 1)
    bench.clock.advance(30)
    append(bench.store, 2)
    assert backlog(bench.store) == outbox.Backlog(2, 30.0, 0, None)


def test_the_backlog_says_what_fails_and_why_the_first_does(bench: Workbench) -> None:
    append(bench.store, "bad", "behind it")
    append(bench.store, "bad too", key="other")
    append(bench.store, "well", key=None)
    outbox.relay(bench.store, Transport(refuses=["bad", "bad too"]))
    append(bench.store, "new", key=None)
    found = backlog(bench.store)
    assert (found.waiting, found.failing, found.last_error) == (4, 2, "ConnectionError: broker\ufffddown")


def test_the_backlog_says_what_nobody_subscribes_to(bench: Workbench) -> None:
    append(bench.store, 2, 3, topic="forgotten")
    bench.clock.advance(10)
    append(bench.store, 1, topic="wanted")
    bench.clock.advance(5)
    found = backlog(bench.store, ["wanted", "also wanted"])
    assert (found.waiting, found.oldest_seconds) == (3, 5.0), "no relay is behind with what nobody subscribes to"
    assert (found.unsubscribed, found.unsubscribed_seconds) == (2, 15.0)


# Topics ---------------------------------------------------------------------------------------------------------------


def test_a_relay_takes_only_what_it_has_a_subscriber_for(bench: Workbench) -> None:
    append(bench.store, "a1", topic="a")
    append(bench.store, "b1", topic="b")
    append(bench.store, "a2", topic="a")
    transport = Transport()
    assert outbox.relay(bench.store, transport, topics=[]) == 0
    assert outbox.relay(bench.store, transport, topics=["b", "c"]) == 1
    assert transport.sent == ["b1"]
    assert outbox.relay(bench.store, transport, topics=["a"]) == 2
    assert transport.sent == ["b1", "a1", "a2"]


def test_a_topic_that_nobody_wants_holds_up_no_other_of_the_same_key(bench: Workbench) -> None:
    append(bench.store, "unwanted", topic="a")
    append(bench.store, "wanted", topic="b")
    transport = Transport()
    outbox.relay(bench.store, transport, topics=["b"])
    assert transport.sent == ["wanted"]


def test_more_of_an_unwanted_topic_than_a_take_has_are_in_nobodys_way(bench: Workbench) -> None:
    append(bench.store, *range(outbox.AT_ONCE + 1), key=None, topic="a")
    append(bench.store, "wanted", topic="b")
    assert outbox.relay(bench.store, Transport(), topics=["b"]) == 1


def drop(bench: Workbench, *subscribed: str) -> int:
    return bench.store.write(lambda one: outbox.drop_unsubscribed(one, subscribed, days=30))


def test_what_nobody_subscribes_to_is_dropped_in_the_end_and_that_is_said(bench: Workbench) -> None:
    append(bench.store, 1, 2, topic="forgotten")
    append(bench.store, 3, topic="subscribed")
    bench.clock.advance(30 * 86400)
    assert drop(bench, "subscribed") == 0
    bench.clock.advance(1)
    append(bench.store, 4, topic="forgotten")
    with capture_logs() as lines:
        assert drop(bench, "subscribed") == 2
    [line] = lines
    assert (line["log_level"], line["topics"], line["days"]) == ("warning", {"forgotten": 2}, 30)
    transport = Transport()
    outbox.relay(bench.store, transport)
    assert transport.sent == [3, 4]


def test_what_was_tried_is_not_dropped_nor_what_waits_behind_it(bench: Workbench) -> None:
    append(bench.store, "bad", "behind it")
    append(bench.store, "never tried", key="other")
    outbox.relay(bench.store, Transport(refuses=["bad", "never tried"]))
    append(bench.store, "new", key="other")
    bench.clock.advance(31 * 86400)
    assert drop(bench) == 0


def test_what_a_relay_has_taken_is_not_dropped(bench: Workbench) -> None:
    append(bench.store, 1)
    bench.clock.advance(31 * 86400)
    assert Take.begin(bench.store, "topic", limit=10) is not None
    assert drop(bench) == 0


def test_a_backlog_is_counted_only_so_far(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    append(bench.store, *range(7))
    monkeypatch.setattr(outbox, "MAX_COUNTED", 7)
    assert backlog(bench.store).waiting == 7
    monkeypatch.setattr(outbox, "MAX_COUNTED", 5)
    assert backlog(bench.store).waiting == 5


def test_the_id_of_a_message_is_never_another_ones(bench: Workbench) -> None:
    seen: list[str] = []
    for _ in range(2):
        append(bench.store, 1, 2)
        outbox.relay(bench.store, lambda message: seen.append(message.id))
        bench.clock.advance(8 * 86400)
        assert bench.store.write(outbox.forget_sent) == 2
    assert len(set(seen)) == 4
