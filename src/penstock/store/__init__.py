"""The database: the only package that knows SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.store.callers_connection import CallersConnection
    from penstock.store.engine import DatabaseConnection
    from penstock.store.placement import own_metadata
else:
    from penstock.lazy import lazy_names

    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "penstock.store.callers_connection": "CallersConnection",
            "penstock.store.engine": "DatabaseConnection",
            "penstock.store.placement": "own_metadata",
        },
    )

__all__ = [
    "CallersConnection", "DatabaseConnection", "own_metadata",
]  # fmt: skip
