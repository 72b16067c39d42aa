"""Revision 0007 on a database that is in service: messages stay, and no number is given twice."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, inspect, text
from sqlalchemy.schema import CreateSchema

from penstock.lifecycle.transport import Message
from penstock.operations import outbox
from penstock.store.engine import Store, open_store
from penstock.store.placement import WITH_PREFIX
from penstock.store.revisions import pending, run_revision
from penstock.store.schema import OURS, migrate
from penstock.store.types import Moment
from penstock.testing.drive import MAX_BYTES

BEFORE = "0006"


@pytest.fixture(params=["sqlite", "sqlite with others", "postgresql"])
def before(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A database at the revision before; one of the files has tables of others beside ours."""
    is_file = request.param != "postgresql"
    store = open_store(f"sqlite:///{tmp_path}/before.db" if is_file else request.getfixturevalue("postgres_url"))
    with store.write_lock, store.engine.connect() as connection, connection.begin():
        if store.placement.schema is not None:
            connection.execute(CreateSchema(store.placement.schema))
        if request.param == "sqlite with others":
            store.place(WITH_PREFIX)
            connection.execute(text("CREATE TABLE outbox (mine INTEGER)"))
        for module in pending(OURS, None):
            if module.revision <= BEFORE:
                run_revision(connection, OURS, module)
    yield store
    store.close()


def old_append(store: Store, connection: Connection, payload: int, **values: Any) -> None:
    """A message as the revision before writes it."""
    moment = Moment().bind_processor(store.engine.dialect)
    now: Any = datetime(2026, 1, 1, tzinfo=UTC)
    now = moment(now) if moment else now
    row = {"topic": "t", "key": "k", "payload": str(payload), "ready_at": now, "created_at": now, **values}
    names = ", ".join(row)
    table = store.placement.table("outbox")
    table = table if store.placement.schema is None else f"{store.placement.schema}.{table}"
    connection.execute(text(f"INSERT INTO {table} ({names}) VALUES ({', '.join(f':{name}' for name in row)})"), row)


def test_messages_stay_and_numbers_go_on(before: Store) -> None:
    with before.engine.begin() as connection:
        for number in range(3):
            old_append(before, connection, number)
    migrate(before)
    with before.engine.begin() as connection:
        old_append(before, connection, 3)  # a program of the revision before goes on beside us
    seen: list[Message] = []
    assert outbox.relay(before, seen.append, topics=["t"]) == 4
    assert [(message.payload, message.key) for message in seen] == [(number, "k") for number in range(4)]
    with before.engine.begin() as connection:
        schema, name = before.placement.schema, before.placement.table("outbox")
        table = name if schema is None else f"{schema}.{name}"
        assert connection.execute(text(f"SELECT id FROM {table} ORDER BY id")).scalars().all() == [1, 2, 3, 4]
        connection.execute(text(f"DELETE FROM {table}"))
    before.write(lambda one: outbox.append(one, "t", 4, key=None, max_bytes=MAX_BYTES))
    outbox.relay(before, seen.append)
    assert len({message.id for message in seen}) == 5
    with before.engine.begin() as connection:
        assert connection.execute(text(f"SELECT id FROM {table}")).scalars().all() == [5]


def test_the_old_index_is_replaced(before: Store) -> None:
    migrate(before)
    name = before.placement.table("outbox")
    found = {one["name"] for one in inspect(before.engine).get_indexes(name, schema=before.placement.schema)}
    expected = ("ix_outbox_unsent", "ix_outbox_unsent_topic", "ix_outbox_unsent_topic_key")
    assert found == {before.placement.index(one) for one in expected}
