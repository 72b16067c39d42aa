"""Whatever statement fails: once the cause is gone the store works again by itself, and nothing is half done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import event

from penstock import Penstock, PenstockError, load_settings
from penstock.errors import StoreUnavailable
from penstock.testing.fault_points import fail_at
from tests.conformance.databases import Database
from tests.conformance.health import is_well

OPERATIONS: dict[str, Callable[[Penstock, UUID], object]] = {
    "submit": lambda app, _: app.submit("noop", {"a": 1}),
    "submit with items": lambda app, _: app.submit("noop", items=[1, 2, 3], unique_key="one"),
    "cancel": lambda app, queued: app.jobs.cancel(queued),
    "publish": lambda app, _: app.messages.publish("news", "all is well"),
    "list": lambda app, _: app.jobs.list(),
    "get": lambda app, queued: app.jobs.get(queued),
    "sweep": lambda app, _: app.system.sweep(),
}


@pytest.fixture
def app(migrated_url: str) -> Iterator[Penstock]:
    """Penstock on each database, with a few jobs, and connections in use."""
    one = Penstock(settings=load_settings(database_url=migrated_url))
    one.kind("noop")(lambda item: None)
    for _ in range(3):
        one.submit("noop")
    one.drain()
    yield one
    one.close()


@pytest.mark.parametrize("name", OPERATIONS)
def test_each_statement_may_fail_and_each_commit(app: Penstock, database: Database, name: str) -> None:
    for number in count():
        queued = app.submit("noop").job.id
        before = app.system.count_jobs()
        told = failure_at(app, database, number, partial(OPERATIONS[name], app, queued))
        if told is None:
            break
        assert told.code == "DATABASE_FULL"
        assert app.system.count_jobs() == before, "nothing is half done"
    assert number >= 1
    is_well(app, database)


def failure_at(
    app: Penstock, database: Database, number: int, operation: Callable[[], object]
) -> StoreUnavailable | None:
    """What is said when this statement fails and all after it; None where there are not so many."""
    try:
        with fail_at(app.store, number, database.full_disk()):
            operation()
    except StoreUnavailable as error:
        return error
    return None


def test_an_interrupt_leaves_no_transaction_behind(app: Penstock, database: Database) -> None:
    def interrupted(_transaction: Any) -> None:
        raise KeyboardInterrupt

    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            app.store.write(interrupted)
        with pytest.raises(KeyboardInterrupt):
            app.store.read(interrupted, single_statement=True)
    is_well(app, database)


def test_what_is_refused_by_us_costs_no_connection(app: Penstock) -> None:
    opened: list[int] = []
    [job, *_] = app.jobs.list()
    for number in range(6):
        if number == 1:  # the first may need one of its own
            event.listen(app.store.engine, "connect", lambda *_: opened.append(1))
        with pytest.raises(PenstockError):
            app.jobs.cancel(job.id)
    assert not opened
