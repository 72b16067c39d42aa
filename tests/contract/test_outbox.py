"""Messages go out at least once, those of one key in their order, whatever the transport does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from penstock.clock import HeldClock
from penstock.operations import outbox
from penstock.store.engine import Store, open_store
from penstock.store.tables import metadata
from penstock.store.tables import outbox as rows
from penstock.testing.drive import MOST, Workbench


def append(store: Store, *payloads: Any, key: str | None = "k") -> None:
    def all_of_them(transaction: Any) -> None:
        for payload in payloads:
            outbox.append(transaction, "topic", payload, key=key, most=MOST)

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
        row = bench.store.read(lambda one: one.run(select(*rows.c)).one())
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
        outbox.append(transaction, "topic", 1, key=None, most=MOST)
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
    assert bench.store.read(lambda one: one.run(select(rows.c.payload)).scalars()) == [2]


def backlog(store: Store) -> outbox.Backlog:
    return store.read(outbox.backlog, at_once=True)


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
    append(bench.store, "well", key=None)
    outbox.relay(bench.store, Transport(refuses=["bad"]))
    append(bench.store, "new", key=None)
    found = backlog(bench.store)
    assert (found.waiting, found.failing, found.last_error) == (3, 2, "ConnectionError: broker\ufffddown")


def test_a_backlog_is_counted_only_so_far(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    append(bench.store, *range(7))
    monkeypatch.setattr(outbox, "MOST_COUNTED", 7)
    assert backlog(bench.store).waiting == 7
    monkeypatch.setattr(outbox, "MOST_COUNTED", 5)
    assert backlog(bench.store).waiting == 5


@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("append"), st.sampled_from(["a", "b"])),
            st.tuples(st.just("relay"), st.lists(st.integers(0, 20), max_size=3)),
            st.tuples(st.just("wait"), st.sampled_from([0.2, 1.0, 61.0])),
        ),
        max_size=25,
    )
)
@settings(max_examples=60)
def test_each_key_in_its_order_whatever_fails(steps: list[tuple[str, Any]]) -> None:
    clock = HeldClock()
    store = open_store("sqlite://", clock=clock)
    metadata.create_all(store.engine)
    transport, number = Transport(), 0
    for verb, what in steps:
        if verb == "append":
            append(store, number, key=what)
            number += 1
        elif verb == "relay":
            transport.refuses = set(what)
            outbox.relay(store, transport)
        else:
            clock.advance(what)
    transport.refuses = set()
    for _ in range(10):
        clock.advance(400)
        outbox.relay(store, transport)
    keys = {one.payload: one.key for one in store.read(lambda one: one.run(select(rows.c.payload, rows.c.key)).all())}
    assert sorted(transport.sent) == list(range(number))
    for key in ("a", "b"):
        of_key = [one for one in transport.sent if keys[one] == key]
        assert of_key == sorted(of_key)
    store.close()
