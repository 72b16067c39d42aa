"""The engine does what the model says, whatever happens in whatever order.

``make test`` makes the same runs every time. With ``LARGE=1`` they are other ones each time, for some minutes; the seed
is printed, and ``MODEL_SEED`` replays it.
"""

from __future__ import annotations

import os
import secrets
import time
from pathlib import Path

import pytest
from hypothesis import seed, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from penstock.store.engine import Store
from tests.model.machine import Machine
from tests.on_store import OnStore
from tests.sizes import LARGE

pytestmark = pytest.mark.timeout(1800)  # a run that disagrees is made smaller, which takes minutes

_LARGE_SECONDS = 150
_SEED = os.environ.get("MODEL_SEED")


def machine_on(app: OnStore) -> type[RuleBasedStateMachine]:
    """The machine over one store."""

    class OnStoreMachine(Machine):
        def __init__(self) -> None:
            super().__init__(app)

    return OnStoreMachine


def compare(store: Store, files: Path, runs: int) -> None:
    """So many runs or, with LARGE=1, new ones until the time is up."""
    machine = machine_on(OnStore(store, files))
    if not LARGE and _SEED is None:
        run_state_machine_as_test(machine, settings=settings(max_examples=runs, stateful_step_count=40))
        return
    until = time.monotonic() + _LARGE_SECONDS
    some = settings(max_examples=runs, stateful_step_count=60, derandomize=False, print_blob=True)
    while True:
        number = secrets.randbits(64) if _SEED is None else int(_SEED)
        print(f"MODEL_SEED={number}")
        run_state_machine_as_test(seed(number)(machine), settings=some)
        if _SEED is not None or time.monotonic() > until:
            return


def test_the_engine_agrees_with_the_model_on_sqlite(memory_store: Store, tmp_path: Path) -> None:
    compare(memory_store, tmp_path, 30)


def test_the_engine_agrees_with_the_model_on_postgresql(postgres_store: Store, tmp_path: Path) -> None:
    compare(postgres_store, tmp_path, 12)
