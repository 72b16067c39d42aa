"""Revision 0006 on a database that is in service: keys are brought over, and programs of the revision before go on."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import inspect, text
from sqlalchemy.schema import CreateSchema

from penstock import Penstock
from penstock.lifecycle.job import SubmitOutcome
from penstock.operations.idempotency import Key
from penstock.store.engine import Store, open_store
from penstock.store.revisions import pending, run_revision
from penstock.store.schema import OURS, migrate
from penstock.store.types import Identifier, Moment

BEFORE = "0004"


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/before.db"
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def before(url: str) -> Iterator[Store]:
    store = open_store(url)
    with store.write_lock, store.engine.connect() as connection, connection.begin():
        if store.placement.schema is not None:
            connection.execute(CreateSchema(store.placement.schema))
        for module in pending(OURS, None):
            if module.revision <= BEFORE:
                run_revision(connection, OURS, module)
    yield store
    store.close()


def old_submit(store: Store, **values: Any) -> Any:
    """A job as the revision before records it."""
    job_id, now = uuid4(), datetime.now(UTC)
    moment = Moment().bind_processor(store.engine.dialect)
    identifier = Identifier().dialect_impl(store.engine.dialect).bind_processor(store.engine.dialect)
    row = {
        "id": identifier(job_id) if identifier else job_id,
        "created_at": moment(now) if moment else now,
        "updated_at": moment(now) if moment else now,
        "kind": "mail",
        "user_id": "ann",
        "state": "queued",
        **values,
    }
    names = ", ".join(row)
    table = "jobs" if store.placement.schema is None else f"{store.placement.schema}.jobs"
    with store.engine.begin() as connection:
        connection.execute(text(f"INSERT INTO {table} ({names}) VALUES ({', '.join(f':{name}' for name in row)})"), row)
    return job_id


def test_keys_are_brought_over_and_those_written_later_are_found(before: Store, url: str) -> None:
    digests = {name: Key.of(name, None, owner="ann", guest=None).digest for name in ("early", "late")}
    ids = {"early": old_submit(before, idempotency_key=digests["early"])}
    migrate(before)
    ids["late"] = old_submit(before, idempotency_key=digests["late"])
    app = Penstock(url)
    app.kind("mail")(lambda item: 1)
    for name, job_id in ids.items():
        again = app.submit("mail", 1, owner="ann", idempotency_key=name)
        assert (again.answer, again.job.id) == (SubmitOutcome.EXISTING, job_id)
    app.close()


def test_the_rows_that_are_there_fit(before: Store) -> None:
    for number, state in enumerate(("created", "queued", "running", "retrying", "paused")):
        old_submit(before, state=state, unique_key=f"u{number}")
    old_submit(before, unique_key="guest", user_id=None)
    migrate(before)
    there = {one["name"] for one in inspect(before.engine).get_indexes("jobs", schema=before.placement.schema)}
    assert {"uq_jobs_leads", "uq_jobs_owned", "uq_jobs_guests"} <= there
    assert "uq_jobs_active" not in there
