"""What an answer costs, and that it is of one moment: a status is one statement, and a grid reads its job once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from uuid import UUID

import pytest

from penstock import ItemContext, Penstock, Permanent
from penstock.store.observation import observe
from tests.http.conftest import Served

PATIENCE = 30.0
Serve = Callable[..., Served]


@contextmanager
def statements(app: Penstock) -> Iterator[list[str]]:
    """The names of the statements that a store runs."""
    names: list[str] = []
    with observe(app.store, lambda name, connection: names.append(name)):
        yield names


@pytest.fixture
def broken(app: Penstock) -> UUID:
    """A job that ended with some failed items, and whose finalizer failed too."""

    @app.kind("broken", retries=0, reprocess=True)
    class Broken:
        def process(self, item: ItemContext) -> None:
            raise Permanent("no", code="NO")

        def finalize(self, job: object) -> None:
            raise ValueError("not even that")

    job = app.submit("broken", {}, items=[{}, {}], owner="ada").job
    assert app.drain(timeout=PATIENCE)
    return job.id


@pytest.mark.parametrize("admin", [False, True])
def test_all_that_is_told_of_an_end_is_one_statement(app: Penstock, serve: Serve, broken: UUID, admin: bool) -> None:
    """The first one says that there is more to tell; the answer is made of the second alone."""
    client = serve(worker=False).client("root" if admin else "ada", admin=admin)
    with statements(app) as names:
        answer = client.get(f"/api/jobs/{broken}").json()
    assert names == ["job_by_id", "read_job_report"]
    assert (answer["state"], answer["failed_items"], len(answer["error_details"])) == ("failed", 2, 2)
    assert [item["position"] for item in answer["error_details"]] == [1, 2]
    assert answer["progress_at_failure"]["processed"] == 2
    assert (answer["stack_trace"] is not None) == admin


def test_the_status_of_any_other_job_is_one_statement(app: Penstock, serve: Serve) -> None:
    app.kind("held", abandon_after="3h")(lambda item: 1)
    client = serve(worker=False).client()
    job = app.submit("held", {}, owner="ada").job
    for status, expire in (("queued", False), ("completed", True)):
        with statements(app) as names:
            answer = client.get(f"/api/jobs/{job.id}").json()
        assert (answer["status"], answer["expires_at"] is not None) == (status, expire)
        assert names == ["job_by_id"]
        assert app.drain(timeout=PATIENCE)


def test_a_change_answers_with_what_it_made_of_the_job(app: Penstock, serve: Serve) -> None:
    app.kind("held")(lambda item: None)
    job = app.submit("held", {}, owner="ada").job
    client = serve(worker=False).client()
    with statements(app) as names:
        assert client.post(f"/api/jobs/{job.id}/pause").json()["queue_state"] == "PAUSED"
    assert names[-1] == "after COMMIT", "nothing is read after the change"


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
    # Whether it may be seen is asked before the stream begins.
    assert [name for name in names if name != "marks_of"] == ["job_by_id", "job_by_id", "read_job_report", "history_of"]
