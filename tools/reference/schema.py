"""The page of tables, from the metadata in :mod:`penstock.store.tables`."""

from __future__ import annotations

from typing import Any

from sqlalchemy import CheckConstraint, Column, Index, Table, UniqueConstraint
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Dialect as SQLAlchemyDialect
from sqlalchemy.schema import CreateIndex

from penstock.store.schema import OURS
from penstock.store.tables import metadata
from tools.reference import meanings
from tools.reference.markdown import code, document, fenced, matched, table

_POSTGRESQL: SQLAlchemyDialect = postgresql.dialect()  # type: ignore[no-untyped-call]
_SQLITE: SQLAlchemyDialect = sqlite.dialect()

# What belongs to what. The database does not know it: there are no foreign keys.
_RELATIONS = (
    ("jobs", "||--o{", "job_items", "job_id"),
    ("jobs", "||--|{", "job_events", "job_id"),
    ("jobs", "|o--o{", "jobs", "leader_id"),
    ("files", "|o--o{", "jobs", "file_id"),
)
_SKETCHED = {"id", "kind", "user_id", "state", "next_claim_at", "last_claimed", "last_claimable", "unique_key",
             "leader_id", "file_id",
             "job_id", "role", "position", "status", "lease", "lock_expires_at", "ready_at", "sequence", "from_state",
             "to_state", "sha256", "topic", "key", "sent_at"}  # fmt: skip


def page() -> str:
    """docs/reference/schema.md."""
    matched("tables", meanings.TABLES, metadata.tables)
    return document(
        "Schema",
        f"The tables as `src/penstock/store/tables.py` has them, at revision `{OURS.head}`. The migrations make "
        "exactly these, "
        "and so the database may be read with any tool. Writing to it past Penstock breaks what it promises.",
        "Moments are `timestamptz` on PostgreSQL and microseconds since 1970 on SQLite, ids are `uuid` or 32 "
        "hexadecimal digits, JSON is `jsonb` or text.",
        "On a server the tables are in the schema `PENSTOCK_DATABASE_SCHEMA`, in a SQLite file with tables of others "
        "their names and those of the indexes begin with `penstock_`: see [how to upgrade](../how-to/upgrade.md). "
        "`penstock_version` has the revision and `compatible_from`, the oldest revision a program may know to work on "
        "it.",
        "## Sketch",
        "Some of the columns, and what belongs to what. The lines are not foreign keys.",
        fenced(_sketch(), "mermaid"),
        *(_table(one) for one in metadata.tables.values()),
    )


def _sketch() -> str:
    lines = ["erDiagram"]
    lines += [f"    {left} {mark} {right} : {column}" for left, mark, right, column in _RELATIONS]
    for one in metadata.tables.values():
        lines.append(f"    {one.name} {{")
        for column in one.columns:
            if column.name in _SKETCHED:
                key = " PK" if column.primary_key else ""
                lines.append(f"        {_type(column, _POSTGRESQL).partition('(')[0].lower()} {column.name}{key}")
        lines.append("    }")
    return "\n".join(lines).replace("timestamp with time zone", "timestamptz")


def _table(one: Table) -> str:
    words = meanings.COLUMNS[one.name]
    matched(f"columns of {one.name}", words, one.columns.keys())
    columns = table(
        ("column", "PostgreSQL", "SQLite", "null", "default", "meaning"),
        (
            (
                code(column.name) + (" (key)" if column.primary_key else ""),
                _type(column, _POSTGRESQL),
                _type(column, _SQLITE),
                "yes" if column.nullable else "no",
                code(_default(column)),
                words[column.name],
            )
            for column in one.columns
        ),
    )
    parts = [f"## {one.name}", meanings.TABLES[one.name], columns]
    indexes = sorted(one.indexes, key=lambda index: str(index.name))
    if indexes:
        rows = (_index(index) for index in indexes)
        parts += ["**Indexes**", table(("index", "columns", "unique", "only where"), rows)]
    constraints = [row for constraint in one.constraints if (row := _constraint(constraint)) is not None]
    if constraints:
        parts += ["**Constraints**", table(("constraint", "rule"), sorted(constraints))]
    return "\n\n".join(parts)


def _type(column: Column[Any], dialect: SQLAlchemyDialect) -> str:
    return column.type.compile(dialect=dialect).replace("TIMESTAMP WITH TIME ZONE", "timestamptz")


def _default(column: Column[Any]) -> str:
    if column.autoincrement is True:
        return "counts up"
    default: Any = column.server_default
    return "" if default is None else str(default.arg)


def _index(index: Index) -> tuple[str, str, str, str]:
    """As PostgreSQL would make it: SQLite's is the same."""
    statement = str(CreateIndex(index).compile(dialect=_POSTGRESQL))
    columns = statement.partition("(")[2].partition(" WHERE ")[0].rpartition(")")[0]
    predicate = statement.partition(" WHERE ")[2]
    return code(index.name), columns, "yes" if index.unique else "", code(predicate)


def _constraint(constraint: Any) -> tuple[str, str] | None:
    if isinstance(constraint, CheckConstraint):
        return code(constraint.name), code(constraint.sqltext)
    if isinstance(constraint, UniqueConstraint):
        columns = ", ".join(column.name for column in constraint.columns)
        return code(f"uq_{constraint.table.name}_{columns.replace(', ', '_')}"), f"unique ({columns})"
    return None
