"""Stores on databases that all tests of a process share: an engine that has compiled its statements is kept."""

from __future__ import annotations

import pytest

from penstock.clock import ManualClock
from penstock.store.engine import Store, open_store
from penstock.store.schema import migrate
from penstock.store.tables import metadata
from tests.conformance.databases import Database


class Stores:
    """One for each database that a test has asked for."""

    def __init__(self, request: pytest.FixtureRequest, folders: pytest.TempPathFactory) -> None:
        self._request = request
        self._folders = folders
        self._kept: dict[str, Store] = {}
        self._handed_out: dict[str, Store] = {}

    def emptied(self, database: Database) -> Store:
        """The store without any rows, by a clock that the test moves; what was handed out before is let go."""
        name = database.name
        if name not in self._kept:
            self._kept[name] = self._open(database)
        if name in self._handed_out:
            self._handed_out[name].rest()
        with self._kept[name].engine.begin() as connection:
            for table in metadata.sorted_tables:
                connection.execute(table.delete())
        self._handed_out[name] = Store(self._kept[name].engine, ManualClock())
        return self._handed_out[name]

    def close(self) -> None:
        """All of them."""
        for store in self._handed_out.values():
            store.close()

    def _open(self, database: Database) -> Store:
        url = database.make(self._request, self._folders.mktemp("shared"))
        store = open_store(url, sqlite_synchronous="OFF")
        migrate(store)
        return store
