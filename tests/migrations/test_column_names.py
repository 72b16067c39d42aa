"""Revision 0008 renames columns that workers use: it waits for stopped workers, and changes nothing but names."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import insert, inspect
from sqlalchemy.schema import CreateSchema

from penstock import Penstock
from penstock.errors import ConfigurationError
from penstock.store.engine import Store, open_store
from penstock.store.revisions import current_version, pending, run_revision
from penstock.store.schema import OURS, current_revision, migrate
from penstock.store.tables import workers

OLD = {"turn_at", "claimed_to", "open_to", "followed", "finalizes"}
NEW = {"next_claim_at", "last_claimed", "last_claimable", "has_followers", "has_finalizer"}


@pytest.fixture(params=["sqlite", "postgresql"])
def before(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A database of the revision before."""
    url = f"sqlite:///{tmp_path}/before.db" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    store = open_store(url)
    with store.write_lock, store.engine.connect() as connection, connection.begin():
        if store.placement.schema is not None:
            connection.execute(CreateSchema(store.placement.schema))
        for module in pending(OURS, None):
            if module.revision < "0008":
                run_revision(connection, OURS, module)
    yield store
    store.close()


def columns(store: Store) -> set[str]:
    found = inspect(store.engine).get_columns("jobs", schema=store.placement.schema)
    return {one["name"] for one in found}


def indexed(store: Store) -> dict[str | None, object]:
    found = inspect(store.engine).get_indexes("jobs", schema=store.placement.schema)
    return {one["name"]: one["column_names"] for one in found}


def seen(store: Store, name: str, ago: timedelta) -> None:
    moment = datetime.now(UTC) - ago
    values = {"name": name, "started_at": moment, "seen_at": moment, "data": {}}
    with store.write_lock, store.engine.begin() as connection:
        connection.execute(insert(workers).values(values))


def test_a_worker_that_is_there_is_named_and_nothing_has_changed(before: Store) -> None:
    seen(before, "shop-1", timedelta(seconds=5))
    with pytest.raises(ConfigurationError, match=r"needs stopped workers; these are at work: shop-1 \(seen") as refused:
        migrate(before)
    assert refused.value.code == "SCHEMA_IN_USE"
    assert current_revision(before) == "0007"
    assert columns(before) >= OLD
    assert not columns(before) & NEW


def test_one_that_is_gone_is_not_waited_for(before: Store) -> None:
    seen(before, "gone", timedelta(minutes=1))
    migrate(before)
    assert columns(before) >= NEW
    assert not columns(before) & OLD


def test_indexes_follow_and_programs_of_before_are_refused(before: Store) -> None:
    old = indexed(before)
    migrate(before)
    new = indexed(before)
    later = {"ix_jobs_tracked", "ix_jobs_run_at", "ix_jobs_done"}  # which replaces ix_jobs_completed_at
    assert old.keys() - new.keys() == {"ix_jobs_turn", "ix_jobs_completed_at"}
    assert later < new.keys() - old.keys()
    assert "ix_jobs_next_claim" in new.keys() - old.keys()
    assert "next_claim_at" in str(new["ix_jobs_next_claim"])
    with before.engine.connect() as connection:
        version = current_version(connection, OURS)
    assert version is not None
    assert version.compatible_from == "0008"


def test_a_job_is_done_there(before: Store) -> None:
    migrate(before)
    app = Penstock(before.engine.url.render_as_string(hide_password=False))
    app.kind("greet")(lambda item: f"hello {item.input}")
    job = app.submit("greet", "Ada").job
    assert app.drain()
    assert app.jobs.get(job.id).result == "hello Ada"
    app.close()
