"""Lines of revisions: which there are, and running one, with its tables where ours are.

Revisions are Alembic's, but they are run here and not by its command: each statement they make gets our schema or
prefix, and the version table says besides the revision with which programs it is compatible.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import ModuleType
from typing import TYPE_CHECKING, Any

from sqlalchemy import Column, Connection, MetaData, String, Table, delete, insert, inspect, select, text

from penstock.store.migrations.indexes import NewIndex
from penstock.store.migrations.revision import Revision
from penstock.store.placement import PLAIN, VERSION_TABLE, TablePlacement, placement_of

if TYPE_CHECKING:
    from alembic.operations import Operations
    from alembic.script import ScriptDirectory

_ONE_AT_A_TIME = threading.Lock()
"""Revisions speak to Alembic's ``op``, of which a process has one."""


@dataclass(frozen=True, slots=True)
class Schema:
    """Whose tables, where their revisions are, and which is the newest."""

    name: str
    package: str
    """The package whose folder ``migrations/versions`` holds the revisions."""
    head: str
    version_table: str
    revisions: tuple[Revision, ...] = ()
    """The revisions themselves, of an application that has no folder of them."""

    @classmethod
    def of_app(cls, name: str, package: str, head: str, revisions: tuple[Revision, ...] = ()) -> Schema:
        """An application's."""
        return cls(name, package, head, f"{VERSION_TABLE}_{name}", revisions)

    @property
    def old_version_table(self) -> str:
        """What the version table was called before our names were told apart from others'."""
        return self.version_table.replace(VERSION_TABLE, "alembic_version")


OURS = Schema("penstock", "penstock.store", "0016", VERSION_TABLE)
"""``tests/migrations`` proves that this is the last revision in ``migrations/versions``."""


@dataclass(frozen=True, slots=True)
class Version:
    """What the version table says."""

    revision: str
    compatible_from: str | None
    """The oldest head of a program that works on it; None: every one."""


def current_version(connection: Connection, schema: Schema) -> Version | None:
    """What a schema's version table says; None where there is none."""
    table = version_table(schema, placement_of(connection.dialect))
    if not inspect(connection).has_table(table.name, schema=table.schema):
        return None
    row = connection.execute(select(table)).one_or_none()
    return None if row is None else Version(row.version_num, row.compatible_from)


def version_table(schema: Schema, placement: TablePlacement) -> Table:
    """The version table: its name is our own already, and gets no prefix."""
    return Table(
        schema.version_table,
        MetaData(schema=placement.schema),
        Column("version_num", String(32), primary_key=True),
        Column("compatible_from", String(32)),
    )


def write_version(connection: Connection, schema: Schema, version: Version) -> None:
    """The schema is at this revision once the transaction commits."""
    table = version_table(schema, placement_of(connection.dialect))
    table.create(connection, checkfirst=True)
    connection.execute(delete(table))
    connection.execute(insert(table).values(version_num=version.revision, compatible_from=version.compatible_from))


def pending(schema: Schema, since: str | None) -> Sequence[ModuleType | Revision]:
    """The revisions behind ``since``, oldest first."""
    return _between(schema, since, schema.head)


def _between(schema: Schema, since: str | None, until: str) -> Sequence[ModuleType | Revision]:
    if schema.revisions:
        return [revision for revision in schema.revisions if (since or "") < revision.revision <= until]
    scripts = _scripts(schema).iterate_revisions(until, since or "base")
    return [script.module for script in scripts][::-1]


def tables_of(schema: Schema, revision: str) -> list[str]:
    """The tables that a line of revisions has made up to ``revision``."""
    from alembic.migration import MigrationContext

    names: list[str] = []
    context = MigrationContext.configure(dialect_name="sqlite", opts={"as_sql": True, "output_buffer": _Nowhere()})
    with _operations(context, PLAIN, created_tables=names):
        for module in _between(schema, None, revision):
            if hasattr(module, "upgrade"):
                module.upgrade()
    return names


def run_revision(
    connection: Connection, schema: Schema, module: ModuleType | Revision, *, has_indexes: bool = False
) -> None:
    """Run one revision in the connection's transaction and write its version; ``has_indexes``: they are built."""
    before = current_version(connection, schema)
    with _operations(_context(connection), placement_of(connection.dialect)) as operations:
        if hasattr(module, "upgrade"):
            module.upgrade()
        for index in () if has_indexes else indexes_of(module):
            create_index(operations, index)
    inherited_compatibility = None if before is None else before.compatible_from
    write_version(
        connection, schema, Version(module.revision, getattr(module, "compatible_from", inherited_compatibility))
    )


def indexes_of(module: ModuleType | Revision) -> tuple[NewIndex, ...]:
    """The indexes that a revision builds on tables in service."""
    indexes: tuple[NewIndex, ...] = getattr(module, "indexes", ())
    return indexes


def needs_stopped_workers(module: ModuleType | Revision) -> bool:
    """Would workers of the revision before fail on this one?"""
    return bool(getattr(module, "needs_stopped_workers", False))


def build_concurrently(connection: Connection, index: NewIndex) -> None:
    """Build one index on a PostgreSQL connection in AUTOCOMMIT."""
    with _operations(_context(connection), placement_of(connection.dialect)) as operations:
        create_index(operations, index, postgresql_concurrently=True)


def create_index(operations: Operations, index: NewIndex, **options: Any) -> None:
    """Create an index that a revision lists."""
    where = None if index.where is None else text(index.where)
    operations.create_index(
        index.name,
        index.table,
        [text(column) if column.startswith("(") else column for column in index.columns],
        unique=index.unique,
        postgresql_where=where,
        sqlite_where=where,
        **options,
    )


def _context(connection: Connection) -> Any:
    from alembic.migration import MigrationContext

    return MigrationContext.configure(connection)


@contextmanager
def _operations(
    context: Any, placement: TablePlacement, *, created_tables: list[str] | None = None
) -> Iterator[Operations]:
    """What revisions call ``op`` within the block; ``created_tables`` lists the tables they make."""
    from alembic.operations import Operations, ops

    with _ONE_AT_A_TIME, Operations.context(context) as operations:
        really_invoke = operations.invoke

        def invoke(operation: Any) -> Any:
            """Run an operation, with our schema and prefix on its table and its index."""
            if created_tables is not None and isinstance(operation, ops.CreateTableOp):
                created_tables.append(operation.table_name)
            elif created_tables is not None and isinstance(operation, ops.DropTableOp):
                created_tables.remove(operation.table_name)
            elif created_tables is not None and isinstance(operation, ops.RenameTableOp):
                created_tables[created_tables.index(operation.table_name)] = operation.new_table_name
            if hasattr(operation, "table_name"):
                operation.table_name = placement.table(operation.table_name)
                operation.schema = operation.schema or placement.schema
            if isinstance(operation, ops.RenameTableOp):
                operation.new_table_name = placement.table(operation.new_table_name)
            if isinstance(operation, ops.CreateIndexOp | ops.DropIndexOp):
                operation.index_name = placement.index(str(operation.index_name))
            return really_invoke(operation)

        operations.invoke = invoke  # type: ignore[method-assign]
        yield operations


class _Nowhere:
    """Takes the SQL that is only looked through."""

    def write(self, _text: str) -> None:
        """Forget it."""

    def flush(self) -> None:
        """Nothing is kept."""


@cache
def _scripts(schema: Schema) -> ScriptDirectory:
    from alembic.script import ScriptDirectory

    location = resources.files(schema.package) / "migrations"
    return ScriptDirectory(str(location), version_locations=[str(location / "versions")])
