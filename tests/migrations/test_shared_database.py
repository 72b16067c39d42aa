"""A database that others use too: a team's own tables and Alembic, a second Penstock, a search path of theirs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Column, Integer, MetaData, String, Table, create_engine, insert, inspect, select, text

from penstock import Penstock
from penstock.errors import ConfigurationError
from penstock.settings import load_settings
from penstock.store.peers import Peers
from penstock.store.tables import metadata as our_metadata

NAMES = ("jobs", "files", "workers", "outbox", "users")
"""What they call their tables, and most of it we as well."""

ENV = """
from alembic import context
from sqlalchemy import Column, Integer, MetaData, String, Table, create_engine

target_metadata = MetaData()
for name in {names!r}:
    Table(name, target_metadata, Column("id", Integer, primary_key=True), Column("word", String))


{include_name}
engine = create_engine({url!r})
with engine.connect() as connection:
    context.configure(connection=connection, target_metadata=target_metadata, include_name=include_name)
    with context.begin_transaction():
        context.run_migrations()
engine.dispose()
"""
INCLUDE_NAME = '''
def include_name(name, type_, parent_names):
    """As docs/how-to/upgrade.md has it."""
    return not (type_ == "table" and name.startswith("penstock_"))
'''
TEMPLATE = """
import sqlalchemy as sa
from alembic import op
revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
def upgrade():
    ${upgrades if upgrades else "pass"}
"""
FIRST = """
revision = "0004"
down_revision = None
import sqlalchemy as sa
from alembic import op
def upgrade():
    for name in {names!r}:
        op.create_table(name, sa.Column("id", sa.Integer, primary_key=True), sa.Column("word", sa.String))
"""


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/shared.db"
    made: str = request.getfixturevalue("postgres_url")
    return made


@pytest.fixture
def team(url: str, tmp_path: Path) -> Callable[..., str]:
    """A team's own ``alembic``, the real program."""
    folder = tmp_path / "migrations"
    (folder / "versions").mkdir(parents=True)
    include_name = INCLUDE_NAME if "sqlite" in url else "include_name = None"
    (folder / "env.py").write_text(ENV.format(names=NAMES, url=url, include_name=include_name))
    (folder / "script.py.mako").write_text(TEMPLATE)
    (folder / "versions" / "0004_theirs.py").write_text(FIRST.format(names=NAMES))
    (tmp_path / "alembic.ini").write_text("[alembic]\nscript_location = migrations\n")

    def alembic(*arguments: str) -> str:
        program = [sys.executable, "-m", "alembic", *arguments]
        ended = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout + ended.stderr

    return alembic


def penstock(url: str, schema: str = "penstock") -> Penstock:
    app = Penstock(settings=load_settings(database_url=url, database_schema=schema))

    @app.kind("greet")
    def greet(item):
        return f"hello {item.input}"

    return app


@pytest.fixture
def app(url: str) -> Iterator[Penstock]:
    made = penstock(url)
    yield made
    made.close()


def theirs() -> Table:
    return Table("jobs", MetaData(), Column("id", Integer, primary_key=True), Column("word", String))


@pytest.mark.parametrize("first", ["team", "penstock"])
def test_a_teams_alembic_and_ours_do_not_meet(
    url: str, app: Penstock, team: Callable[..., str], first: str, tmp_path: Path
) -> None:
    """Their tables have our names, and their revision is called as one of ours."""
    if "sqlite" in url and first == "penstock":
        # A file that had been ours alone when it was made keeps our plain names: a team begins with tables of its own.
        engine = create_engine(url)
        with engine.begin() as connection:
            connection.execute(text("CREATE TABLE settings (id integer)"))
        engine.dispose()
    steps: list[Callable[[], object]] = [lambda: team("upgrade", "head"), app.system.migrate]
    for step in steps if first == "team" else reversed(steps):
        step()
    job = app.submit("greet", "Ada").job
    assert app.drain()
    assert app.jobs.get(job.id).result == "hello Ada"
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(insert(theirs()).values(word="mine"))
        assert connection.execute(select(theirs().c.word)).scalars().all() == ["mine"]
        assert connection.execute(text("SELECT version_num FROM alembic_version")).scalars().all() == ["0004"]
    engine.dispose()
    team("upgrade", "head")
    app.system.migrate()
    team("revision", "--autogenerate", "-m", "more", "--rev-id", "0005")
    [made] = (tmp_path / "migrations" / "versions").glob("0005_*")
    wanted = made.read_text()
    if "sqlite" in url and first == "penstock":
        wanted = wanted.replace("op.drop_table('settings')", "")
    assert "drop" not in wanted, wanted
    assert "create" not in wanted, wanted


def test_a_job_in_the_callers_transaction_whatever_their_search_path(postgres_url: str) -> None:
    """Their engine has its own dialect, another schema in front, and tables with our names there."""
    app = penstock(postgres_url)
    app.system.migrate()
    engine = create_engine(postgres_url, connect_args={"options": "-csearch_path=shop"})
    with engine.begin() as connection:
        connection.execute(text("CREATE SCHEMA shop"))
        for name in NAMES:
            connection.execute(text(f"CREATE TABLE {name} (id integer, word text)"))
    with engine.begin() as connection:
        job = app.submit("greet", "Ada", connection=connection).job
        connection.execute(text("INSERT INTO jobs VALUES (1, 'mine')"))
        app.messages.publish("topic", {"a": 1}, connection=connection)
    with engine.connect() as connection:
        app.submit("greet", "nobody", connection=connection)
        app.jobs.cancel(job.id, connection=connection)
        connection.rollback()
    assert app.drain()
    assert app.jobs.get(job.id).result == "hello Ada"
    assert len(app.jobs.list()) == 1
    engine.dispose()
    app.close()


def test_a_job_in_the_callers_transaction_beside_their_tables_in_a_file(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/shop.db"
    engine = create_engine(url)
    table = theirs()
    table.metadata.create_all(engine)
    app = penstock(url)
    app.add_migrations("catalogs", "penstock_apps.catalogs", "0002")
    app.system.migrate()
    with engine.begin() as connection:
        connection.execute(insert(table).values(word="mine"))
        job = app.submit("greet", "Ada", connection=connection).job
        assert app.submit("greet", "Ada", connection=connection).job.id != job.id
    with engine.connect() as connection:
        app.submit("greet", "nobody", connection=connection)
        app.jobs.cancel(job.id, connection=connection)
        connection.rollback()
    assert app.drain()
    assert app.jobs.get(job.id).result == "hello Ada"
    assert len(app.jobs.list()) == 2
    names = set(inspect(engine).get_table_names())
    assert names & set(our_metadata.tables) == {"jobs"}
    assert {"penstock_jobs", "penstock_photos"} < names
    engine.dispose()
    app.close()


def test_a_file_stays_what_it_was_when_others_come_later(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ours.db"
    app = penstock(url)
    app.system.migrate()
    app.close()
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE settings (id integer)"))
    engine.dispose()
    again = penstock(url)
    again.system.migrate()
    job = again.submit("greet", "Ada").job
    assert again.drain()
    assert again.jobs.get(job.id).result == "hello Ada"
    assert again.store.placement.prefix == ""
    again.close()


def test_two_schemas_are_two_penstocks(postgres_url: str) -> None:
    """Neither sees, works on, wakes or counts the other's."""
    one, other = penstock(postgres_url), penstock(postgres_url, "other")
    for app in (one, other):
        app.system.migrate()
    mine = one.submit("greet", "one").job
    assert other.jobs.list() == []
    assert other.drain()
    theirs_too = other.submit("greet", "other").job
    assert one.jobs.get(mine.id).result is None
    assert one.drain()
    assert [one.jobs.get(mine.id).result, other.jobs.get(theirs_too.id).result] == ["hello one", None]
    listening = one.store.engine.raw_connection()
    driver: Any = listening.driver_connection
    driver.autocommit = True
    driver.execute(f"LISTEN {one.store.placement.channel}")
    other.submit("greet", "silent")
    one.submit("greet", "loud")
    heard = [(notice.channel, notice.payload) for notice in driver.notifies(timeout=30, stop_after=1)]
    assert heard == [("penstock", "greet")]
    driver.execute("UNLISTEN *")
    listening.close()
    url = one.store.engine.url
    keys = {Peers.of(url, app.store.placement.channel)._directory for app in (one, other)}
    assert len(keys) == 2, "their workers do not take each other for their own"
    for app in (one, other):
        app.close()


def test_a_user_who_may_not_create_schemas_is_told_what_to_ask_for(postgres_url: str) -> None:
    engine = create_engine(postgres_url)
    with engine.begin() as connection:
        connection.execute(text("DROP ROLE IF EXISTS clerk"))
        connection.execute(text("CREATE ROLE clerk LOGIN"))
    clerk = engine.url.set(username="clerk").render_as_string(hide_password=False)
    app = penstock(clerk)
    with pytest.raises(ConfigurationError, match="CREATE SCHEMA penstock AUTHORIZATION clerk") as refused:
        app.system.migrate()
    assert refused.value.code == "SCHEMA_NOT_ALLOWED"
    with engine.begin() as connection:
        connection.execute(text("CREATE SCHEMA penstock AUTHORIZATION clerk"))
    app.system.migrate()
    job = app.submit("greet", "Ada").job
    assert app.drain()
    assert app.jobs.get(job.id).result == "hello Ada"
    app.close()
    with engine.begin() as connection:
        connection.execute(text("DROP OWNED BY clerk CASCADE"))
        connection.execute(text("DROP ROLE clerk"))
    engine.dispose()
