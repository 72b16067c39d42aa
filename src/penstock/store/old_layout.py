"""Bringing over a database whose tables lie where earlier versions put them.

They had plain names in whatever schema came first in ``search_path``, and a version table called ``alembic_version``,
which is also what everybody else's Alembic calls its own. One transaction moves the tables to our schema (on SQLite:
behind our prefix, if the file has tables of others), writes our own version table, and takes our row, and nothing
else, out of ``alembic_version``. Programs of the earlier version do not find their tables afterwards, so it is only
done when nobody is at work.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlalchemy import Column, Connection, MetaData, String, Table, delete, func, inspect, select, text

from penstock.store.placement import WITH_PREFIX, TablePlacement, placement_of
from penstock.store.revisions import OURS, Schema, Version, tables_of, write_version

_SCHEMA_OF = text(
    "SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass(:name)"
)


@dataclass(frozen=True, slots=True)
class OldLayout:
    """Tables of one line of revisions that are still where they once were."""

    owner: Schema
    schema: str | None
    revision: str
    tables: tuple[str, ...]


def find_old_layouts(connection: Connection, schemas: Sequence[Schema]) -> list[OldLayout]:
    """Those of the given lines that are in the database in the old layout."""
    layouts = (
        _find_ours(connection) if schema is OURS else _find_application(connection, schema) for schema in schemas
    )
    return [layout for layout in layouts if layout is not None]


def _find_ours(connection: Connection) -> OldLayout | None:
    """Known by the shape of its tables: others have tables called jobs, and revisions called 0004."""
    schema, is_there = _where(connection, "job_items")
    look = inspect(connection)
    if not is_there or look.has_table(OURS.version_table, schema=schema):
        return None
    names = set(look.get_table_names(schema=schema))
    if not {"jobs", "job_items", "job_events", "files", "outbox"} <= names:
        return None
    columns = {column["name"] for column in look.get_columns("jobs", schema=schema)}
    leases = {column["name"] for column in look.get_columns("job_items", schema=schema)}
    if not ({"turn_at", "claimed_to", "open_to"} <= columns and {"lease", "lock_expires_at"} <= leases):
        return None
    indexes = {index["name"] for index in look.get_indexes("jobs", schema=schema)}
    if "title" in columns:
        revision = "0004"
    elif "lane_samples" in names:
        revision = "0003"
    else:
        revision = "0002" if "ix_jobs_created_at_id" in indexes else "0001"
    return OldLayout(OURS, schema, revision, tuple(tables_of(OURS, revision)))


def _find_application(connection: Connection, owner: Schema) -> OldLayout | None:
    schema, is_there = _where(connection, owner.old_version_table)
    if not is_there:
        return None
    revision = connection.execute(select(_version_numbers(owner, schema).c.version_num)).scalar()
    return None if revision is None else OldLayout(owner, schema, revision, tuple(tables_of(owner, revision)))


def _where(connection: Connection, table: str) -> tuple[str | None, bool]:
    """The schema in which a table is found by its plain name, as earlier versions found it, and whether it is."""
    if placement_of(connection.dialect).schema is None:
        return None, inspect(connection).has_table(table)
    schema = connection.execute(_SCHEMA_OF, {"name": table}).scalar()
    return schema, schema is not None


def lock_tables(connection: Connection, old: OldLayout) -> None:
    """Wait until nobody uses the tables, and let nobody in."""
    quote = connection.dialect.identifier_preparer.quote
    if old.schema is not None:  # a file is ours alone while it is migrated
        table_list = ", ".join(f"{quote(str(old.schema))}.{quote(name)}" for name in old.tables)
        connection.execute(text(f"LOCK TABLE {table_list} IN ACCESS EXCLUSIVE MODE"))


def bring_over(connection: Connection, old: OldLayout) -> None:
    """Move one line's tables and version within the connection's transaction."""
    placement = placement_of(connection.dialect)
    if placement.schema is None:
        _rename(connection, old, placement)
    else:
        _move(connection, old, placement)
    write_version(connection, old.owner, Version(old.revision, None))
    version = _version_numbers(old.owner, old.schema)
    removed_count = connection.execute(delete(version).where(version.c.version_num == old.revision)).rowcount
    # A team's own revisions stay where they are; without any of them the table was ours alone.
    if removed_count and not connection.execute(select(func.count()).select_from(version)).scalar_one():
        version.drop(connection)


def _move(connection: Connection, old: OldLayout, placement: TablePlacement) -> None:
    if placement.schema == old.schema:
        return
    quote = connection.dialect.identifier_preparer.quote
    for name in old.tables:
        connection.execute(
            text(f"ALTER TABLE {quote(str(old.schema))}.{quote(name)} SET SCHEMA {quote(str(placement.schema))}")
        )


def _rename(connection: Connection, old: OldLayout, placement: TablePlacement) -> None:
    """SQLite renames a table at once; an index, whose names all tables share, has to be made again."""
    if not placement.prefix:
        return
    quote = connection.dialect.identifier_preparer.quote
    index_query = text(
        "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = :table AND sql IS NOT NULL"
    )
    for name in old.tables:
        connection.execute(text(f"ALTER TABLE {quote(name)} RENAME TO {quote(placement.table(name))}"))
        for index, sql in connection.execute(index_query, {"table": placement.table(name)}).all():
            connection.execute(text(f"DROP INDEX {quote(index)}"))
            connection.exec_driver_sql(sql.replace(f" {index} ", f" {placement.index(index)} ", 1))


def _version_numbers(owner: Schema, schema: str | None) -> Table:
    return Table(owner.old_version_table, MetaData(), Column("version_num", String(32)), schema=schema)


def choose_for_file(names: Collection[str], layouts: Sequence[OldLayout]) -> TablePlacement:
    """How our tables are to be named in a SQLite file with these tables, which has none of ours, or old ones."""
    ours = {name for layout in layouts for name in (*layout.tables, layout.owner.old_version_table)}
    others = [name for name in names if name not in ours and not name.startswith("sqlite_")]
    return WITH_PREFIX if others else TablePlacement()
