"""A Penstock on PostgreSQL, with the short intervals that tests can wait for."""

from __future__ import annotations

import pytest

from tests.integration.conftest import app, open_app, quick_settings

__all__ = ["app", "migrated_url", "open_app", "quick_settings"]


@pytest.fixture
def migrated_url(migrated_postgres_url: str) -> str:
    """Of the databases there are, this one."""
    return migrated_postgres_url
