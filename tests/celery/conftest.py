"""Brokers for the tests of Celery: one of each for the whole run, and others that a test may kill."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.celery.brokers import BROKERS, Broker, BrokerUnavailable, private_broker
from tests.conftest import unavailable


@pytest.fixture(params=list(BROKERS))
def broker(request: pytest.FixtureRequest) -> Broker:
    """Each broker; it is shared with other tests, so queues have names of their own."""
    found: Broker = request.getfixturevalue(f"{request.param}_broker")
    return found


@pytest.fixture(params=list(BROKERS))
def broker_to_kill(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """Each broker, for this test alone."""
    with ExitStack() as stack:
        try:
            broker = stack.enter_context(private_broker(request.param))
        except BrokerUnavailable as error:
            unavailable(str(error))
        yield broker
