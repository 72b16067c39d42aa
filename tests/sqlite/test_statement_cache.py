"""Databases of one kind are asked in the same words, written once; where the tables have other names, in others."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import create_engine, event, select
from sqlalchemy.pool import NullPool

from penstock.store.engine import Store, open_store
from penstock.store.placement import WITH_PREFIX
from penstock.store.schema import migrate
from penstock.store.statement_cache import prepare
from penstock.store.tables import jobs

KINDS = select(jobs.c.kind)


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[[str], Store]]:
    """Opens a file with our tables."""
    stores: list[Store] = []

    def open_file(name: str) -> Store:
        stores.append(open_store(f"sqlite:///{tmp_path / name}"))
        migrate(stores[-1])
        return stores[-1]

    yield open_file
    for store in stores:
        store.close()


def test_a_second_database_finds_its_statements_written(opened: Callable[[str], Store]) -> None:
    first, second = (opened(name).engine.dialect for name in ("first.db", "second.db"))
    assert first is not second
    assert prepare(KINDS, first) is prepare(KINDS, second)


def test_an_engine_that_writes_json_in_its_own_way_has_statements_of_its_own(opened: Callable[[str], Store]) -> None:
    store = opened("first.db")
    placed_dialects = []
    for serializer in (json.dumps, partial(json.dumps, default=str)):
        with create_engine("sqlite://", json_serializer=serializer).connect() as connection:
            placed_dialects.append(store.dialect_for(connection))
    prepared_statements = {prepare(KINDS, dialect) for dialect in (store.engine.dialect, *placed_dialects)}
    assert len(prepared_statements) == 3


def test_where_tables_have_other_names_statements_are_others(opened: Callable[[str], Store], tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "shared.db")) as others:
        others.execute("CREATE TABLE users (id integer)")
    alone, shared = opened("alone.db"), opened("shared.db")
    assert shared.placement == WITH_PREFIX
    assert prepare(KINDS, alone.engine.dialect) is not prepare(KINDS, shared.engine.dialect)
    for store in (alone, shared, alone):
        assert store.read(lambda one: one.values(str, KINDS)) == []


def test_a_file_that_gets_other_names_leaves_those_of_others_alone(opened: Callable[[str], Store]) -> None:
    first, second = opened("first.db"), opened("second.db")
    assert prepare(KINDS, first.engine.dialect) is prepare(KINDS, second.engine.dialect)
    first.place(WITH_PREFIX)
    later = select(jobs.c.title)
    assert prepare(later, first.engine.dialect) is not prepare(later, second.engine.dialect)
    assert second.read(lambda one: one.values(str, later)) == []


def test_a_dialect_that_writes_otherwise_has_statements_of_its_own(opened: Callable[[str], Store]) -> None:
    store = opened("first.db")
    named = create_engine(store.engine.url, poolclass=NullPool, paramstyle="named")
    with named.connect() as connection, store.use_connection(connection) as transaction:
        statements: list[str] = []
        event.listen(named, "before_cursor_execute", lambda *told: statements.append(told[2]))
        wanted = select(jobs.c.kind).where(jobs.c.kind == "a")
        assert transaction.values(str, wanted) == store.read(lambda one: one.values(str, wanted)) == []
    assert ":kind" in statements[0]
    named.dispose()


def test_a_dialect_may_be_working_something_out_in_another_thread(opened: Callable[[str], Store]) -> None:
    dialect = opened("first.db").engine.dialect

    class WorkedOutMeanwhile:
        @property  # type: ignore[misc]  # asked for while the settings are looked through
        def __class__(self) -> type:
            setattr(dialect, f"worked_out_{len(vars(dialect))}", object())
            return object

    vars(dialect).update(seen_first=WorkedOutMeanwhile(), seen_last=object())
    assert prepare(select(jobs.c.title, jobs.c.kind), dialect) is not None
