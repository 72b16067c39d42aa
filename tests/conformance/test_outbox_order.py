"""Messages of one key go out in their order, whoever relays, dies or is overtaken meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from penstock.clock import ManualClock
from penstock.operations import outbox
from penstock.store.engine import Store
from penstock.store.tables import outbox as rows
from penstock.testing.drive import Workbench
from tests.conformance.databases import needs
from tests.conformance.transports import Slow, Transport, append, backlog


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


@needs("writes_beside_others")
def test_a_message_does_not_pass_one_that_another_relay_is_just_taking(store: Store) -> None:
    """The other one's take is under way when ours begins: its rows are locked, and seen as they were before."""
    append(store, "of another key", key="o")
    append(store, "first", "second")
    transport = Transport()
    first = select(rows.c.id).where(rows.c.key == "k").order_by(rows.c.id).limit(1).with_for_update()
    with store.engine.connect() as connection, connection.begin() as taking:
        connection.execute(first)
        outbox.relay(store, transport)
        assert transport.sent == ["of another key"]
        taking.rollback()
    outbox.relay(store, transport)
    assert transport.sent == ["of another key", "first", "second"]


@needs("writes_beside_others")
def test_nothing_a_relay_does_waits_for_a_lock(store: Store) -> None:
    append(store, *range(3), key=None)
    with store.engine.connect() as connection, connection.begin():
        connection.execute(select(rows.c.id).with_for_update())
        assert outbox.relay(store, Transport()) == 0
        assert store.write(outbox.forget_sent) == 0
        assert store.write(lambda one: outbox.drop_unsubscribed(one, (), days=-1)) == 0


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
def test_each_key_in_its_order_whatever_fails(empty_store: Callable[[], Store], steps: list[tuple[str, Any]]) -> None:
    store = empty_store()
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
