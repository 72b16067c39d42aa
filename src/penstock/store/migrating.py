"""Bringing a database to the schema this version needs: Penstock's own tables, and those of applications.

Each of them is a line of Alembic revisions with a version table of its own, so that an application can be added to a
database that is in service, and taken away again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING

from sqlalchemy import Connection, String, column, inspect, select, table, text

from penstock.errors import SchemaOutOfDate
from penstock.store.engine import Store

if TYPE_CHECKING:
    from alembic.config import Config

_LOCK = 7_291_804_415


@dataclass(frozen=True, slots=True)
class Schema:
    """Whose tables, where their revisions are, and which is the newest."""

    name: str
    package: str
    """The package whose folder ``migrations/versions`` holds the revisions."""
    head: str
    version_table: str

    @classmethod
    def of_app(cls, name: str, package: str, head: str) -> Schema:
        """An application's."""
        return cls(name, package, head, f"alembic_version_{name}")


OURS = Schema("penstock", "penstock.store", "0004", "alembic_version")
"""``tests/migrations`` proves that this is the last revision in ``migrations/versions``."""


def migrate(store: Store, schemas: Sequence[Schema] = (OURS,)) -> None:
    """Bring the schemas up to date; safe to call at any time, by several processes at once."""
    with store._writing, store.engine.connect() as connection, connection.begin():
        if store.ways.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
        for schema in _outdated(connection, schemas):
            from alembic import command  # it takes long to load, and is needed once

            command.upgrade(_configuration(connection, schema), "head")


def current_revision(store: Store, schema: Schema = OURS) -> str | None:
    """A schema's revision; None for a database that has none of its tables."""
    with store.engine.connect().execution_options(penstock_begins="BEGIN") as connection:
        return _revision(connection, schema)


def is_current(store: Store, schemas: Sequence[Schema] = (OURS,)) -> bool:
    """Is there nothing to do?"""
    with store.engine.connect().execution_options(penstock_begins="BEGIN") as connection:
        return not _outdated(connection, schemas)


def require_current(store: Store, schemas: Sequence[Schema] = (OURS,)) -> None:
    """Refuse to work on a schema older than this version needs."""
    with store.engine.connect().execution_options(penstock_begins="BEGIN") as connection:
        for schema in _outdated(connection, schemas):
            revision = _revision(connection, schema) or "empty"
            whose = "the database's schema" if schema is OURS else f"the schema of {schema.name} in the database"
            raise SchemaOutOfDate(f"{whose} is {revision}, this version needs {schema.head}: run 'penstock migrate'")


def _outdated(connection: Connection, schemas: Sequence[Schema]) -> list[Schema]:
    """A newer program's schema is left alone: we run on it too."""
    return [one for one in schemas if (_revision(connection, one) or "") < one.head]


def _revision(connection: Connection, schema: Schema) -> str | None:
    if not inspect(connection).has_table(schema.version_table):
        return None
    asked = select(column("version_num", String)).select_from(table(schema.version_table))
    return connection.execute(asked).scalar()


def _configuration(connection: Connection, schema: Schema) -> Config:
    from alembic.config import Config

    configuration = Config()
    for option, package in (("script_location", OURS.package), ("version_locations", schema.package)):
        location = resources.files(package) / "migrations"
        if option == "version_locations":
            location /= "versions"
        configuration.set_main_option(option, str(location).replace("%", "%%"))
    configuration.set_main_option("path_separator", "newline")
    configuration.attributes["connection"] = connection
    configuration.attributes["version_table"] = schema.version_table
    return configuration
