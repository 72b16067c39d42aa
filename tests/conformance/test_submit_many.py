"""Many jobs that are alike: each is one by itself, in the order they were given."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest

from penstock import Penstock
from penstock.errors import InvalidInput, PayloadNotStorable
from penstock.operations.request import Request
from penstock.operations.submit_many import submit_many
from penstock.testing.drive import MAX_BYTES, Workbench
from penstock.testing.invariants import violations
from tests.conformance.databases import Database
from tests.conformance.steps import write
from tests.on_store import OnStore

pytestmark = pytest.mark.usefixtures("rows_are_true_in_the_end")


def test_several_of_them_at_once_as_well(bench: Workbench) -> None:
    write(bench, submit_many, bench.kinds.get("bulk"), [{"n": 1}, {"n": 2}], Request(), max_bytes=MAX_BYTES)
    assert [one.input for one in bench.claim("bulk")] == [{"n": 1}, {"n": 2}]


def test_submit_many_answers_in_order(bench: Workbench) -> None:
    ids = write(bench, submit_many, bench.kinds.get("single"), [10, 20, 30], Request(owner="ann"), max_bytes=MAX_BYTES)
    assert [bench.job(one).params for one in ids] == [10, 20, 30]
    assert {one.job_id for one in bench.claim("single")} == set(ids)


@pytest.mark.parametrize("request_", [{"unique_key": "u"}, {"idempotency_key": "i"}])
def test_submit_many_has_no_key(bench: Workbench, request_: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="submit those that have one singly"):
        write(bench, submit_many, bench.kinds.get("single"), [1, 2], Request(**request_), max_bytes=MAX_BYTES)
    assert bench.jobs() == []


@pytest.fixture
def shared_app(migrated_url: str) -> Iterator[Penstock]:
    app = Penstock(migrated_url)
    app.kind("mail")(lambda item: 1)
    yield app
    app.close()


def test_a_generator_that_is_needed_twice_loses_nothing(
    database: Database, shared_app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection is lost, or a deadlock met, after some of it has been read: the transaction is run again."""
    tries = []

    def interrupted(transaction: Any, *arguments: Any, **named: Any) -> Any:
        ids = submit_many(transaction, *arguments, **named)
        tries.append(len(ids))
        if len(tries) == 1:
            database.break_off(transaction.connection)
        return ids

    monkeypatch.setattr("penstock.app.bound.submit_many", interrupted)
    ids = shared_app.submit_many("mail", ({"n": n} for n in range(100)))
    assert (tries, len(ids), len(shared_app.jobs.list(limit=200))) == ([100, 100], 100, 100)
    assert violations(shared_app.store) == []


def test_of_many_jobs_the_one_at_fault_is_named_and_none_is_recorded(bench_app: OnStore) -> None:
    bench_app.kind("odd")(lambda item: None)
    with pytest.raises(PayloadNotStorable) as raised:
        bench_app.submit_many("odd", [{"when": None}, {"when": math.nan}])
    assert raised.value.field == "params[1].when"
    assert bench_app.jobs.list() == []
