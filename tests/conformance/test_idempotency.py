"""A request that is sent again gives the same job, whatever the first answer was; another under its key is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import update

from penstock import SYSTEM, Penstock, owner
from penstock.errors import InvalidInput
from penstock.lifecycle.job import SubmitOutcome
from penstock.store.engine import Store
from penstock.store.tables import jobs
from penstock.testing.drive import Workbench
from tests.on_store import OnStore

pytestmark = pytest.mark.usefixtures("rows_are_true_in_the_end")


def test_the_same_key_is_the_same_job(bench: Workbench) -> None:
    first = bench.submit("single", {"n": 1}, owner="ann", idempotency_key="i")
    again = bench.submit("single", {"n": 1}, owner="ann", idempotency_key="i")
    assert (again.job.id, again.answer) == (first.job.id, SubmitOutcome.EXISTING)
    bench.drive_to_end()
    assert bench.submit("single", {"n": 1}, owner="ann", idempotency_key="i").job.id == first.job.id
    assert len(bench.jobs()) == 1


def test_each_owner_has_keys_of_their_own(bench: Workbench) -> None:
    ids = {bench.submit("single", owner=who, idempotency_key="i").job.id for who in ("ann", "bob", None)}
    assert len(ids) == 3


def test_the_key_of_another_kind_is_refused(bench: Workbench) -> None:
    bench.submit("single", owner="ann", idempotency_key="i")
    with pytest.raises(InvalidInput, match="was used for another request") as refused:
        bench.submit("bulk", owner="ann", idempotency_key="i", items=[1])
    assert refused.value.code == "IDEMPOTENCY_KEY_REUSED"


def test_a_follower_is_found_again(bench: Workbench) -> None:
    bench.submit("single", owner="ann", unique_key="u")
    first = bench.submit("single", owner="bob", unique_key="u", idempotency_key="i")
    bench.drive_to_end()
    again = bench.submit("single", owner="bob", unique_key="u", idempotency_key="i")
    assert (first.answer, again.answer, again.job.id) == (
        SubmitOutcome.FOLLOWING,
        SubmitOutcome.EXISTING,
        first.job.id,
    )


@pytest.fixture
def app(store: Store, tmp_path: Path) -> Penstock:
    app = OnStore(store, tmp_path / "files")
    app.kind("charge")(lambda item: "charged")
    return app


def ended(app: Penstock, **request: Any) -> Any:
    job = app.submit("charge", 1, **request).job
    assert app.drain(timeout=20)
    return job


class TestEveryAnswer:
    def test_an_existing_job(self, app: Penstock) -> None:
        asked: dict[str, Any] = {"owner": "ann", "unique_key": "order"}
        first = app.submit("charge", 1, **asked)
        second = app.submit("charge", 1, **asked, idempotency_key="tab-2")
        assert (second.answer, second.job.id) == (SubmitOutcome.EXISTING, first.job.id)
        assert app.drain(timeout=20)
        again = app.submit("charge", 1, **asked, idempotency_key="tab-2")
        assert (again.answer, again.job.id) == (SubmitOutcome.EXISTING, first.job.id)

    @pytest.mark.parametrize("who", ["ann", "bob"])
    def test_a_cached_one(self, app: Penstock, who: str) -> None:
        asked: dict[str, Any] = {"owner": who, "unique_key": "order", "idempotency_key": "tab"}
        ended(app, owner="ann", unique_key="order")
        first = app.submit("charge", 1, **asked, fresh_for=3600)
        again = app.submit("charge", 1, **asked)
        assert (first.answer, again.answer, again.job.id) == (
            SubmitOutcome.CACHED,
            SubmitOutcome.EXISTING,
            first.job.id,
        )

    def test_one_that_follows(self, app: Penstock) -> None:
        app.submit("charge", 1, owner="ann", unique_key="order")
        first = app.submit("charge", 1, owner="bob", unique_key="order", idempotency_key="tab")
        again = app.submit("charge", 1, owner="bob", unique_key="order", idempotency_key="tab")
        assert (first.answer, again.job.id) == (SubmitOutcome.FOLLOWING, first.job.id)

    def test_a_key_of_a_request_that_was_rolled_back_is_free(self, app: Penstock) -> None:
        class Changed(Exception):
            pass

        def operation(connection: Any) -> None:
            app.submit("charge", 1, owner="ann", idempotency_key="tab", connection=connection)
            raise Changed

        with pytest.raises(Changed):
            app.in_transaction(operation)
        assert app.submit("charge", 2, owner="ann", idempotency_key="tab").answer is SubmitOutcome.NEW


class TestAnotherRequest:
    @pytest.mark.parametrize(
        "other",
        [{"params": 2}, {"kind": "other"}, {"items": [1]}, {"unique_key": "u"}, {"file": "other bytes"}],
        ids=["params", "kind", "items", "unique_key", "file"],
    )
    def test_is_refused(self, app: Penstock, other: dict[str, Any]) -> None:
        app.kind("other")(lambda item: None)
        if "file" in other:
            other = {"file": self.kept(app, b"other bytes")}
        asked: dict[str, Any] = {"kind": "charge", "params": 1, "owner": "ann", "idempotency_key": "tab"}
        first = app.submit(**asked, file=self.kept(app, b"bytes") if "file" in other else None)
        with pytest.raises(InvalidInput) as refused:
            app.submit(**asked | other)
        assert (refused.value.code, refused.value.field) == ("IDEMPOTENCY_KEY_REUSED", "idempotency_key")
        assert [job.id for job in app.jobs.list(limit=10)] == [first.job.id]

    def test_the_same_in_another_order_is_the_same(self, app: Penstock) -> None:
        first = app.submit("charge", {"a": 1, "b": [2]}, owner="ann", idempotency_key="tab", title="first")
        again = app.submit("charge", {"b": [2], "a": 1}, owner="ann", idempotency_key="tab", priority=3)
        assert again.job.id == first.job.id

    def test_the_same_bytes_kept_again_are_the_same(self, app: Penstock) -> None:
        asked: dict[str, Any] = {"owner": "ann", "idempotency_key": "tab"}
        first = app.submit("charge", 1, file=self.kept(app, b"bytes"), **asked)
        assert app.submit("charge", 1, file=self.kept(app, b"bytes"), **asked).job.id == first.job.id

    def test_a_fingerprint_says_what_the_client_said(self, app: Penstock) -> None:
        asked: dict[str, Any] = {"owner": "ann", "idempotency_key": "tab"}
        first = app.submit("charge", {"id": 1}, fingerprint={"url": "x"}, **asked)
        assert app.submit("charge", {"id": 2}, fingerprint={"url": "x"}, **asked).job.id == first.job.id
        with pytest.raises(InvalidInput, match="another request"):
            app.submit("charge", {"id": 2}, fingerprint={"url": "y"}, **asked)

    def kept(self, app: Penstock, data: bytes) -> Any:
        import io

        return app.files.keep(io.BytesIO(data), name="a", owner="ann")


class TestWhose:
    def test_guests_are_told_apart_by_their_address(self, app: Penstock) -> None:
        first = app.submit("charge", 1, ip_address="10.0.0.1", idempotency_key="tab")
        other = app.submit("charge", 2, ip_address="10.0.0.2", idempotency_key="tab")
        assert (other.answer, other.job.id != first.job.id) == (SubmitOutcome.NEW, True)
        assert app.submit("charge", 1, ip_address="10.0.0.1", idempotency_key="tab").job.id == first.job.id

    def test_an_owner_is_the_same_from_any_address(self, app: Penstock) -> None:
        first = app.submit("charge", 1, owner="ann", ip_address="10.0.0.1", idempotency_key="tab")
        assert app.submit("charge", 1, owner="ann", ip_address="10.0.0.2", idempotency_key="tab").job.id == first.job.id


class TestTakenBeforehand:
    def test_a_key_may_be_taken_before_the_job_is_made(self, app: Penstock) -> None:
        asked: dict[str, Any] = {"owner": "ann"}
        assert app.acting_as(SYSTEM).take_key("tab", "said", **asked) is None
        assert app.acting_as(SYSTEM).take_key("tab", "said", **asked) is None
        job = app.submit("charge", 1, fingerprint="said", idempotency_key="tab", **asked).job
        assert app.acting_as(SYSTEM).take_key("tab", "said", **asked) == job.id
        with pytest.raises(InvalidInput, match="another request"):
            app.acting_as(SYSTEM).take_key("tab", "said otherwise", **asked)

    def test_a_key_may_lead_to_something_that_an_application_keeps(self, app: Penstock) -> None:
        made = uuid4()
        assert app.acting_as(owner("ann")).take_key("tab", "said", resource_id=made) is None
        assert app.acting_as(owner("ann")).take_key("tab", "said", resource_id=uuid4()) == made


def test_a_key_of_the_version_before_is_found(app: Penstock, bench: Workbench) -> None:
    """Its programs, beside ours, write the key with the job."""
    from penstock.operations.idempotency import Key

    job = app.submit("charge", 1, owner="ann").job
    digest = Key.of("tab", None, owner="ann", guest=None).digest
    with bench.store.engine.begin() as connection:
        connection.execute(update(jobs).where(jobs.c.id == job.id).values(idempotency_key=digest))
    again = app.submit("charge", 1, owner="ann", idempotency_key="tab")
    assert (again.answer, again.job.id) == (SubmitOutcome.EXISTING, job.id)
