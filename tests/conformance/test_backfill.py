"""What items copy of their jobs can be written once more, and again without harm."""

from __future__ import annotations

import pytest

from penstock.clock import ManualClock
from penstock.lifecycle.kind import Kind
from penstock.lifecycle.policy import Policy
from penstock.operations import backfill as operation
from penstock.store.engine import Store
from penstock.store.tables import job_items, jobs
from penstock.testing.drive import Workbench


def test_items_take_the_owner_and_the_kind_of_their_jobs(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operation, "_BATCH_SIZE", 2)
    assert isinstance(store.clock, ManualClock)
    bench = Workbench(store, store.clock, [Kind.of("one", lambda item: None, Policy())])
    moved, kept, nobody = (bench.submit("one", items=[1, 2, 3], owner=name).job for name in ("ada", "bob", None))
    with store.engine.begin() as connection:
        connection.execute(jobs.update().where(jobs.c.id == moved.id).values(user_id="eve"))
        connection.execute(job_items.update().where(job_items.c.job_id == nobody.id).values(user_id="who"))
        connection.execute(job_items.update().where(job_items.c.job_id == kept.id).values(kind="other"))
    assert operation.backfill(store) == 9
    with store.engine.connect() as connection:
        found = connection.execute(job_items.select().order_by(job_items.c.id)).all()
    assert [(row.user_id, row.kind) for row in found] == [("eve", "one")] * 3 + [("bob", "one")] * 3 + [
        (None, "one")
    ] * 3
    assert operation.backfill(store) == 0
