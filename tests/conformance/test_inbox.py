"""The inbox: whoever accepts a message first applies it, and nobody else does."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial

import pytest

from penstock.errors import InvalidInput
from penstock.lifecycle.kind import Kinds
from penstock.lifecycle.transport import Message
from penstock.operations.inbox import KEEP_SECONDS, accept, forget_accepted
from penstock.operations.maintenance import sweep
from penstock.testing.drive import Workbench


def message(number: int = 1, topic: str = "orders") -> Message:
    return Message(f"id-{number}", topic, None, None, datetime(2026, 1, 1, tzinfo=UTC))


def accepts(bench: Workbench, one: Message, subscriber: str = "shop") -> bool:
    return bench.store.write(partial(accept, message=one, subscriber=subscriber))


def test_a_message_is_accepted_once_by_each_subscriber_of_a_topic(bench: Workbench) -> None:
    assert accepts(bench, message())
    assert not accepts(bench, message())
    assert accepts(bench, message(), subscriber="accounts")
    assert accepts(bench, message(topic="bills")), "ids of strangers may be the same in two topics"
    assert accepts(bench, message(2))


def test_what_was_rolled_back_was_not_accepted(bench: Workbench) -> None:
    def dies(transaction):
        assert accept(transaction, message(), subscriber="shop")
        raise RuntimeError("after it, and before the commit")

    with pytest.raises(RuntimeError, match="before the commit"):
        bench.store.write(dies)
    assert accepts(bench, message())


def test_what_was_accepted_long_ago_is_forgotten_by_the_sweep(bench: Workbench) -> None:
    accepts(bench, message(1))
    bench.clock.advance(KEEP_SECONDS - 1)
    accepts(bench, message(2))
    assert bench.store.write(forget_accepted) == 0
    bench.clock.advance(2)
    sweep(bench.store, Kinds(), stale_seconds=900, suspect_deaths=5)
    assert accepts(bench, message(1))
    assert not accepts(bench, message(2))


@pytest.mark.parametrize("name", ["", "x" * 65])
def test_a_subscribers_name_is_bounded(bench: Workbench, name: str) -> None:
    with pytest.raises(InvalidInput, match="subscriber has"):
        accepts(bench, message(), subscriber=name)
