"""What every test may ask for, and the block at the end that says aloud what was not run."""

from __future__ import annotations

import gc
import logging
import os
import signal
import uuid
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest
import structlog
from hypothesis import HealthCheck, settings

from penstock.logs import hand_to_logging
from tests.conformance.databases import chosen_databases, database_named
from tests.private_brokers import BrokerUnavailable, SomeBroker, shared_broker
from tests.sizes import LARGE

if TYPE_CHECKING:
    from penstock.store.engine import Store
    from penstock.testing.postgres import PostgresServer
    from tests.celery.brokers import Broker as CeleryBroker
    from tests.database_pool import DatabasePools
    from tests.stores import Stores
    from tests.transports.broker import Broker as KafkaBroker

# The same examples every time, and no more than a minute of them; HYPOTHESIS_PROFILE=thorough looks further.
_PLAIN = settings(
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
settings.register_profile("default", _PLAIN, max_examples=60, stateful_step_count=40, derandomize=True)
settings.register_profile("thorough", _PLAIN, max_examples=2_000, stateful_step_count=100)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# One server for each xdist worker: it need not survive a power cut, and it is small.
TEST_SERVER = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "shared_buffers": "32MB"}


def pytest_configure() -> None:
    # Before the first test: whoever captures log lines leaves structlog set up, with defaults of its own if there was
    # nothing else, and these print every variable of a traceback's frames: a quarter of a minute for one request.
    hand_to_logging()
    # A run in the background of a shell ignores SIGINT, and so would the programs it starts.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what runs with LARGE=1 alone, unless it was asked for by its name."""
    if LARGE or any("::" in argument for argument in config.args):
        return
    left_out = [item for item in items if item.get_closest_marker("large")]
    if left_out:
        items[:] = [item for item in items if not item.get_closest_marker("large")]
        config.hook.pytest_deselected(items=left_out)


def pytest_collection_finish() -> None:
    # What is loaded by now stays: no garbage collection of the thousands to come need look at it again.
    gc.collect()
    gc.freeze()


def unavailable(reason: str) -> NoReturn:
    """Skip the test for want of a server; in continuous integration, where that would hide something, fail it."""
    if os.environ.get("CI", "").lower() in {"1", "true"}:
        pytest.fail(f"{reason} (CI is set: this is a failure, not a skip)", pytrace=False)
    pytest.skip(reason)


@pytest.fixture
def kept_logs() -> Iterator[None]:
    """Where log lines go is the same after the test: for one that runs a command in this process."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    structure = structlog.get_config()
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.getLogger("alembic").setLevel(logging.NOTSET)
    structlog.configure(**structure)


@pytest.fixture(scope="session")
def programs() -> Iterator[Path]:
    """A directory with a ``penstock`` and a ``python`` that start quickly; with TESTS_START_COLD=1, the real ones."""
    from tests.fork_server.programs import REAL, warm_programs

    if os.environ.get("TESTS_START_COLD", "").lower() in {"1", "true"}:
        yield REAL.parent
    else:
        with warm_programs() as directory:
            yield directory


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A PostgreSQL server of our own, for the whole run."""
    # Imported here: a run of the unit tests alone should not load a driver.
    from penstock.testing.postgres import PostgresUnavailable, private_postgres

    with ExitStack() as stack:
        try:
            server = stack.enter_context(private_postgres(settings=TEST_SERVER))
        except PostgresUnavailable as error:
            unavailable(str(error))
        yield server


@pytest.fixture(scope="session")
def kafka_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A Kafka broker of our own, for all processes of the run; a test that kills one has its own."""
    # Imported here, for the same reason.
    from tests.transports.broker import Broker

    yield from _shared_broker(Broker, tmp_path_factory)


@pytest.fixture(scope="session")
def rabbitmq_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CeleryBroker]:
    """A RabbitMQ of our own, for all processes of the run."""
    from tests.celery.brokers import RabbitMQ

    yield from _shared_broker(RabbitMQ, tmp_path_factory)


@pytest.fixture(scope="session")
def redis_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CeleryBroker]:
    """A Redis (its successor Valkey) of our own, for all processes of the run."""
    from tests.celery.brokers import Valkey

    yield from _shared_broker(Valkey, tmp_path_factory)


def _shared_broker(broker_type: type[SomeBroker], tmp_path_factory: pytest.TempPathFactory) -> Iterator[SomeBroker]:
    base = tmp_path_factory.getbasetemp()
    folder = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with ExitStack() as stack:
        try:
            broker = stack.enter_context(shared_broker(broker_type, folder))
        except BrokerUnavailable as error:
            unavailable(str(error))
        yield broker


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """The URL of a fresh, empty PostgreSQL database, dropped after the test."""
    name = f"test_{uuid.uuid4().hex}"
    postgres_server.create_database(name)
    yield postgres_server.url(name)
    postgres_server.drop_database(name)


@pytest.fixture(scope="session")
def _migrated_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("migrated") / "penstock.db"
    _migrate_new(f"sqlite:///{path}")
    return path


@pytest.fixture(scope="session")
def _migrated_postgres(postgres_server: PostgresServer) -> str:
    postgres_server.create_database("migrated")
    _migrate_new(postgres_server.url("migrated"))
    return "migrated"


@pytest.fixture(scope="session")
def database_pools(postgres_server: PostgresServer) -> DatabasePools:
    """Copies of databases that were migrated once."""
    from tests.database_pool import DatabasePools

    return DatabasePools(postgres_server)


def _migrate_new(url: str) -> None:
    from penstock.store.engine import open_store
    from penstock.store.schema import migrate

    store = open_store(url)
    migrate(store)
    store.close()


@pytest.fixture(params=[database.name for database in chosen_databases() if database.is_shared])
def migrated_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a fresh database of each kind, with all its tables: copies of one that was migrated once."""
    with database_named(request.param).copy(request, tmp_path) as url:
        yield url


@pytest.fixture
def migrated_postgres_url(database_pools: DatabasePools, _migrated_postgres: str) -> Iterator[str]:
    """The URL of a fresh PostgreSQL database with all its tables."""
    with database_pools.lend(_migrated_postgres) as url:
        yield url


@pytest.fixture(scope="session")
def stores(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    """Stores on databases that all tests share, emptied before each."""
    # Imported here, for the same reason.
    from tests.stores import Stores

    kept = Stores(request, tmp_path_factory)
    yield kept
    kept.close()


@pytest.fixture
def memory_store(stores: Stores) -> Store:
    """SQLite in memory, empty."""
    return stores.emptied(database_named("sqlite-memory"))


@pytest.fixture
def file_store(stores: Stores) -> Store:
    """SQLite in a file, empty."""
    return stores.emptied(database_named("sqlite"))


@pytest.fixture
def postgres_store(stores: Stores) -> Store:
    """PostgreSQL, empty."""
    return stores.emptied(database_named("postgresql"))


@pytest.fixture(params=[database.name for database in chosen_databases()])
def store(request: pytest.FixtureRequest, stores: Stores) -> Store:
    """Each of the databases Penstock keeps its jobs in, empty."""
    return stores.emptied(database_named(request.param))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped: dict[str, list[str]] = defaultdict(list)
    for report in terminalreporter.stats.get("skipped", []):
        # A skip's longrepr is (file, line, reason).
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        skipped[reason.removeprefix("Skipped: ")].append(report.nodeid)
    if not skipped:
        return
    total = sum(len(tests) for tests in skipped.values())
    terminalreporter.section(f"NOT RUN: {total} skipped", sep="!", red=True, bold=True)
    for reason, tests in sorted(skipped.items()):
        terminalreporter.write_line(reason, red=True)
        for test in sorted(tests):
            terminalreporter.write_line(f"    {test}")
