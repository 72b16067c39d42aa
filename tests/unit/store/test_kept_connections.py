"""Connections kept for the next transaction."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, Engine, create_engine, text
from sqlalchemy.pool import QueuePool

from penstock.store.kept_connections import KeptConnections


@pytest.fixture
def engine() -> Iterator[Engine]:
    one = create_engine("sqlite://", poolclass=QueuePool, pool_size=4, max_overflow=0)
    yield one
    one.dispose()


def checked_out(engine: Engine) -> int:
    """How many connections are out of the pool."""
    assert isinstance(engine.pool, QueuePool)
    return engine.pool.checkedout()


def test_a_connection_is_kept_and_used_again(engine: Engine) -> None:
    kept = KeptConnections(engine, max_idle=1)
    with kept.lend() as first:
        pass
    with kept.lend() as second:
        assert second is first
    assert checked_out(engine) == 1
    kept.close()
    assert checked_out(engine) == 0


def test_no_more_are_kept_than_allowed(engine: Engine) -> None:
    kept = KeptConnections(engine, max_idle=1, isolation_level="AUTOCOMMIT")
    with kept.lend() as first, kept.lend() as second:
        assert first is not second
        assert first.get_execution_options()["isolation_level"] == "AUTOCOMMIT"
    assert checked_out(engine) == 1
    none = KeptConnections(engine, max_idle=0)
    with none.lend():
        pass
    assert checked_out(engine) == 1
    kept.close()


def test_one_that_cannot_be_used_any_more_is_not_handed_out(engine: Engine) -> None:
    closed: list[Connection] = []
    kept = KeptConnections(engine, max_idle=3, is_usable=lambda one: one not in closed)
    with kept.lend() as first, kept.lend() as second:
        pass
    closed += [first, second]
    with kept.lend() as fresh, fresh.begin():
        assert fresh not in closed
        assert fresh.execute(text("SELECT 1")).scalar() == 1
        fresh.rollback()  # one that is left in a transaction would not be kept
    assert checked_out(engine) == 1
    kept.close()


def test_when_one_is_broken_none_of_the_others_is_trusted(engine: Engine) -> None:
    kept = KeptConnections(engine, max_idle=3)
    with kept.lend(), kept.lend() as broken:
        broken.invalidate()
    assert checked_out(engine) <= 1
    with kept.lend() as fresh:
        assert fresh.execute(text("SELECT 1")).scalar() == 1
    kept.close()
