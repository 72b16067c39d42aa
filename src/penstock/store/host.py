"""What operations work with that begin their own transactions: the objects of an application are made of these."""

from __future__ import annotations

from typing import Protocol

from penstock.lifecycle.kind import Kinds
from penstock.settings import Settings
from penstock.store.engine import Store


class Host(Protocol):
    """One application's database, settings and kinds."""

    @property
    def store(self) -> Store:
        """The database."""

    @property
    def settings(self) -> Settings:
        """The settings."""

    @property
    def kinds(self) -> Kinds:
        """The kinds that are registered."""
