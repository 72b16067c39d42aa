"""Whatever the user's own code does with the file, in our process, nothing of ours is lost."""

from __future__ import annotations

import gc
import shutil
import sqlite3
import subprocess
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column
from sqlalchemy.pool import NullPool, QueuePool, StaticPool

from penstock import Penstock
from tests.conftest import unavailable
from tests.sqlite.conftest import seen_elsewhere, take_write_lock_elsewhere

Use = Callable[[], object]
READ = "SELECT count(*) FROM jobs"


@contextmanager
def plain(path: Path) -> Iterator[Use]:
    """Opened, read and closed each time."""

    def use() -> None:
        with closing(sqlite3.connect(path)) as link:
            link.execute(READ).fetchall()

    yield use


@contextmanager
def writing(path: Path) -> Iterator[Use]:
    """Opened, written and closed each time."""

    def use() -> None:
        with closing(sqlite3.connect(path)) as link, link:
            link.execute("CREATE TABLE IF NOT EXISTS mine (number INTEGER)")
            link.execute("INSERT INTO mine VALUES (1)")

    yield use


@contextmanager
def left_to_the_collector(path: Path) -> Iterator[Use]:
    """As notebooks and data frames do: a connection that nobody closes goes when it is collected."""

    def use() -> None:
        sqlite3.connect(path).execute(READ).fetchall()
        gc.collect(0)  # it is young; all generations of a whole test run take seconds

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        yield use


@contextmanager
def overlapping(path: Path) -> Iterator[Use]:
    """The last one is closed when the next one is open, and a reader stays in the middle of its rows."""
    links = [sqlite3.connect(path)]

    def use() -> None:
        links.append(sqlite3.connect(path))
        links[-1].execute("SELECT id FROM jobs").fetchone()
        links.pop(0).close()

    yield use
    links.pop().close()


def engine_with(pool: type[Any]) -> Callable[[Path], Any]:
    """The user's own SQLAlchemy engine."""

    @contextmanager
    def dialect(path: Path) -> Iterator[Use]:
        engine = create_engine(f"sqlite:///{path}", poolclass=pool)

        def use() -> None:
            with engine.begin() as connection:
                connection.execute(text(READ)).all()
            engine.dispose()

        yield use
        engine.dispose()

    return dialect


@contextmanager
def django(path: Path) -> Iterator[Use]:
    """Django's connection, which is closed after each request."""
    from django import setup
    from django.conf import settings

    if not settings.configured:
        settings.configure()
        setup()
    from django.db.utils import ConnectionHandler

    handler = ConnectionHandler({"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": str(path)}})

    def use() -> None:
        with handler["default"].cursor() as cursor:
            cursor.execute(READ)
            cursor.fetchall()
        handler["default"].close()

    yield use
    handler["default"].close()


@contextmanager
def shell(path: Path) -> Iterator[Use]:
    """SQLite's own program, another process with another version of the library."""
    program = shutil.which("sqlite3") or unavailable("no sqlite3 shell: tools/packages installs it, or says how")

    def use() -> None:
        subprocess.run([program, str(path), READ], check=True, capture_output=True, timeout=60)

    yield use


USES = {
    "plain": plain,
    "writing": writing,
    "left to the collector": left_to_the_collector,
    "overlapping": overlapping,
    "NullPool": engine_with(NullPool),
    "QueuePool": engine_with(QueuePool),
    "StaticPool": engine_with(StaticPool),
    "Django": django,
    "shell": shell,
}


@pytest.fixture(params=USES)
def use(request: pytest.FixtureRequest, path: Path) -> Iterator[Use]:
    """One use of the file, as a user's code would; it may be repeated."""
    with USES[request.param](path) as one:
        yield one


def test_nothing_that_was_accepted_is_lost(app: Penstock, path: Path, use: Use) -> None:
    accepted = []
    for _ in range(6):
        use()
        accepted.append(app.submit("noop").job.id)
        use()
        app.drain()
    use()
    assert [app.jobs.get(one).state.value for one in accepted] == ["succeeded"] * 6
    assert seen_elsewhere(path, READ) == ["6"]
    app.close()
    use()
    assert seen_elsewhere(path, READ) == ["6"]


@pytest.mark.parametrize("name", [name for name in USES if name != "writing"])
def test_the_write_lock_is_ours_while_we_write(app: Penstock, path: Path, name: str) -> None:
    with USES[name](path) as use:
        app.submit("noop")

        def use_and_look(_transaction: object) -> str:
            use()
            return take_write_lock_elsewhere(path)

        assert app.store.write(use_and_look) == "database is locked"
    assert take_write_lock_elsewhere(path) == "got it"


def test_a_handler_reads_its_own_table_in_that_file(app: Penstock, path: Path) -> None:
    with closing(sqlite3.connect(path)) as link, link:
        link.execute("CREATE TABLE prices (article TEXT, cents INTEGER)")
        link.execute("INSERT INTO prices VALUES ('bolt', 12)")

    @app.kind("price")
    def price(item: Any) -> int:
        with closing(sqlite3.connect(path)) as link:
            [[cents]] = link.execute("SELECT cents FROM prices WHERE article = ?", (item.input,)).fetchall()
        return int(cents)

    with app.working():
        accepted = [app.submit("price", "bolt").job.id for _ in range(14)]
        for one in accepted:
            app.jobs.wait(one, timeout=60)
    assert [app.jobs.get(one).result for one in accepted] == [12] * 14
    assert seen_elsewhere(path, "SELECT count(*) FROM jobs WHERE state = 'succeeded'") == ["14"]


def test_the_how_to_in_an_orm_session_again_and_again(app: Penstock, path: Path) -> None:
    class Base(DeclarativeBase):
        pass

    class Order(Base):
        __tablename__ = "orders"
        id: Mapped[int] = mapped_column(primary_key=True)
        article: Mapped[str]

    engine = create_engine(f"sqlite:///{path}")
    Base.metadata.create_all(engine)
    for number in range(4):
        with Session(engine) as session, session.begin():
            session.add(Order(article=f"bolt {number}"))
            app.submit("noop", number, connection=session.connection())
        engine.dispose()
    assert seen_elsewhere(path, "SELECT count(*) FROM orders") == ["4"]
    assert seen_elsewhere(path, READ) == ["4"]
    app.drain()
    assert seen_elsewhere(path, "SELECT count(*) FROM jobs WHERE state = 'succeeded'") == ["4"]
