"""The migrations make exactly the tables of ``store/tables.py``, on both databases, and running them is harmless."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, MetaData, create_engine, inspect, text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.schema import CreateSchema
from structlog.testing import capture_logs

import penstock.store
from penstock import Penstock
from penstock.errors import ConfigurationError, SchemaOutOfDate
from penstock.store.engine import Store, open_store
from penstock.store.placement import VERSION_TABLE
from penstock.store.revisions import Version, current_version, run_revision, write_version
from penstock.store.schema import OURS, Schema, current_revision, is_current, migrate, require_current
from penstock.store.tables import metadata
from penstock.testing.postgres import PostgresServer
from penstock_apps.catalogs.tables import metadata as catalogs_metadata
from penstock_apps.products.tables import metadata as products_metadata
from penstock_apps.recipes.tables import metadata as recipes_metadata

MIGRATIONS = Path(penstock.store.__file__).parent / "migrations"


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Store]]:
    """Opens one empty database as often as asked."""
    url = f"sqlite:///{tmp_path}/empty.db" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    opened: list[Store] = []

    def opening() -> Store:
        opened.append(open_store(url))
        return opened[-1]

    yield opening
    for store in opened:
        store.close()


@pytest.fixture
def migrated(migrated_url: str) -> Iterator[Store]:
    """A database with our tables."""
    store = open_store(migrated_url)
    yield store
    store.close()


def scripts() -> ScriptDirectory:
    configuration = Config()
    configuration.set_main_option("script_location", str(MIGRATIONS))
    return ScriptDirectory.from_config(configuration)


def as_placed(tables: MetaData, store: Store) -> MetaData:
    """The tables as anybody's Alembic would declare them, to be compared with what is there."""
    copied = MetaData(naming_convention=tables.naming_convention)
    for table in tables.sorted_tables:
        schema: Any = store.placement.schema
        table.to_metadata(copied, schema=schema, name=str(store.placement.table(table.name)))
    return copied


def differences(store: Store, tables: MetaData, **options: Any) -> list[Any]:
    """What Alembic would change to make the tables as they are declared."""
    names = {store.placement.table(name) for name in tables.tables}

    def is_looked_at(name: str | None, kind: str, _parents: Any) -> bool:
        if kind == "schema":
            return name == store.placement.schema
        return kind != "table" or name in names

    opts = {"compare_type": True, "include_schemas": True, "include_name": is_looked_at, **options}
    with store.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts=opts)
        return list(compare_metadata(context, as_placed(tables, store)))


def test_alembic_finds_nothing_to_change(empty: Callable[[], Store]) -> None:
    store = empty()
    migrate(store)
    assert differences(store, metadata, compare_server_default=True) == []
    with store.engine.begin() as connection:
        connection.execute(text(f"DROP INDEX {qualified(store, 'ix_jobs_state_kind')}"))
    assert len(differences(store, metadata)) == 1, "the comparison looks at our tables"


def qualified(store: Store, name: str) -> str:
    """A table's or an index's name in plain SQL."""
    schema = store.placement.schema
    return name if schema is None else f"{schema}.{name}"


COLUMNS = """
    SELECT table_name, column_name, data_type, character_maximum_length, is_nullable, column_default
    FROM information_schema.columns WHERE table_schema = 'penstock' AND table_name <> 'penstock_version'"""
# PostgreSQL 18 names each NOT NULL after the column, and leaves it that name when the column gets another one.
CONSTRAINTS = """
    SELECT conrelid::regclass::text, CASE contype WHEN 'n' THEN '' ELSE conname END, contype, pg_get_constraintdef(oid)
    FROM pg_constraint WHERE connamespace = 'penstock'::regnamespace
      AND conrelid::regclass::text <> 'penstock.penstock_version'"""
INDEXES = """
    SELECT tablename, indexname, indexdef FROM pg_indexes
    WHERE schemaname = 'penstock' AND tablename <> 'penstock_version'"""
SQLITE_INDEXES = """
    SELECT tbl_name, name, replace(sql, '"', '') FROM sqlite_master
    WHERE type = 'index' AND tbl_name <> 'penstock_version'"""


def catalog(connection: Connection) -> dict[str, Any]:
    """Everything the database knows of our tables: columns, constraints with their words, indexes with predicates."""
    if connection.dialect.name == "postgresql":
        asked = {"columns": COLUMNS, "constraints": CONSTRAINTS, "indexes": INDEXES}
        return {name: rows(connection, one) for name, one in asked.items()}
    found: dict[str, Any] = {"indexes": rows(connection, SQLITE_INDEXES)}
    for name in metadata.tables:
        columns = 'SELECT name, type, "notnull", dflt_value, pk FROM pragma_table_info'
        found[name] = rows(connection, f"{columns}('{name}')")
        checks = inspect(connection).get_check_constraints(name)
        found[f"checks of {name}"] = sorted((one["name"], one["sqltext"]) for one in checks)
    return found


def rows(connection: Connection, asked: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in connection.execute(text(asked))), key=repr)


def made_from_metadata(request: pytest.FixtureRequest, store: Store, directory: Path) -> dict[str, Any]:
    """What ``create_all`` would have made, in a database of its own."""
    server: PostgresServer | None = None
    url = f"sqlite:///{directory}/other.db"
    if store.dialect.name == "postgresql":
        server = request.getfixturevalue("postgres_server")
        assert server is not None
        server.create_database("from_metadata")
        url = server.url("from_metadata")
    engine = create_engine(url)
    with engine.begin() as connection:
        if store.placement.schema is not None:
            connection.execute(CreateSchema(store.placement.schema))
        as_placed(metadata, store).create_all(connection)
        found = catalog(connection)
    engine.dispose()
    if server is not None:
        server.drop_database("from_metadata")
    return found


def test_columns_checks_and_index_predicates_are_those_of_the_tables(
    empty: Callable[[], Store], request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    store = empty()
    migrate(store)
    with store.engine.connect() as connection:
        migrated = catalog(connection)
    expected = made_from_metadata(request, store, tmp_path)
    assert migrated.keys() == expected.keys()
    for part, found in migrated.items():
        assert found == expected[part], part
    indexes = " ".join(str(row) for row in migrated["indexes"])
    assert indexes.count("WHERE") >= 8, "partial indexes lost their predicates"
    assert "CHECK" in str(migrated) or "lease IS NOT NULL" in str(migrated)


ID = "'00000000000000000000000000000001'"


@pytest.mark.parametrize(
    ("table", "values"),
    [
        ("jobs", {"id": ID, "state": "'lost'", "created_at": "NOW"}),
        ("jobs", {"id": ID, "state": "'queued'", "phase": "'lost'", "created_at": "NOW"}),
        ("jobs", {"id": ID, "state": "'queued'", "processed_items": "1", "created_at": "NOW"}),
        ("jobs", {"id": ID, "state": "'failed'", "killed_by": "'nobody'", "created_at": "NOW"}),
        ("job_items", {"job_id": ID, "position": "1", "status": "'PROCESSING'"}),
        ("job_items", {"job_id": ID, "position": "1", "status": "'DONE'", "lease": ID}),
        ("job_items", {"job_id": ID, "position": "1", "role": "'other'"}),
    ],
    ids=["state", "phase", "processed", "killed by", "processing without lease", "lease without processing", "role"],
)
def test_the_database_itself_refuses_what_cannot_be(migrated: Store, table: str, values: dict[str, str]) -> None:
    store = migrated
    row = {"kind": "'k'", "updated_at": "NOW"} | values
    statement = f"INSERT INTO {qualified(store, table)} ({', '.join(row)}) VALUES ({', '.join(row.values())})"
    now = "now()" if store.dialect.name == "postgresql" else "0"
    with store.engine.connect() as connection, pytest.raises(IntegrityError, match=r"(?i)check constraint"):
        connection.execute(text(statement.replace("NOW", now)))


def test_head_is_the_last_revision_and_there_is_one_line_of_them() -> None:
    found = scripts()
    assert found.get_heads() == [OURS.head]
    revisions = [script.revision for script in found.walk_revisions()][::-1]
    assert revisions == sorted(revisions), "revisions are compared as texts: they must sort"
    for script in found.walk_revisions():
        assert Path(script.path).name.startswith(f"{script.revision}_")


def test_an_empty_database_is_refused_and_a_migrated_one_is_not(empty: Callable[[], Store]) -> None:
    store = empty()
    assert current_revision(store) is None
    with pytest.raises(SchemaOutOfDate, match=f"is empty, this version needs {OURS.head}: run 'penstock migrate'"):
        require_current(store)
    migrate(store)
    assert current_revision(store) == OURS.head
    require_current(store)


def test_an_older_schema_is_refused(migrated: Store) -> None:
    store = migrated
    with store.engine.begin() as connection:
        connection.execute(text(f"UPDATE {qualified(store, 'penstock_version')} SET version_num = '0000'"))
    with pytest.raises(SchemaOutOfDate, match="schema is 0000"):
        require_current(store)


def newer(store: Store, compatible_from: str | None) -> None:
    """The schema as a later version leaves it."""
    with store.engine.begin() as connection:
        write_version(connection, OURS, Version("9999", compatible_from))


@pytest.mark.parametrize("compatible_from", [None, "0001", OURS.head])
def test_a_newer_schema_is_left_alone_and_said_once(
    migrated: Store, compatible_from: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old programs go on while a new one has migrated already."""
    monkeypatch.setattr("penstock.store.schema._warned_versions", set())
    store = migrated
    newer(store, compatible_from)
    with capture_logs() as lines:
        migrate(store)
        require_current(store)
        assert is_current(store)
    assert [(one["log_level"], one["revision"]) for one in lines] == [("warning", "9999")]
    assert current_revision(store) == "9999"


def test_a_newer_schema_that_says_so_is_refused(migrated: Store) -> None:
    store = migrated
    newer(store, "9000")
    for refusing in (migrate, require_current, is_current):
        with pytest.raises(SchemaOutOfDate, match="programs before 9000 cannot work on") as refused:
            refusing(store)
        assert refused.value.code == "SCHEMA_TOO_NEW"
    app = Penstock(store.engine.url.render_as_string(hide_password=False))
    with pytest.raises(SchemaOutOfDate, match="install a newer version"):
        app.jobs.list()
    assert current_revision(store) == "9999"


def test_a_revision_says_with_whom_it_is_compatible(migrated: Store) -> None:
    """What one said holds until a later one says otherwise."""
    store = migrated
    said = []
    for number, says in enumerate(({}, {"compatible_from": "0999"}, {}, {"compatible_from": "1002"})):
        module = ModuleType("made")
        vars(module).update({"revision": f"100{number}", "upgrade": lambda: None, **says})
        with store.engine.begin() as connection:
            run_revision(connection, OURS, module)
            version = current_version(connection, OURS)
            assert version is not None
            said.append(version.compatible_from)
    assert said == ["0008", "0999", "0999", "1002"]


def test_twice_is_once_and_keeps_what_is_there(empty: Callable[[], Store]) -> None:
    store = empty()
    migrate(store)
    with store.engine.begin() as connection:
        now = "now()" if store.dialect.name == "postgresql" else "0"
        outbox = qualified(store, "outbox")
        connection.execute(
            text(f"INSERT INTO {outbox} (topic, payload, ready_at, created_at) VALUES ('t', '1', {now}, {now})")
        )
    migrate(empty())
    with store.engine.connect() as connection:
        assert connection.execute(text(f"SELECT count(*) FROM {outbox}")).scalar_one() == 1


def test_a_migration_that_fails_half_way_goes_on_where_it_was(
    empty: Callable[[], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file is changed in one transaction, a server's tables in one for each revision."""
    store = empty()

    def fails(connection: Connection, schema: Schema, module: Any, **options: Any) -> None:
        run_revision(connection, schema, module, **options)
        if module.revision == "0003":
            raise ZeroDivisionError

    with monkeypatch.context() as patching:
        patching.setattr("penstock.store.schema.run_revision", fails)
        with pytest.raises(ZeroDivisionError):
            migrate(store)
    assert current_revision(store) == (None if store.dialect.name == "sqlite" else "0002")
    assert "lane_samples" not in inspect(store.engine).get_table_names(schema=store.placement.schema)
    migrate(store)
    assert current_revision(store) == OURS.head


PROGRAM = """
import sys
from penstock.store.engine import open_store
from penstock.store.schema import migrate, require_current
print("ready", flush=True)
sys.stdin.readline()
store = open_store(sys.argv[1])
migrate(store)
require_current(store)
"""


def test_several_processes_at_once_are_harmless(empty: Callable[[], Store]) -> None:
    store = empty()
    url = store.engine.url.render_as_string(hide_password=False)
    programs = [
        subprocess.Popen([sys.executable, "-c", PROGRAM, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]  # fmt: skip
    for one in programs:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
    for one in programs:
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()
    ended = [(one.communicate(timeout=60)[1], one.returncode) for one in programs]
    assert ended == [("", 0)] * 2
    assert current_revision(store) == OURS.head
    assert set(inspect(store.engine).get_table_names(schema=store.placement.schema)) == {
        *metadata.tables,
        VERSION_TABLE,
    }
    if store.placement.schema is not None:
        assert inspect(store.engine).get_table_names(schema="public") == []


# Tables of applications -----------------------------------------------------------------------------------------------

CATALOGS = Schema.of_app("catalogs", "penstock_apps.catalogs", "0002")
RECIPES = Schema.of_app("recipes", "penstock_apps.recipes", "0004")
PRODUCTS = Schema.of_app("products", "penstock_apps.products", "0001")


@pytest.mark.parametrize(
    ("app", "tables"),
    [(CATALOGS, catalogs_metadata), (RECIPES, recipes_metadata), (PRODUCTS, products_metadata)],
    ids=["catalogs", "recipes", "products"],
)
def test_an_applications_tables_are_made_beside_ours(empty: Callable[[], Store], app: Schema, tables: MetaData) -> None:
    store = empty()
    migrate(store)
    with pytest.raises(SchemaOutOfDate, match=f"the schema of {app.name} in the database is empty"):
        require_current(store, (OURS, app))
    migrate(store, (OURS, app))
    migrate(store, (OURS, app))
    require_current(store, (OURS, app))
    assert (current_revision(store), current_revision(store, app)) == (OURS.head, app.head)
    assert differences(store, tables) == []


def test_an_application_says_so_before_the_database_is_opened(empty: Callable[[], Store]) -> None:
    store = empty()
    app = Penstock(store.engine.url.render_as_string(hide_password=False))
    app.add_migrations("catalogs", "penstock_apps.catalogs", "0002")
    app.system.migrate()
    assert app.jobs.list() == []
    with pytest.raises(ConfigurationError, match="before the database is opened"):
        app.add_migrations("recipes", "penstock_apps.recipes", "0001")
    assert current_revision(store, CATALOGS) == CATALOGS.head
    app.close()
