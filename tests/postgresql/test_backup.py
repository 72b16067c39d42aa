"""A backup taken while a worker works, restored into another database: what is promised of it."""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.engine import make_url

from penstock import ItemContext, ItemStatus, Penstock, load_settings
from penstock.testing.invariants import violations
from penstock.testing.postgres import PostgresServer
from penstock.testing.postgres_programs import find_binaries

PATIENCE = 60.0


def describe_shop(app: Penstock, may_end: threading.Event, begun: threading.Event, sent: list[Any]) -> None:
    @app.kind("flow", concurrency=1, retries=3, backoff="1ms fixed")
    def flow(item: ItemContext) -> int:
        if item.position > 3:
            begun.set()
            may_end.wait(PATIENCE)
        return int(item.input)

    app.messages.subscribe("orders")(sent.append)


def run(program: str, *arguments: str) -> None:
    done = subprocess.run([str(find_binaries() / program), *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_backup_of_a_queue_at_work_goes_on_where_it_was(
    postgres_server: PostgresServer, migrated_postgres_url: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    may_end, begun, sent = threading.Event(), threading.Event(), []  # type: ignore[var-annotated]
    settings = {"files_directory": tmp_path / "files", "lock_floor_ms": 500, "flush_ms": 1, "sweep_seconds": 0.1}
    app = Penstock(settings=load_settings(database_url=migrated_postgres_url, **settings))
    describe_shop(app, may_end, begun, sent)
    before = app.submit("flow", items=list(range(6)), owner="ada", idempotency_key="before").job
    dump = tmp_path / "penstock.dump"
    name = f"restored_{make_url(migrated_postgres_url).database}"
    with app.working():
        assert begun.wait(PATIENCE)  # three items are done, and one is in a worker's hands
        libpq = make_url(migrated_postgres_url).set(drivername="postgresql").render_as_string(hide_password=False)
        run("pg_dump", "--format=custom", f"--file={dump}", libpq)
        after = app.submit("flow", items=[1], owner="ada", idempotency_key="after").job
        app.messages.publish("orders", {"number": 7})
        may_end.set()
        assert app.jobs.wait(before.id, timeout=PATIENCE, every=0.05).finished
    app.close()
    postgres_server.create_database(name)
    request.addfinalizer(lambda: postgres_server.drop_database(name))
    run("pg_restore", "--no-owner", f"--dbname={libpq.rpartition('/')[0]}/{name}", str(dump))
    restored = Penstock(settings=load_settings(database_url=postgres_server.url(name), **settings))
    describe_shop(restored, may_end, begun, sent)
    try:
        found = restored.jobs.get(before.id)
        assert not found.finished
        assert len(restored.items.list(before.id, statuses=[ItemStatus.PROCESSING])) >= 1
        assert restored.drain(timeout=PATIENCE)
        assert restored.jobs.get(before.id).progress.done == 6
        assert violations(restored.store) == []
        # What was submitted before is known, and what came after is not: it is made anew.
        assert restored.submit("flow", items=list(range(6)), owner="ada", idempotency_key="before").job.id == before.id
        assert restored.submit("flow", items=[1], owner="ada", idempotency_key="after").job.id != after.id
    finally:
        restored.close()
