"""The engine on each database, in the hands of a test."""

from __future__ import annotations

import pytest

from penstock.clock import ManualClock
from penstock.store.engine import Store
from penstock.testing.drive import Workbench
from tests.properties.engine_kinds import engine_kinds


@pytest.fixture
def bench(store: Store) -> Workbench:
    """The engine over one of the databases, by a clock the test moves."""
    clock = store.clock
    assert isinstance(clock, ManualClock)
    return Workbench(store, clock, engine_kinds())
