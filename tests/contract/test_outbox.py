"""Messages go out at least once, those of one key in their order, whatever the transport does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import select
from structlog.testing import capture_logs

from penstock.clock import ManualClock
from penstock.operations import outbox
from penstock.store.engine import Store
from penstock.store.tables import outbox as rows
from penstock.testing.drive import MAX_BYTES, Workbench


def append(store: Store, *payloads: Any, key: str | None = "k", topic: str = "topic") -> None:
    def all_of_them(transaction: Any) -> None:
        for payload in payloads:
            outbox.append(transaction, topic, payload, key=key, max_bytes=MAX_BYTES)

    store.write(all_of_them)


class Transport:
    """Keeps what was sent; refuses the payloads it is told to."""

    def __init__(self, refuses: Iterable[Any] = ()) -> None:
        self.sent: list[Any] = []
        self.refuses = set(refuses)

    def __call__(self, message: outbox.Message) -> None:
        if message.payload in self.refuses:
            raise ConnectionError("broker\0down")
        self.sent.append(message.payload)


def test_in_the_order_they_were_written(bench: Workbench) -> None:
    transport = Transport()
    append(bench.store, *range(250))
    assert [outbox.relay(bench.store, transport) for _ in range(4)] == [100, 100, 50, 0]
    assert transport.sent == list(range(250))


def test_a_message_says_what_it_is(bench: Workbench) -> None:
    append(bench.store, {"n": 1})
    seen: list[outbox.Message] = []
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

    def dies(message: outbox.Message) -> None:
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


def backlog(store: Store, subscribed: Iterable[str] = ("topic",)) -> outbox.Backlog:
    return store.read(lambda one: outbox.backlog(one, frozenset(subscribed)))


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
    assert outbox.Take.begin(bench.store, "topic") is not None
    assert drop(bench) == 0


# Order and fence ------------------------------------------------------------------------------------------------------


class Slow(Transport):
    """Lets time pass, and somebody else act, when a message has arrived."""

    def __init__(self, during: dict[Any, Callable[[], object]]) -> None:
        super().__init__()
        self.during = during

    def __call__(self, message: outbox.Message) -> None:
        super().__call__(message)
        self.during.pop(message.payload, lambda: None)()


def other_process(bench: Workbench) -> Store:
    """The same database as another process has it."""
    return Store(bench.store.engine, bench.clock)


def test_a_slow_relay_stops_when_another_has_taken_over(bench: Workbench) -> None:
    append(bench.store, 1, 2, 3)
    append(bench.store, "other 1", "other 2", key="o")
    other = other_process(bench)

    def overtaken() -> None:
        bench.clock.advance(61)
        outbox.relay(other, transport)

    transport = Slow({1: overtaken})
    assert outbox.relay(bench.store, transport) == 1
    assert transport.sent == [1, 1, 2, 3, "other 1", "other 2"]
    assert backlog(bench.store).waiting == 0


def test_a_slow_relay_leaves_the_rest_of_its_take_to_the_next(bench: Workbench) -> None:
    append(bench.store, 1, 2)
    append(bench.store, "other", key="o")
    transport = Slow({1: lambda: bench.clock.advance(50)})
    assert outbox.relay(bench.store, transport) == 1
    assert outbox.relay(other_process(bench), transport) == 2, "at once, not after a minute"
    assert transport.sent == [1, 2, "other"]


def test_a_relay_that_finds_its_token_gone_stops_whatever_its_watch_says(bench: Workbench) -> None:
    """The database's clock was set forward: the take is over for all others before it is for us."""
    append(bench.store, 1, 2, 3)
    ahead = ManualClock(bench.clock.held())
    ahead.advance(61)
    transport = Slow({1: lambda: outbox.relay(Store(bench.store.engine, ahead), transport)})
    assert outbox.relay(bench.store, transport) == 1
    assert transport.sent == [1, 1, 2, 3]


def test_who_has_lost_a_take_changes_nothing(bench: Workbench) -> None:
    append(bench.store, "m")
    other = other_process(bench)

    def overtaken() -> None:
        bench.clock.advance(61)
        outbox.relay(other, Transport(refuses=["m"]))

    outbox.relay(bench.store, Slow({"m": overtaken}))
    row = bench.store.read(lambda one: one.connection.execute(select(*rows.c)).one())
    assert (row.attempts, row.sent_at) == (1, None), "the other relay's word holds"


def test_no_relay_of_the_same_process_takes_a_message_in_flight(bench: Workbench) -> None:
    append(bench.store, 1, 2, 3)
    beside = Transport()

    def long() -> None:
        bench.clock.advance(3600)
        outbox.relay(bench.store, beside)

    transport = Slow({1: long})
    outbox.relay(bench.store, transport)
    assert (transport.sent, beside.sent) == ([1], [])
    outbox.relay(bench.store, transport)
    assert transport.sent == [1, 2, 3]


def test_after_a_death_no_older_message_comes_behind_a_newer_one(bench: Workbench) -> None:
    append(bench.store, 1, 2, 3)

    def dies() -> None:
        raise KeyboardInterrupt

    transport = Slow({2: dies})
    with pytest.raises(KeyboardInterrupt):
        outbox.relay(bench.store, transport)
    bench.clock.advance(61)
    outbox.relay(bench.store, transport)
    assert transport.sent == [1, 2, 2, 3]


def test_a_message_does_not_pass_one_that_another_relay_is_just_taking(postgres_store: Store) -> None:
    """The other one's take is under way when ours begins: its rows are locked, and seen as they were before."""
    append(postgres_store, "of another key", key="o")
    append(postgres_store, "first", "second")
    transport = Transport()
    first = select(rows.c.id).where(rows.c.key == "k").order_by(rows.c.id).limit(1).with_for_update()
    with postgres_store.engine.connect() as connection, connection.begin() as taking:
        connection.execute(first)
        outbox.relay(postgres_store, transport)
        assert transport.sent == ["of another key"]
        taking.rollback()
    outbox.relay(postgres_store, transport)
    assert transport.sent == ["of another key", "first", "second"]


def test_nothing_a_relay_does_waits_for_a_lock(postgres_store: Store) -> None:
    append(postgres_store, *range(3), key=None)
    with postgres_store.engine.connect() as connection, connection.begin():
        connection.execute(select(rows.c.id).with_for_update())
        assert outbox.relay(postgres_store, Transport()) == 0
        assert postgres_store.write(outbox.forget_sent) == 0
        assert postgres_store.write(lambda one: outbox.drop_unsubscribed(one, (), days=-1)) == 0


def test_the_number_of_a_message_is_never_another_ones(bench: Workbench) -> None:
    seen: list[int] = []
    for _ in range(2):
        append(bench.store, 1, 2)
        outbox.relay(bench.store, lambda message: seen.append(message.id))
        bench.clock.advance(8 * 86400)
        assert bench.store.write(outbox.forget_sent) == 2
    assert len(set(seen)) == 4


def test_a_backlog_is_counted_only_so_far(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    append(bench.store, *range(7))
    monkeypatch.setattr(outbox, "MAX_COUNTED", 7)
    assert backlog(bench.store).waiting == 7
    monkeypatch.setattr(outbox, "MAX_COUNTED", 5)
    assert backlog(bench.store).waiting == 5


@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("append"), st.text("ab", min_size=1, max_size=6)),
            st.tuples(st.just("relay"), st.lists(st.integers(0, 20), max_size=3)),
            st.tuples(st.sampled_from(["die", "overtake"]), st.integers(1, 3)),
            st.tuples(st.just("wait"), st.sampled_from([0.2, 1.0, 61.0])),
        ),
        max_size=25,
    )
)
@settings(max_examples=60)
def test_each_key_in_its_order_whatever_fails(engines: Callable[[str], Store], steps: list[tuple[str, Any]]) -> None:
    store = engines("memory")
    clock = store.clock
    assert isinstance(clock, ManualClock)
    other = Store(store.engine, clock)
    transport, number = Slow({}), 0

    def dies() -> None:
        raise KeyboardInterrupt

    def overtaken() -> None:
        clock.advance(61)
        outbox.relay(other, transport)

    for verb, what in steps:
        if verb == "append":
            for key in what:
                append(store, number, key=key)
                number += 1
        elif verb == "relay":
            transport.refuses = set(what)
            outbox.relay(store, transport)
        elif verb in ("die", "overtake"):
            due = range(len(set(transport.sent)), number)
            transport.during = dict.fromkeys(due[what - 1 : what], dies if verb == "die" else overtaken)
            with suppress(KeyboardInterrupt):
                outbox.relay(store, transport)
            transport.during = {}
        else:
            clock.advance(what)
    transport.refuses = set()
    for _ in range(10):
        clock.advance(400)
        outbox.relay(store, transport)
    keys = {
        one.payload: one.key
        for one in store.read(lambda one: one.connection.execute(select(rows.c.payload, rows.c.key)).all())
    }
    assert set(transport.sent) == set(range(number))
    for key in ("a", "b"):
        of_key = [one for one in transport.sent if keys[one] == key]
        assert of_key == sorted(of_key)
