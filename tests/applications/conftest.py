"""Databases in which the applications find their tables: to make them takes longer than most of these tests."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from penstock.testing.postgres import PostgresServer


@pytest.fixture(scope="session")
def _migrated_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("migrated-applications") / "penstock.db"
    _migrate_with_applications(f"sqlite:///{path}")
    return path


@pytest.fixture(scope="session")
def _migrated_postgres(postgres_server: PostgresServer) -> str:
    postgres_server.create_database("migrated_applications")
    _migrate_with_applications(postgres_server.url("migrated_applications"))
    return "migrated_applications"


def _migrate_with_applications(url: str) -> None:
    from penstock import Penstock
    from penstock.applications import install_applications

    app = install_applications(Penstock(url))
    app.system.migrate()
    app.close()
