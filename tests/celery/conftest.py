"""Brokers for the tests of Celery: one of each for the whole run, and others that a test may kill."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from penstock.testing.invariants import violations
from tests.celery.brokers import BROKERS, Broker
from tests.celery.cluster import Cluster
from tests.celery.tracked_app import Tracking, make
from tests.conftest import unavailable
from tests.private_brokers import BrokerUnavailable, private_broker


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
            broker = stack.enter_context(private_broker(BROKERS[request.param]))
        except BrokerUnavailable as error:
            unavailable(str(error))
        yield broker


@pytest.fixture(scope="session")
def new_database(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[Broker], str]]:
    """Makes a database for a broker: a server's beside RabbitMQ, a file beside Redis; the answer is its URL."""
    server = request.getfixturevalue("postgres_server")
    names: list[str] = []

    def make(broker: Broker) -> str:
        if broker.name == "redis":
            file = tmp_path_factory.mktemp("celery") / "penstock.db"
            shutil.copy(request.getfixturevalue("_migrated_sqlite"), file)
            return f"sqlite:///{file}"
        names.append(f"celery_{uuid.uuid4().hex}")
        server.create_database(names[-1], request.getfixturevalue("_migrated_postgres"))
        return str(server.url(names[-1]))

    yield make
    for name in names:
        server.drop_database(name)


@pytest.fixture(scope="module", params=list(BROKERS))
def cluster(
    request: pytest.FixtureRequest, new_database: Callable[[Broker], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """A cluster with one worker of two processes and a dispatcher, for all tests of a module."""
    broker = request.getfixturevalue(f"{request.param}_broker")
    made = Cluster(broker, new_database(broker), tmp_path_factory.mktemp(request.param))
    made.start_worker()
    try:
        with made.dispatching():
            yield made
    finally:
        made.close()


@pytest.fixture
def new_cluster(new_database: Callable[[Broker], str], tmp_path: Path) -> Iterator[Callable[..., Cluster]]:
    """Makes clusters of which nothing runs yet, on a broker and with settings of the test's own."""
    clusters: list[Cluster] = []

    def make(broker: Broker, **settings: str) -> Cluster:
        clusters.append(Cluster(broker, new_database(broker), tmp_path, **settings))
        return clusters[-1]

    yield make
    for cluster in clusters:
        cluster.close()


@pytest.fixture
def client(options: dict[str, Any]) -> Iterator[Tracking]:
    """The program that sends tasks; what it leaves behind is true."""
    tracking = make(**options)
    yield tracking
    tracking.tracked.close()
    assert violations(tracking.app.store) == []
    tracking.app.close()
    tracking.celery.close()
