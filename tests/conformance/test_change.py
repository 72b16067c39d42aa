"""A change of state is told in the log once it is written, with who made it and why; one that was undone is not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from structlog.testing import capture_logs

from penstock import ItemContext, Penstock, Retryable, load_settings, owner

PATIENCE = 60.0


class Broken(Exception):
    """Something else in the caller's transaction went wrong."""


@pytest.fixture
def app(migrated_url: str) -> Iterator[Penstock]:
    one = Penstock(settings=load_settings(database_url=migrated_url))

    @one.kind("flaky", retries=1, backoff="1ms fixed")
    def flaky(item: ItemContext) -> None:
        raise Retryable("the shop is closed", code="SHOP_CLOSED")

    yield one
    one.close()


def test_what_people_and_workers_did_is_told(app: Penstock) -> None:
    with capture_logs() as lines:
        job = app.submit("flaky", owner="ada").job
        app.acting_as(owner("ada")).jobs.pause(job.id, reason="not yet")
        app.acting_as(owner("ada")).jobs.resume(job.id)
        assert app.drain(timeout=PATIENCE)
    told = {(one["event"], one["log_level"]): one for one in lines}
    started = told["start: running", "info"]
    assert (started["first"], started["jobs"], started["kind"]) == (str(job.id), 1, "flaky")
    assert ("requeue: queued", "info") in told
    paused = told["pause: paused", "info"]
    assert (paused["first"], paused["by"], paused["reason"]) == (str(job.id), "ada", "not yet")
    assert told["fail: failed", "error"]["reason"] == "the shop is closed"
    again, over = told["an item is tried again", "debug"], told["an item ended badly", "debug"]
    assert (again["code"], again["status"], over["status"]) == ("SHOP_CLOSED", "PENDING", "ERROR")
    assert sum(one["items"] for one in lines if one["event"] == "a slice is recorded") == 2


def test_what_was_taken_back_is_not_told(app: Penstock) -> None:
    job = app.submit("flaky", owner="ada").job

    def canceled_and_broken(connection: Any) -> None:
        app.acting_as(owner("ada")).jobs.cancel(job.id, connection=connection)
        raise Broken

    with capture_logs() as lines:
        with pytest.raises(Broken):
            app.in_transaction(canceled_and_broken)
        assert [one for one in lines if one["event"].startswith("cancel")] == []
        app.in_transaction(lambda connection: app.acting_as(owner("ada")).jobs.cancel(job.id, connection=connection))
    assert [one["by"] for one in lines if one["event"] == "cancel: canceled"] == ["ada"]
