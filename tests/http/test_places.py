"""A job's grid over HTTP: every row once, whichever way one walks, and no odd question does harm."""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote
from uuid import UUID, uuid4

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as some
from sqlalchemy import update

from penstock import ItemContext, Job, JobContext, Penstock, Permanent, Planned
from penstock.app import ItemCursor
from penstock.errors import InvalidInput
from penstock.http.items.schemas import GridPage
from penstock.http.pagination import read_place, written_place
from penstock.store.tables import job_items
from tests.http.conftest import Served, on_sqlite
from tests.http.shapes import read_as

Serve = Callable[..., Served]
ROWS = 25


def encoded(text: str) -> str:
    """A cursor made by hand."""
    return base64.urlsafe_b64encode(text.encode()).decode()


def positions(answer: httpx2.Response) -> list[int]:
    """Which rows are on a page."""
    assert answer.status_code == 200, answer.text
    read_as(GridPage, answer.json())
    return [one["position"] for one in answer.json()["items"]]


def held(app: Penstock, rows: int = ROWS) -> Job:
    """A job whose rows all wait, written in one moment."""
    if "held" not in app.kinds:
        app.kind("held")(lambda item: None)
    return app.submit("held", items=[{"title": f"row {number}"} for number in range(1, rows + 1)], owner="ada").job


def settled(app: Penstock, job: Job) -> Job:
    """The same job, a minute later: a walk backwards shows twice what has only just changed."""
    earlier = update(job_items).values(updated_at=job.created_at - timedelta(minutes=1))
    app.in_transaction(lambda link: link.execute(earlier.where(job_items.c.job_id == job.id)))
    return job


def halves(app: Penstock) -> Job:
    """A job of which every other row failed, and which is over."""

    @app.kind("halves")
    class Halves:
        columns = ("number", "title")

        def plan(self, job: JobContext) -> list[Planned]:
            return [
                Planned({"n": number, "secret": "s3cret"}, {"title": f"row {number}"}) for number in range(1, ROWS + 1)
            ]

        async def process(self, item: ItemContext) -> dict[str, Any]:
            given: Any = item.input
            if given["n"] % 2:
                raise Permanent("odd", code="ODD")
            return {"number": given["n"], "title": f"row {given['n']}"}

    job = app.submit("halves", {}, owner="ada").job
    assert app.drain(timeout=30)
    return app.jobs.get(job.id)


def walked(client: httpx2.Client, job_id: UUID, **params: Any) -> list[int]:
    """The rows from the first page to the last, by its `next`."""
    seen: list[int] = []
    answer = client.get(f"/api/jobs/{job_id}/items", params=params)
    for _ in range(2 * ROWS):
        seen += positions(answer)
        following = answer.json()["next"]
        if following is None:
            return seen
        answer = client.get(f"/api/jobs/{job_id}/items", params={**params, "after": following})
        assert answer.json()["page"] is None
    raise AssertionError("the walk has no end")


def test_whoever_follows_next_sees_every_row_once(app: Penstock, serve: Serve) -> None:
    job = settled(app, held(app))
    ada = serve(worker=False).client()
    forwards = list(range(1, ROWS + 1))
    for size in (7, ROWS):
        assert walked(ada, job.id, pageSize=size) == forwards
        assert walked(ada, job.id, pageSize=size, sort="-position") == forwards[::-1]
        # All of one moment: what is equal there goes by the number of the item.
        assert walked(ada, job.id, pageSize=size, statuses="PENDING,PROCESSING") == forwards
        assert walked(ada, job.id, pageSize=size, sort="-updatedAt") == forwards[::-1]
    assert walked(ada, job.id, statuses="DONE") == []


def test_a_walk_backwards_brings_what_changes_meanwhile(app: Penstock, serve: Serve) -> None:
    job = settled(app, held(app))
    ada = serve(worker=False).client()
    address = f"/api/jobs/{job.id}/items"
    params: dict[str, Any] = {"sort": "-updatedAt", "pageSize": 10}
    answer = ada.get(address, params=params)
    seen = positions(answer)
    oldest = ada.get(address, params={"sort": "updatedAt", "pageSize": 1}).json()["items"][0]
    changed = update(job_items).values(updated_at=datetime.now(UTC)).where(job_items.c.id == int(oldest["id"]))
    app.in_transaction(lambda link: link.execute(changed))
    while following := answer.json()["next"]:
        answer = ada.get(address, params={**params, "after": following})
        seen += positions(answer)
    assert seen == [*range(ROWS, 1, -1), 1]


def test_a_walk_by_last_change_has_the_rows_of_those_statuses_alone(app: Penstock, serve: Serve) -> None:
    job = settled(app, halves(app))
    ada = serve(worker=False).client()
    odd, even = set(range(1, ROWS + 1, 2)), set(range(2, ROWS + 1, 2))
    for sort in ("updatedAt", "-updatedAt"):
        failed = walked(ada, job.id, statuses="ERROR", pageSize=4, sort=sort)
        assert (len(failed), set(failed)) == (len(odd), odd)
        both = walked(ada, job.id, status="ERROR,DONE", pageSize=4, sort=sort)
        assert (len(both), set(both)) == (ROWS, odd | even)
    assert set(walked(ada, job.id, statuses="DONE", pageSize=5)) == even
    assert set(walked(ada, job.id, status="DONE", pageSize=5)) == even


def test_a_page_has_its_number_from_either_end(app: Penstock, serve: Serve) -> None:
    job = held(app)
    ada = serve(worker=False).client()
    address = f"/api/jobs/{job.id}/items"
    rows = list(range(1, ROWS + 1))
    for number in (1, 2, 3, 4, 1_000_000, 2**31 - 1):
        here = slice(min((number - 1) * 7, ROWS), min(number * 7, ROWS))
        asked: dict[str, Any] = {"page": number, "pageSize": 7}
        answer = ada.get(address, params=asked)
        assert positions(answer) == rows[here]
        assert (answer.json()["page"], answer.json()["pageSize"], answer.json()["total"]) == (number, 7, ROWS)
        assert positions(ada.get(address, params={**asked, "sort": "-position"})) == rows[::-1][here]
        if number < 1_000:
            waiting = ada.get(address, params={**asked, "status": "PENDING"})
            assert (positions(waiting), waiting.json()["total"]) == (rows[here], None)
            assert positions(ada.get(address, params={**asked, "sort": "-updatedAt"})) == rows[::-1][here]


@on_sqlite
def test_a_numbered_page_of_some_statuses_has_a_bound(app: Penstock, serve: Serve) -> None:
    job = held(app)
    ada = serve(worker=False).client()
    asked: dict[str, Any] = {"statuses": "PENDING", "pageSize": 500}
    assert positions(ada.get(f"/api/jobs/{job.id}/items", params={**asked, "page": 21})) == []
    answer = ada.get(f"/api/jobs/{job.id}/items", params={**asked, "page": 22})
    assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (422, "PAGE_TOO_DEEP", "page")
    assert positions(ada.get(f"/api/jobs/{job.id}/items", params={"page": 22, "pageSize": 500})) == []


def test_only_rows_of_a_time(app: Penstock, serve: Serve) -> None:
    job = held(app)
    ada = serve(worker=False).client()
    [first] = ada.get(f"/api/jobs/{job.id}/items", params={"pageSize": 1}).json()["items"]
    moment = first["updatedAt"]
    for params, found in (
        ({"from": moment}, ROWS),
        ({"to": moment}, 0),
        ({"from": "2026-01-01", "to": "9998-12-31T00:00:00Z"}, ROWS),
        ({"from": "9998-01-01"}, 0),
        ({"from": moment, "to": moment, "statuses": "PENDING"}, 0),
        ({"from": moment, "statuses": "DONE"}, 0),
        ({"from": "0001-01-01T00:00:00+23:00", "to": "9999-12-31T23:59:59-23:00"}, ROWS),
        ({"from": "1970-01-01T00:00:00+23:59:59.999999"}, ROWS),
    ):
        answer = ada.get(f"/api/jobs/{job.id}/items", params=params)
        assert (len(positions(answer)), answer.json()["total"]) == (found, None), params
    assert walked(ada, job.id, **{"from": moment, "pageSize": 4}) == list(range(1, ROWS + 1))


def test_a_row_has_its_cells_and_never_its_input(app: Penstock, serve: Serve) -> None:
    job = halves(app)
    ada = serve(worker=False).client()
    answer = ada.get(f"/api/jobs/{job.id}/items", params={"pageSize": 2})
    assert "s3cret" not in answer.text
    failed, done = answer.json()["items"]
    assert answer.json()["columns"] == ["number", "title"]
    assert (failed["cells"], done["cells"]) == ({"number": None, "title": "row 1"}, {"number": 2, "title": "row 2"})
    assert (failed["status"], failed["errorCode"], failed["lastError"], failed["attempts"]) == (
        "ERROR",
        "ODD",
        "odd",
        1,
    )
    assert done["inputSummary"] == {"title": "row 2"}
    assert (done["jobId"], done["jobType"], done["lockedBy"], done["lockedAt"]) == (str(job.id), "halves", None, None)


NOT_OURS = {
    "garbage": "!!!!",
    "not base64": "x",
    "not ASCII": "é",
    "not ASCII inside": encoded("position|é"),
    "not text inside": base64.urlsafe_b64encode(b"\xff\xfe\x00").decode(),
    "no number": encoded("position|"),
    "negative": encoded("position|-1"),
    "a fraction": encoded("position|1.5"),
    "another digit": encoded("position|²"),
    "huge": encoded(f"position|{10**40}"),
    "beyond 64 bits": encoded(f"2026-11-16T08:00:00+00:00|{2**63}"),
    "naive": encoded("2026-11-16T08:00:00|7"),
    "no such day": encoded("2026-02-30T08:00:00+00:00|7"),
    "before time": encoded("0001-01-01T00:00:00+23:00|7"),
    "after time": encoded("9999-12-31T23:59:59-23:00|7"),
    "too long": "A" * 201,
}


@on_sqlite
def test_a_cursor_that_is_not_of_this_list_is_said_to_be(app: Penstock, serve: Serve) -> None:
    job = held(app)
    ada = serve(worker=False).client()
    by_position = encoded("position|3")
    by_change = encoded("2026-11-16T08:00:00+00:00|7")
    questions = [(cursor, params) for cursor in NOT_OURS.values() for params in ({}, {"statuses": "PENDING"})]
    questions += [(by_change, {}), (by_position, {"statuses": "PENDING"}), (by_position, {"sort": "-updatedAt"})]
    began = "2026-11-16T08:00:00+00:00"
    rests = ("", f"|{began}", f"|{began}|up", "|7|down", f"|{began}|down|")
    questions += [(encoded(f"{began}|7{rest}"), {"sort": "-updatedAt"}) for rest in rests]
    questions += [(encoded(f"{began}|7|{began}|down"), {"sort": "updatedAt"})]
    for cursor, params in questions:
        answer = ada.get(f"/api/jobs/{job.id}/items", params={**params, "after": cursor})
        assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (
            422, "INVALID_INPUT", "after",
        ), (cursor, params)  # fmt: skip
    far = encoded(f"position|{2**63 - 1}")
    assert positions(ada.get(f"/api/jobs/{job.id}/items", params={"after": far})) == []
    far = encoded(f"9998-12-31T23:59:59-23:00|{2**63 - 1}")
    assert positions(ada.get(f"/api/jobs/{job.id}/items", params={"after": far, "statuses": "PENDING"})) == []


@pytest.mark.parametrize("migrated_url", ["postgresql"], indirect=True)
def test_what_is_far_off_is_only_empty(app: Penstock, serve: Serve) -> None:
    job = held(app, 3)
    ada = serve(worker=False).client()
    for params in (
        {"after": encoded(f"position|{2**63 - 1}")},
        {"after": encoded(f"9998-12-31T23:59:59-23:00|{2**63 - 1}"), "statuses": "PENDING"},
        {"page": 2**31 - 1, "pageSize": 500},
        {"from": "9999-12-31T23:59:59Z"},
    ):
        assert positions(ada.get(f"/api/jobs/{job.id}/items", params=params)) == [], params


@on_sqlite
def test_a_question_that_makes_no_sense_is_answered_with_what_is_wrong(app: Penstock, serve: Serve) -> None:
    job = held(app)
    ada = serve(worker=False).client()
    place = encoded("position|3")
    for query, field in (
        ("pageSize=0", "pageSize"),
        ("pageSize=501", "pageSize"),
        ("pageSize=ten", "pageSize"),
        ("page=0", "page"),
        (f"page={2**31}", "page"),
        ("page=-1", "page"),
        (f"page=2&after={quote(place)}", "page"),
        ("sort=price", "sort"),
        ("sort=position&statuses=PENDING", "sort"),
        ("sort=-position&from=2026-01-01", "sort"),
        ("status=OPEN", "statuses"),
        ("statuses=PENDING,", "statuses"),
        ("statuses=,", "statuses"),
        ("statuses=pending", "statuses"),
        ("from=yesterday", "from"),
        ("to=2026-02-30", "to"),
    ):
        answer = ada.get(f"/api/jobs/{job.id}/items?{query}")
        assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (
            422, "INVALID_INPUT", field,
        ), query  # fmt: skip


@on_sqlite
def test_a_grid_is_its_owners_and_the_admins(app: Penstock, serve: Serve) -> None:
    job = held(app)
    served = serve(worker=False)
    mallory, root = served.client("mallory"), served.client("root", admin=True)
    for method, path in (
        ("GET", "/items"), ("GET", "/errors"), ("POST", "/export"), ("POST", "/kickoff"),
        ("POST", "/pause"), ("POST", "/resume"), ("POST", "/reprocess"),
    ):  # fmt: skip
        theirs = mallory.request(method, f"/api/jobs/{job.id}{path}")
        nobodys = mallory.request(method, f"/api/jobs/{uuid4()}{path}")
        for one in (theirs, nobodys):
            assert (one.status_code, one.json()["code"]) == (404, "JOB_NOT_FOUND"), path
        assert served.client(None).request(method, f"/api/jobs/{job.id}{path}").status_code == 401
    assert len(positions(root.get(f"/api/jobs/{job.id}/items"))) == ROWS
    assert app.jobs.get(job.id).state == job.state


@given(
    seconds=some.integers(0, 250_000_000_000),
    microseconds=some.integers(0, 999_999),
    number=some.integers(0, 2**63 - 1),
    position=some.integers(0, 2**31 - 1),
    turned=some.booleans(),
)
def test_a_place_is_read_as_it_was_written(
    seconds: int, microseconds: int, number: int, position: int, turned: bool
) -> None:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds, microseconds=microseconds)
    place = ItemCursor(moment, number, position)
    assert read_place(written_place(place, in_order=False), in_order=False) == ItemCursor(moment, number)
    assert read_place(written_place(place, in_order=True), in_order=True) == ItemCursor(position=position)
    walk = ItemCursor(moment, number, began=moment + timedelta(microseconds=number % 7), is_returning=turned)
    written = written_place(walk, in_order=False)
    assert read_place(written, in_order=False, descending=True) == walk
    with pytest.raises(InvalidInput):
        read_place(written, in_order=False)


def from_bytes(raw: bytes) -> str:
    """Any bytes as a cursor."""
    return base64.urlsafe_b64encode(raw).decode()


odd_cursors = some.one_of(
    some.text(max_size=200), some.binary(max_size=100).map(from_bytes), some.text(max_size=60).map(encoded)
)


@given(text=odd_cursors, in_order=some.booleans(), descending=some.booleans())
def test_any_other_text_is_refused_and_nothing_worse(text: str, in_order: bool, descending: bool) -> None:
    with pytest.raises(InvalidInput):
        read_place(text, in_order=in_order, descending=descending)


@on_sqlite
def test_a_filter_without_a_value_was_not_set(app: Penstock, serve: Serve) -> None:
    job = held(app)
    ada = serve(worker=False).client()
    empty = f"/api/jobs/{job.id}/items?status=&statuses=&page=&pageSize=&sort=&after=&from=&to="
    assert ada.get(empty).json() == ada.get(f"/api/jobs/{job.id}/items").json()
