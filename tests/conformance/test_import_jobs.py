"""Jobs that are over in another system keep their ids, their times and what came of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from penstock import JobState, Penstock
from penstock.app import PastJob
from penstock.errors import InvalidInput
from tests.on_store import OnStore

pytestmark = pytest.mark.usefixtures("rows_are_true_in_the_end")
BEGAN = datetime(2020, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def app(bench_app: OnStore) -> Penstock:
    bench_app.kind("charge", abandon_after="1h")(lambda item: None)
    return bench_app


@pytest.mark.parametrize(
    ("state", "way"),
    [
        (JobState.SUCCEEDED, ["queued", "running", "succeeded"]),
        (JobState.FAILED, ["queued", "running", "failed"]),
        (JobState.CANCELED, ["queued", "canceled"]),
        (JobState.COMMITTED, ["queued", "running", "succeeded", "committed"]),
        (JobState.ABANDONED, ["queued", "running", "succeeded", "abandoned"]),
    ],
)
def test_it_is_as_it_was_there(app: Penstock, state: JobState, way: list[str]) -> None:
    past = PastJob(
        uuid4(),
        state,
        owner="ann",
        params={"n": 1},
        created_at=BEGAN,
        started_at=BEGAN + MINUTE,
        completed_at=BEGAN + 2 * MINUTE,
        decided_at=BEGAN + 3 * MINUTE,
        error="it broke",
        error_code="BROKEN",
    )
    assert app.system.import_jobs("charge", [past]) == 1
    job, history = app.jobs.get(past.id), app.jobs.history(past.id)
    assert (job.state, job.user_id, job.params, job.created_at) == (state, "ann", {"n": 1}, BEGAN)
    assert [line.to_state.value for line in history] == way
    assert history[0].at == BEGAN
    assert [line.at for line in history] == sorted(line.at for line in history)
    assert (job.last_error, job.error_code) == (("it broke", "BROKEN") if state is JobState.FAILED else (None, None))


def test_again_it_is_left_as_it_is(app: Penstock) -> None:
    past = PastJob(uuid4(), JobState.SUCCEEDED, None, None, BEGAN, result={"n": 1})
    assert [app.system.import_jobs("charge", [past, past]), app.system.import_jobs("charge", [past])] == [1, 0]
    assert app.jobs.get(past.id).result == {"n": 1}


def test_what_is_not_over_is_refused() -> None:
    with pytest.raises(InvalidInput, match="only finished jobs") as refused:
        PastJob(uuid4(), JobState.RUNNING, None, None, BEGAN)
    assert refused.value.field == "state"
