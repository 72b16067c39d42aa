"""Databases as earlier versions left them, made by the same revisions with plain Alembic."""

from __future__ import annotations

from pathlib import Path

from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, create_engine, inspect, text

import penstock.store
import penstock_apps

OURS_AT = Path(penstock.store.__file__).parent / "migrations"
APPS_AT = Path(penstock_apps.__file__).parent


def make_old_layout(url: str, revision: str = "0004", *, applications: tuple[str, ...] = ()) -> None:
    """Tables with plain names in the first schema of the search path, with ``alembic_version`` beside them."""
    engine = create_engine(url)
    with engine.begin() as connection:
        _upgrade(connection, OURS_AT, "alembic_version", revision)
        for name in applications:
            _upgrade(connection, APPS_AT / name / "migrations", f"alembic_version_{name}", "head")
        _one_job(connection)
    engine.dispose()


def _upgrade(connection: Connection, location: Path, version_table: str, to: str) -> None:
    scripts = ScriptDirectory(str(location), version_locations=[str(location / "versions")])
    context = MigrationContext.configure(
        connection,
        opts={"version_table": version_table, "fn": lambda heads, _: scripts._upgrade_revs(to, heads)},
    )
    with Operations.context(context):
        context.run_migrations()


def _one_job(connection: Connection) -> None:
    """A job that waits, written with the columns that every revision has."""
    sqlite = connection.dialect.name == "sqlite"
    job_id = "'00000000000000000000000000000007'"
    now = "CAST(unixepoch() AS INTEGER) * 1000000" if sqlite else "now()"
    connection.execute(text(
        "INSERT INTO jobs (id, kind, user_id, state, params, total_items, open_to, turn_at, created_at, updated_at, "
        f"queued_at) VALUES ({job_id}, 'greet', 'ada', 'queued', '{{\"name\": \"Ada\"}}', 1, 1, {now}, {now}, {now}, "
        f"{now})"
    ))  # fmt: skip
    connection.execute(text(
        f"INSERT INTO job_items (job_id, user_id, kind, position, updated_at) VALUES ({job_id}, 'ada', 'greet', 1, "
        f"{now})"
    ))  # fmt: skip
    connection.execute(text(
        f"INSERT INTO job_events (job_id, sequence, to_state, actor, at) VALUES ({job_id}, 1, 'queued', 'system', "
        f"{now})"
    ))  # fmt: skip


def tables_by_schema(engine: Engine) -> dict[str, set[str]]:
    """Every table that is there."""
    look = inspect(engine)
    schemas = ["main"] if engine.dialect.name == "sqlite" else ["public", "penstock"]
    return {one: set(look.get_table_names(schema=one)) for one in schemas}
