"""Each database of the list (``databases.py``), in the hands of a test.

Whatever asks for ``store``, ``bench``, ``open_app`` or ``migrated_url`` runs once on each of those that can do what the
test needs (``@needs``). The servers and stores themselves are the run's, and shared with all other tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock import Penstock, load_settings
from penstock.clock import Clock, ManualClock
from penstock.store.engine import Store
from penstock.testing.drive import Workbench
from penstock.testing.invariants import violations
from tests.conformance.databases import Database, can, chosen_databases
from tests.on_store import OnStore
from tests.properties.engine_kinds import engine_kinds
from tests.stores import Stores


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Let each test run on the databases that can do what it needs."""
    if "database" not in metafunc.fixturenames:
        return
    needed = {question for mark in metafunc.definition.iter_markers("needs") for question in mark.args}
    if "migrated_url" in metafunc.fixturenames:
        needed.add("is_shared")
    able = [one for one in chosen_databases() if all(can(one, question) for question in needed)]
    cases = [pytest.param(one, id=one.name) for one in able]
    if not cases:  # of those that were chosen
        reason = f"none of the chosen databases has what it needs: {', '.join(sorted(needed))}"
        cases = [pytest.param(None, id="none", marks=pytest.mark.skip(reason=reason))]
    metafunc.parametrize("database", cases, indirect=True)


@pytest.fixture
def database(request: pytest.FixtureRequest) -> Database:
    """The database that this test runs on."""
    chosen: Database = request.param
    return chosen


@pytest.fixture
def store(database: Database, stores: Stores) -> Store:
    """A store on it, empty, by a clock the test moves."""
    return stores.emptied(database)


@pytest.fixture
def clock(store: Store) -> ManualClock:
    """The clock of the store."""
    assert isinstance(store.clock, ManualClock)
    return store.clock


@pytest.fixture
def bench(store: Store, clock: ManualClock) -> Workbench:
    """The engine over it, driven by hand."""
    return Workbench(store, clock, engine_kinds())


@pytest.fixture
def bench_app(bench: Workbench, tmp_path: Path) -> OnStore:
    """A Penstock on the store of the bench."""
    return OnStore(bench.store, tmp_path)


@pytest.fixture
def migrated_url(database: Database, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a database of its own, with all its tables."""
    with database.copy(request, tmp_path) as url:
        yield url


@pytest.fixture
def open_app(migrated_url: str, tmp_path: Path) -> Iterator[Callable[..., Penstock]]:
    """Makes Penstocks on a database of their own, as several programs have one; all are closed at the end."""
    opened: list[Penstock] = []

    def make(*, clock: Clock | None = None, **settings: Any) -> Penstock:
        chosen = load_settings(database_url=migrated_url, files_directory=tmp_path / "files", **settings)
        opened.append(Penstock(settings=chosen, clock=clock))
        return opened[-1]

    yield make
    for app in opened:
        app.close()


@pytest.fixture(scope="session")
def empty_store(stores: Stores) -> Callable[[], Store]:
    """Empties one of the databases whenever it is called: for what does not depend on which."""
    return lambda: stores.emptied(chosen_databases()[0])


@pytest.fixture
def rows_are_true_in_the_end(store: Store) -> Iterator[None]:
    """Whatever a test did, the rows are true afterwards."""
    yield
    assert violations(store) == []
