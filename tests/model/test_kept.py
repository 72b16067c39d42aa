"""Runs that went wrong once go well."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.store.engine import Store
from tests.model.kept import KEPT
from tests.model.machine import replay
from tests.on_store import OnStore


@pytest.mark.parametrize("name", KEPT)
def test_in_memory(memory_store: Store, tmp_path: Path, name: str) -> None:
    replay(OnStore(memory_store, tmp_path), *KEPT[name])


@pytest.mark.parametrize("name", KEPT)
def test_on_postgresql(postgres_store: Store, tmp_path: Path, name: str) -> None:
    replay(OnStore(postgres_store, tmp_path), *KEPT[name])
