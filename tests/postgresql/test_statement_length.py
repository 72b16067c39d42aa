"""The longest statement is one that the driver remembers: psycopg takes a longer one apart each time it is run."""

from __future__ import annotations

from typing import Any

import pytest
from psycopg._queries import MAX_CACHED_STATEMENT_LENGTH
from sqlalchemy import event

from penstock import Penstock, load_settings
from penstock.operations.claim import claim


@pytest.mark.parametrize("schema", ["penstock", "a_schema_with_a_rather_long_name"])
def test_a_claim_is_remembered_by_the_driver(postgres_url: str, schema: str) -> None:
    app = Penstock(settings=load_settings(database_url=postgres_url, database_schema=schema))
    app.system.migrate()
    app.kind("single")(lambda item: None)
    app.submit("single")
    texts: list[str] = []

    @event.listens_for(app.store.engine, "before_cursor_execute")
    def listen(_connection: Any, _cursor: Any, text: str, *_: Any) -> None:
        texts.append(text)

    assert len(claim(app.store, "single", "w1", size=1, lease_seconds=30.0).items) == 1
    lengths = {text.partition("\n")[0]: len(text) for text in texts}
    assert "WITH due AS " in lengths, "it was one statement"
    assert max(lengths.values()) <= MAX_CACHED_STATEMENT_LENGTH, lengths
    app.close()
