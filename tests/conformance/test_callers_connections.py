"""Connections that may not carry our statements are refused in plain words, before anything is done."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils.connection import ConnectionProxy
from sqlalchemy import create_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from penstock import Penstock, load_settings
from tests.conformance.refusals import refused


@pytest.fixture
def app(migrated_url: str) -> Any:
    """Penstock on each database."""
    one = Penstock(settings=load_settings(database_url=migrated_url))
    one.kind("noop")(lambda item: None)
    yield one
    one.close()


def test_the_users_own_engine_is_welcome(app: Penstock, migrated_url: str) -> None:
    engine = create_engine(migrated_url)
    with engine.begin() as connection:
        app.submit("noop", connection=connection)
    with Session(engine) as session, session.begin():
        app.submit("noop", connection=session.connection())
    engine.dispose()
    assert len(app.jobs.list()) == 2


def test_a_session_is_as_good_as_its_connection(app: Penstock, migrated_url: str) -> None:
    engine = create_engine(migrated_url)
    with Session(engine) as session, session.begin():
        kept = app.submit("noop", connection=session).job
        app.messages.publish("news", 1, connection=session)
        app.jobs.cancel(kept.id, reason="in the same transaction", connection=session)
    with Session(engine) as session:
        app.submit("noop", connection=session)
        session.rollback()
    registry = scoped_session(sessionmaker(engine))
    with registry.begin():
        app.submit_many("noop", [1, 2], connection=registry)
    registry.remove()
    engine.dispose()
    assert len(app.jobs.list()) == 3
    assert app.jobs.get(kept.id).killed_reason == "in the same transaction"
    assert app.messages.backlog().waiting == 1


def test_a_session_without_an_engine_of_its_own(app: Penstock) -> None:
    with Session() as session:
        assert "several engines, or none" in refused(app, session)


def test_a_connection_of_django(app: Penstock) -> None:
    from django.db.backends.dummy.base import DatabaseWrapper
    from django.db.utils import ConnectionHandler

    wrapper = DatabaseWrapper({"NAME": "shop"})
    assert "transaction.on_commit(lambda: app.submit(…))" in refused(app, wrapper)
    # What people import is a proxy: ``from django.db import connection``.
    handler = ConnectionHandler({"default": {"ENGINE": "django.db.backends.dummy"}})
    assert "transaction.on_commit" in refused(app, ConnectionProxy(handler, "default"))


def test_what_is_no_connection_of_sqlalchemy(app: Penstock) -> None:
    assert "not a sqlalchemy.engine.base.Engine" in refused(app, app.store.engine)
