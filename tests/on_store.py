"""A Penstock for tests that hold the clock of their store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from penstock import Penstock
from penstock.lifecycle.kind import Kinds
from penstock.messages import Subscriptions
from penstock.settings import load_settings
from penstock.store.engine import Store


class OnStore(Penstock):
    """A Penstock over a store the test has already, with the clock it holds."""

    def __init__(self, store: Store, files: Path, **settings: Any) -> None:
        super().__init__(settings=load_settings(database_url="sqlite://", files_directory=files, **settings))
        self._runtime.use_store(store)

    def deploy(self, kinds: Kinds) -> None:
        """Other kinds than until now, as with a new version of a program."""
        self._runtime.kinds = kinds

    def forget_subscribers(self) -> None:
        """Nobody subscribes to anything."""
        self._runtime.subscriptions = Subscriptions()
        self._runtime._transport = None
