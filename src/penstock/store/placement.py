"""Where our tables are in a database that others use too: in a schema of our own, or behind a prefix.

On a server they are in a schema (``PENSTOCK_DATABASE_SCHEMA``). A SQLite file has no schemas: there our names begin
with ``penstock_`` if the file has tables of others, and are plain in a file that is ours alone. Which of the two it is
is decided when the file is migrated for the first time, and later seen by what is there.

The tables are declared once, with :func:`own_metadata`. A dialect that has been given a placement writes their names in
full wherever it compiles a statement, so a name never depends on ``search_path``, and a statement that has been
compiled costs nothing more. Tables of others in the same statement are left as they are.
"""

from __future__ import annotations

from collections.abc import Collection
from copy import copy
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, MetaData, Table, event
from sqlalchemy.engine import Dialect as SQLAlchemyDialect
from sqlalchemy.sql.compiler import IdentifierPreparer

DEFAULT_SCHEMA = "penstock"
PREFIX = "penstock_"
VERSION_TABLE = "penstock_version"
_OWN = "penstock_owns"


@dataclass(frozen=True, slots=True)
class TablePlacement:
    """The schema that our tables are in, and what their names begin with."""

    schema: str | None = None
    prefix: str = ""

    def table(self, name: str) -> str:
        """A table's name there."""
        return f"{self.prefix}{name}"

    def index(self, name: str) -> str:
        """An index's name there: in SQLite all indexes of a file share one set of names."""
        return f"{self.prefix}{name}"

    @property
    def channel(self) -> str:
        """Where the workers of these tables listen: two schemas of one database do not wake each other."""
        return DEFAULT_SCHEMA if self.schema in (None, DEFAULT_SCHEMA) else f"penstock_{self.schema}"


PLAIN = TablePlacement()
WITH_PREFIX = TablePlacement(prefix=PREFIX)


class OwnName(str):
    """The name of a table that a dialect with a placement completes."""

    __slots__ = ()


def own_metadata() -> MetaData:
    """A MetaData for tables that are kept beside Penstock's own: in its schema, or behind its prefix.

    >>> from sqlalchemy import Column, Integer
    >>> notes = Table("notes", own_metadata(), Column("id", Integer, primary_key=True))
    >>> type(notes.name).__name__
    'OwnName'
    """
    return MetaData(
        info={_OWN: True},
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        },
    )


@event.listens_for(Table, "after_parent_attach")
def _mark(table: Table, metadata: object) -> None:
    if isinstance(metadata, MetaData) and metadata.info.get(_OWN):
        table.name = OwnName(table.name)


class _Placing(IdentifierPreparer):
    """Writes the names of our tables in full, as the dialect's placement has them."""

    def schema_for_object(self, thing: Any) -> str | None:  # type: ignore[override]
        if isinstance(getattr(thing, "name", None), OwnName):
            return placement_of(self.dialect).schema
        schema: str | None = thing.schema
        return schema

    def quote(self, ident: str) -> str:
        if isinstance(ident, OwnName):
            ident = placement_of(self.dialect).table(ident)
        return super().quote(ident)


def place_tables(dialect: Any, placement: TablePlacement) -> None:
    """From now on the dialect knows our tables to be there."""
    preparer = dialect.identifier_preparer
    if not isinstance(preparer, _Placing):
        dialect.preparer = type(f"Placing{type(preparer).__name__}", (_Placing, type(preparer)), {})
    if preparer.dialect is not dialect or not isinstance(preparer, _Placing):
        dialect.identifier_preparer = dialect.preparer(dialect)
    dialect.penstock_placement = placement


def placement_of(dialect: Any) -> TablePlacement:
    """Where a dialect knows our tables to be."""
    placement: TablePlacement = dialect.penstock_placement
    return placement


def placed_copy(dialect: SQLAlchemyDialect, placement: TablePlacement) -> SQLAlchemyDialect:
    """Somebody else's dialect, with its driver and its options, that knows where our tables are."""
    placed_dialect = copy(dialect)
    place_tables(placed_dialect, placement)
    return placed_dialect


def find_placement(names: Collection[str]) -> TablePlacement | None:
    """How our tables are named in a SQLite file with these tables; None where they are not, or as they once were."""
    if VERSION_TABLE not in names:
        return None
    return WITH_PREFIX if WITH_PREFIX.table("jobs") in names else PLAIN


def place_by_what_is_there(engine: Engine) -> None:
    """Look at a SQLite file when it is first connected to."""
    place_tables(engine.dialect, PLAIN)
    is_decided = False

    @event.listens_for(engine, "connect")
    def look(connection: Any, _record: object) -> None:
        nonlocal is_decided
        if not is_decided:
            cursor = connection.cursor()
            names = {name for (name,) in cursor.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            cursor.close()
            placement = find_placement(names)
            is_decided = placement is not None
            if placement is not None:
                place_tables(engine.dialect, placement)
