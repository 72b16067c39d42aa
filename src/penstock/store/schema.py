"""Bringing a database to the schema this version needs: Penstock's own tables, and those of applications.

Each of them is a line of revisions with a version table of its own, so that an application can be added to a database
that is in service, and taken away again.

On SQLite everything happens in one transaction. On a server each revision is one, tried until its locks can be had
(``store.lock_waiting``), and indexes are built without any. Interrupted anywhere, it goes on where it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import ModuleType

import structlog
from sqlalchemy import Connection, inspect, text
from sqlalchemy.exc import ProgrammingError
from sqlalchemy.schema import CreateSchema

from penstock.errors import ConfigurationError, SchemaOutOfDate
from penstock.store.engine import Store
from penstock.store.lock_waiting import LockWaiting, Patience, Say, say_in_the_log
from penstock.store.migrations.revision import Revision
from penstock.store.old_layout import (
    OldLayout,
    bring_over,
    choose_for_file,
    find_old_layouts,
    lock_tables,
)
from penstock.store.peers import Peers
from penstock.store.placement import TablePlacement, find_placement
from penstock.store.revisions import (
    OURS,
    Schema,
    Version,
    current_version,
    indexes_of,
    needs_stopped_workers,
    pending,
    run_revision,
)
from penstock.store.stopped_workers import require_stopped_workers

__all__ = ["OURS", "Patience", "Schema", "current_revision", "is_current", "migrate", "require_current"]

_SCHEMA_IS_THERE = text("SELECT 1 FROM pg_namespace WHERE nspname = :name")
_log = structlog.get_logger("penstock.schema")
_warned_versions: set[tuple[str, str]] = set()


def migrate(
    store: Store,
    schemas: Sequence[Schema] = (OURS,),
    *,
    patience: Patience | None = None,
    say: Say = say_in_the_log,
) -> None:
    """Bring the schemas up to date; safe to call at any time, by several processes at once."""
    if store.dialect.is_embedded:
        _migrate_file(store, schemas, say)
    elif not is_current(store, schemas):
        _migrate_server(store, schemas, LockWaiting(store, patience or Patience(), say), say)


def _migrate_file(store: Store, schemas: Sequence[Schema], say: Say) -> None:
    before = store.placement
    with store.write_lock, store.engine.connect() as connection:
        try:
            with connection.begin():
                names = inspect(connection).get_table_names()
                old = find_old_layouts(connection, schemas)
                store.place(find_placement(names) or choose_for_file(names, old))
                _bring_over(connection, store, old, say)
                for schema in _find_outdated(connection, schemas):
                    at = _revision(connection, schema)
                    for module in pending(schema, at):
                        _run_revision(connection, store, schema, module, is_in_use=at is not None)
        except BaseException:
            store.place(before)
            raise


def _migrate_server(store: Store, schemas: Sequence[Schema], waiting: LockWaiting, say: Say) -> None:
    def bring_all_over(connection: Connection) -> None:
        _make_schema(connection, str(store.placement.schema))
        _bring_over(connection, store, find_old_layouts(connection, schemas), say)

    with waiting.alone(str(store.placement.schema)):
        waiting.run("the tables", bring_all_over)
        for schema in schemas:
            _run_pending(store, schema, waiting, say)


def _run_pending(store: Store, schema: Schema, waiting: LockWaiting, say: Say) -> None:
    at = current_revision(store, schema)
    if at is not None and at >= schema.head:
        return
    for module in pending(schema, at):
        say(f"{schema.name}: revision {module.revision}")
        # On tables that are made just now there is nobody to keep waiting.
        indexes = () if at is None else indexes_of(module)
        for index in indexes:
            waiting.build(index)
        run = partial(
            _run_revision,
            store=store,
            schema=schema,
            module=module,
            has_indexes=bool(indexes),
            is_in_use=at is not None,
        )
        waiting.run(f"the tables of {schema.name}", run)


def _run_revision(
    connection: Connection,
    store: Store,
    schema: Schema,
    module: ModuleType | Revision,
    *,
    is_in_use: bool,
    has_indexes: bool = False,
) -> None:
    run_revision(connection, schema, module, has_indexes=has_indexes)
    if is_in_use and needs_stopped_workers(module):
        # Asked behind the step, which has locked the tables: a worker that was there before shows, none can come.
        step = f"revision {module.revision} changes what workers of the version before ask for"
        require_stopped_workers(connection, store, store.peers, store.placement, step)


def _bring_over(connection: Connection, store: Store, layouts: Sequence[OldLayout], say: Say) -> None:
    for old in layouts:
        say(f"{old.owner.name}: bringing {len(old.tables)} tables over from the layout of an earlier version")
        lock_tables(connection, old)
        if old.owner is OURS:
            step = "the tables are to be moved to where this version keeps them"
            peers = Peers.of(store.engine.url)
            require_stopped_workers(connection, store, peers, TablePlacement(schema=old.schema), step)
        bring_over(connection, old)


def _make_schema(connection: Connection, name: str) -> None:
    """Looked for first: who may use a schema may not always create one."""
    if connection.execute(_SCHEMA_IS_THERE, {"name": name}).scalar():
        return
    try:
        connection.execute(CreateSchema(name))
    except ProgrammingError as error:
        raise ConfigurationError(
            f"the schema {name} is not there, and this user may not create it ({str(error.orig).strip()}): "
            f"let an administrator run CREATE SCHEMA {name} AUTHORIZATION {connection.engine.url.username}, "
            "or name another one with PENSTOCK_DATABASE_SCHEMA",
            code="SCHEMA_NOT_ALLOWED",
        ) from error


@contextmanager
def _looking(store: Store) -> Iterator[Connection]:
    with store.engine.connect().execution_options(penstock_begins="BEGIN") as connection:
        if store.dialect.is_embedded:
            # Somebody else may have migrated the file since we connected to it.
            store.place(find_placement(inspect(connection).get_table_names()) or store.placement)
        yield connection


def current_revision(store: Store, schema: Schema = OURS) -> str | None:
    """A schema's revision; None for a database that has none of its tables."""
    with _looking(store) as connection:
        return _revision(connection, schema)


def is_current(store: Store, schemas: Sequence[Schema] = (OURS,)) -> bool:
    """Is there nothing to do?"""
    with _looking(store) as connection:
        return not _find_outdated(connection, schemas)


def require_current(store: Store, schemas: Sequence[Schema] = (OURS,)) -> None:
    """Refuse to work on a schema older than this version needs."""
    with _looking(store) as connection:
        for schema in _find_outdated(connection, schemas):
            whose = "the database's schema" if schema is OURS else f"the schema of {schema.name} in the database"
            if find_old_layouts(connection, [schema]):
                raise SchemaOutOfDate(
                    f"{whose} lies where an earlier version put it: stop the workers and run 'penstock migrate'"
                )
            revision = _revision(connection, schema) or "empty"
            raise SchemaOutOfDate(f"{whose} is {revision}, this version needs {schema.head}: run 'penstock migrate'")


def _find_outdated(connection: Connection, schemas: Sequence[Schema]) -> list[Schema]:
    outdated_schemas = []
    for schema in schemas:
        version = current_version(connection, schema)
        if version is None or version.revision < schema.head:
            outdated_schemas.append(schema)
        elif version.revision > schema.head:
            _judge_newer(schema, version)
    return outdated_schemas


def _judge_newer(schema: Schema, version: Version) -> None:
    """A newer program's schema is left alone, and we run on it too, unless its revision says that we cannot."""
    if version.compatible_from is not None and version.compatible_from > schema.head:
        raise SchemaOutOfDate(
            f"the schema of {schema.name} in the database is {version.revision}, which programs before "
            f"{version.compatible_from} cannot work on; this one knows {schema.head}: install a newer version",
            code="SCHEMA_TOO_NEW",
        )
    if (schema.name, version.revision) not in _warned_versions:
        _warned_versions.add((schema.name, version.revision))
        _log.warning(
            "the schema in the database is newer than this program, and compatible with it",
            schema=schema.name,
            revision=version.revision,
            known=schema.head,
        )


def _revision(connection: Connection, schema: Schema) -> str | None:
    version = current_version(connection, schema)
    return None if version is None else version.revision
