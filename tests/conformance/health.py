"""Is all well again after a failure?"""

from __future__ import annotations

from sqlalchemy import create_engine, text
from sqlalchemy.pool import QueuePool

from penstock import Penstock
from penstock.testing.invariants import violations
from tests.conformance.databases import Database


def is_well(app: Penstock, database: Database) -> None:
    """Everything works, no connection is lost, and nobody keeps a lock."""
    accepted = app.submit("noop").job.id
    app.drain()
    assert app.jobs.get(accepted).state.value == "succeeded"
    assert violations(app.store) == []
    app.store.rest()
    assert isinstance(app.store.engine.pool, QueuePool)
    assert app.store.engine.pool.checkedout() == 0
    other = create_engine(app.store.engine.url, connect_args=dict(database.at_once))
    placement = app.store.placement
    outbox = ".".join(part for part in (placement.schema, placement.table("outbox")) if part)
    with other.begin() as connection:
        connection.execute(text(f"DELETE FROM {outbox}"))
    other.dispose()
