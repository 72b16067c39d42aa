"""What an answer costs: a status is one statement, and a grid reads its job once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from uuid import UUID

import pytest

from penstock import ItemContext, Penstock, Permanent
from penstock.store.observation import observed
from tests.http.conftest import Served

PATIENCE = 30.0
Serve = Callable[..., Served]


@contextmanager
def statements(app: Penstock) -> Iterator[list[str]]:
    """The names of the statements that a store runs."""
    names: list[str] = []
    with observed(app.store, lambda name, connection: names.append(name)):
        yield names


@pytest.fixture
def broken(app: Penstock) -> UUID:
    """A job that ended with some failed items, and whose finalizer failed too."""

    @app.kind("broken", reprocess=True)
    class Broken:
        def process(self, item: ItemContext) -> None:
            raise Permanent("no", code="NO")

        def finalize(self, job: object) -> None:
            raise ValueError("not even that")

    job = app.submit("broken", {}, items=[{}, {}], owner="ada").job
    assert app.drain(timeout=PATIENCE)
    return job.id


@pytest.mark.parametrize("admin", [False, True])
def test_a_status_is_one_statement(app: Penstock, serve: Serve, broken: UUID, admin: bool) -> None:
    client = serve(worker=False).client("root" if admin else "ada", admin=admin)
    with statements(app) as names:
        answer = client.get(f"/api/jobs/{broken}").json()
    assert names == ["read_job_report"]
    assert (answer["state"], answer["failed_items"], len(answer["error_details"])) == ("failed", 2, 2)
    assert [item["position"] for item in answer["error_details"]] == [1, 2]
    assert answer["progress_at_failure"]["processed"] == 2
    assert (answer["stack_trace"] is not None) == admin


def test_the_status_of_a_waiting_job_is_one_statement_too(app: Penstock, serve: Serve) -> None:
    app.kind("held")(lambda item: None)
    job = app.submit("held", {}, owner="ada").job
    client = serve(worker=False).client()
    with statements(app) as names:
        assert client.get(f"/api/jobs/{job.id}").json()["status"] == "queued"
    assert names == ["read_job_report"]


@pytest.mark.parametrize(
    ("query", "pages"),
    [("", ["page_by_position"]), ("?page=2&pageSize=1", ["page_by_position"]), ("?status=ERROR", ["page_by_change"])],
)
def test_a_grid_reads_its_job_once(app: Penstock, serve: Serve, broken: UUID, query: str, pages: list[str]) -> None:
    client = serve(worker=False).client()
    with statements(app) as names:
        assert client.get(f"/api/jobs/{broken}/items{query}").status_code == 200
    assert names == ["job_by_id", *pages]


def test_a_numbered_page_by_last_change_walks_without_reading_the_job_again(
    app: Penstock, serve: Serve, broken: UUID
) -> None:
    client = serve(worker=False).client()
    with statements(app) as names:
        page = client.get(f"/api/jobs/{broken}/items?status=ERROR&page=2&pageSize=1").json()
    assert names == ["job_by_id", "page_by_change", "page_by_change"]
    assert len(page["items"]) == 1


def test_events_read_the_job_and_its_history_once_for_each_change(app: Penstock, serve: Serve, broken: UUID) -> None:
    client = serve(worker=False).client()
    with statements(app) as names:
        text = client.get(f"/api/jobs/{broken}/events").text
    assert text.count("event: progress") == 1
    assert [name for name in names if name != "marks_of"] == ["job_by_id", "read_job_report", "history_of"]
