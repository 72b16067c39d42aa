"""A new job is recorded as it was answered: its title, and an id that its caller chose."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from penstock import Penstock
from penstock.errors import InvalidInput
from penstock.lifecycle.job import SubmitOutcome
from penstock.store.engine import Store
from penstock.testing.drive import Workbench
from tests.on_store import OnStore

pytestmark = pytest.mark.usefixtures("rows_are_true_in_the_end")


@pytest.fixture
def app(store: Store, tmp_path: Path) -> Penstock:
    """A Penstock with two kinds."""
    one = OnStore(store, tmp_path)
    for name in ("table", "charge"):
        one.kind(name)(lambda item: None)
    return one


@pytest.mark.parametrize("kind", ["single", "planned", "finalized"])
@pytest.mark.parametrize("hold", [False, True])
def test_the_job_submit_answers_is_the_job_that_was_recorded(app: Penstock, hold: bool, kind: str) -> None:
    class Finalized:
        def process(self, item: object) -> None: ...

        def finalize(self, job: object) -> None: ...

    class Planned(Finalized):
        def plan(self, job: object) -> None: ...

    app.kind("single")(lambda item: None)
    app.kind("planned")(Planned)
    app.kind("finalized", retries=7)(Finalized)
    answered = app.submit(kind, {"n": 1, "sizes": (1, 2)}, owner="ada", hold=hold, priority=3, title="a\nb").job
    assert answered == app.jobs.get(answered.id)


def test_whoever_follows_has_the_title_they_gave(app: Penstock, bench: Workbench) -> None:
    first = app.submit("table", {}, owner="ann", unique_key="key", title="ann's").job
    follower = app.submit("table", {}, owner="bob", unique_key="key", title="bob's")
    assert (follower.answer, follower.job.title) == (SubmitOutcome.FOLLOWING, "bob's")
    again = app.submit("table", {}, owner="ann", unique_key="key", title="another")
    assert (again.answer, again.job.title) == (SubmitOutcome.EXISTING, "ann's")
    bench.drain("table")
    cached = app.submit("table", {}, owner="cid", unique_key="key", fresh_for="1h", title="cid's")
    assert (cached.answer, cached.job.title) == (SubmitOutcome.CACHED, "cid's")
    assert [app.jobs.get(one.id).title for one in (first, follower.job, cached.job)] == ["ann's", "bob's", "cid's"]


def test_many_at_once_have_none(app: Penstock) -> None:
    assert {app.jobs.get(one).title for one in app.submit_many("table", [1, 2])} == {None}


def ended(app: Penstock, **request: Any) -> Any:
    job = app.submit("charge", 1, **request).job
    assert app.drain(timeout=20)
    return job


class TestJobIds:
    @pytest.mark.parametrize("more", [{}, {"unique_key": "u"}, {"idempotency_key": "i"}, {"fresh_for": 60}])
    def test_one_that_is_taken_is_refused(self, app: Penstock, more: dict[str, Any]) -> None:
        job_id = uuid4()
        app.submit("charge", 1, job_id=job_id)
        if "fresh_for" in more:
            ended(app, owner="bob", unique_key="u")
            more = more | {"unique_key": "u"}
        with pytest.raises(InvalidInput, match=str(job_id)) as refused:
            app.submit("charge", 2, job_id=job_id, **more)
        assert (refused.value.code, refused.value.field) == ("JOB_ID_TAKEN", "job_id")

    def test_who_follows_or_gets_a_copy_has_the_id_they_gave(self, app: Penstock) -> None:
        app.submit("charge", 1, owner="ann", unique_key="u")
        follower, copy = uuid4(), uuid4()
        assert app.submit("charge", 1, owner="bob", unique_key="u", job_id=follower).job.id == follower
        assert app.drain(timeout=20)
        given: dict[str, Any] = {"owner": "cid", "unique_key": "u", "fresh_for": 60, "job_id": copy}
        assert app.submit("charge", 1, **given).job.id == copy
