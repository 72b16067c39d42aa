"""Bringing a database to the schema this version needs."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

from sqlalchemy import Connection, inspect, text

from penstock.errors import SchemaOutOfDate
from penstock.store.engine import Store

if TYPE_CHECKING:
    from alembic.config import Config

HEAD = "0001"
"""The newest revision; ``tests/migrations`` proves that it is the last one in ``migrations/versions``."""

_LOCK = 7_291_804_415


def migrate(store: Store) -> None:
    """Bring the schema up to date; safe to call at any time, by several processes at once."""
    with store._writing, store.engine.connect() as connection, connection.begin():
        if store.ways.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
        revision = _revision(connection)
        # A newer program's schema is left alone: we run on it too.
        if revision is None or revision < HEAD:
            from alembic import command  # it takes long to load, and is needed once

            command.upgrade(_configuration(connection), "head")


def current_revision(store: Store) -> str | None:
    """The schema's revision; None for an empty database."""
    with store.engine.connect().execution_options(penstock_reads=True) as connection:
        return _revision(connection)


def require_current(store: Store) -> None:
    """Refuse to work on a schema older than this version needs."""
    revision = current_revision(store)
    if revision is None or revision < HEAD:
        raise SchemaOutOfDate(
            f"the database's schema is {revision or 'empty'}, this version needs {HEAD}: run 'penstock migrate'"
        )


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    revision: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return revision


def _configuration(connection: Connection) -> Config:
    from alembic.config import Config

    configuration = Config()
    location = str(resources.files("penstock.store") / "migrations")
    configuration.set_main_option("script_location", location.replace("%", "%%"))
    configuration.attributes["connection"] = connection
    return configuration
