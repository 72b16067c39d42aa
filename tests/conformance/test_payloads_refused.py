"""What cannot be kept is refused, and the place is named: in a result, a plan, a finalize step, a name."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from penstock import ItemContext, JobContext, JobState, Penstock, Planned
from penstock.app import PastJob
from penstock.errors import InvalidInput, PayloadTooLarge
from penstock.lifecycle import storable_text, storable_texts
from penstock.lifecycle.states import ItemStatus
from penstock.store.engine import Store
from penstock.testing.drive import MAX_BYTES, Workbench
from tests.conformance.payload_values import ID
from tests.on_store import OnStore

PATIENCE = 60.0


class Odd:
    """A kind whose results, plan and finalize are what its params say."""

    def plan(self, job: JobContext) -> Any:
        yield from range(4)
        if job.params == "plan":
            yield {"price": [math.nan]}
        if job.params == "normalized":
            yield Planned(5, {"text": "\0"})

    def process(self, item: ItemContext) -> Any:
        return {"n": item.input, "bytes": b"\xff"} if item.input == 2 and item.params == "process" else item.input

    def finalize(self, job: JobContext) -> Any:
        return {"of": {1, 2}} if job.params == "finalize" else "well"


def odd_job(store: Store, folder: Path, params: str) -> tuple[Penstock, Any]:
    """A job of that kind that has run."""
    app = OnStore(store, folder)
    app.kind("odd", retries=3)(Odd)
    job = app.submit("odd", params).job
    assert app.drain(timeout=PATIENCE)
    return app, app.jobs.get(job.id)


def test_a_refused_result_is_the_end_of_that_item_alone(store: Store, tmp_path: Path) -> None:
    app, job = odd_job(store, tmp_path, "process")
    assert (job.state, job.result, job.progress.failed, job.progress.done) == (JobState.SUCCEEDED, "well", 1, 3)
    [bad] = app.items.list(job.id, statuses=[ItemStatus.ERROR])
    assert (bad.position, bad.attempts, bad.error_code) == (3, 1, "PAYLOAD_NOT_STORABLE")
    assert bad.last_error is not None
    assert bad.last_error.startswith("result.bytes cannot be kept: it is of type bytes")


@pytest.mark.parametrize(
    ("params", "path"), [("plan", "item 5: items[4].price[0] cannot"), ("normalized", "item 5: items[4].normalized.te")]
)
def test_a_refused_value_ends_a_plan_and_names_the_position(
    store: Store, tmp_path: Path, params: str, path: str
) -> None:
    _, job = odd_job(store, tmp_path, params)
    assert (job.state, job.error_code) == (JobState.FAILED, "PAYLOAD_NOT_STORABLE")
    assert job.last_error.startswith(path)


def test_a_refused_result_of_finalize_fails_the_job_at_once(store: Store, tmp_path: Path) -> None:
    _, job = odd_job(store, tmp_path, "finalize")
    assert (job.state, job.error_code, job.progress.done) == (JobState.FAILED, "PAYLOAD_NOT_STORABLE", 4)
    assert job.last_error.startswith("result.of cannot be kept: it is of type set")


def test_names_that_are_looked_up_again_are_refused_and_not_changed(store: Store, tmp_path: Path) -> None:
    app = OnStore(store, tmp_path)
    app.kind("odd")(Odd)
    for bad in ("a\0b", "a\ud800b"):
        for name in ("owner", "unique_key", "idempotency_key", "ip_address"):
            with pytest.raises(InvalidInput) as raised:
                app.submit("odd", **{name: bad})  # type: ignore[arg-type]  # of four names, all texts
            assert raised.value.field == name
        with pytest.raises(InvalidInput, match="topic has"):
            app.messages.publish(bad, 1)
        with pytest.raises(InvalidInput, match="key has"):
            app.messages.publish("topic", 1, key=bad)
        with pytest.raises(InvalidInput, match="owner has"):
            PastJob(ID, JobState.SUCCEEDED, bad, None, datetime.now(UTC))
        past = PastJob(ID, JobState.FAILED, None, None, datetime.now(UTC), error=bad, error_code=bad)
        app.system.import_jobs("odd", [past])
        assert app.jobs.get(ID).error_code == "a\ufffdb"
        job = app.submit("odd", title=bad, hold=True).job
        assert app.jobs.get(job.id).title in ("a b", "a\ufffdb")


def test_what_is_too_large_is_refused_with_both_sizes(bench: Workbench) -> None:
    with pytest.raises(PayloadTooLarge, match=r"params takes 1,000,002 bytes as JSON; at most 1,000,000 are kept"):
        bench.submit("single", "x" * MAX_BYTES)
    assert bench.submit("single", "x" * (MAX_BYTES - 2)).job.params == "x" * (MAX_BYTES - 2)


def test_foreign_text_can_be_cleaned_before() -> None:
    foreign = {"a\0": ["b\ud800", ("c", 1, None)]}
    assert storable_texts(foreign) == {"a\ufffd": ["b\ufffd", ["c", 1, None]]}
    assert storable_text("\0a\udfff") == "\ufffda\ufffd"
