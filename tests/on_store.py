"""A Penstock for tests that hold the clock of their store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from penstock import Penstock
from penstock.settings import load_settings
from penstock.store.engine import Store


class OnStore(Penstock):
    """A Penstock over a store the test has already, with the clock it holds."""

    def __init__(self, store: Store, files: Path, **settings: Any) -> None:
        super().__init__(settings=load_settings(database_url="sqlite://", files_directory=files, **settings))
        self._given_store = store

    @property
    def store(self) -> Store:
        return self._given_store
