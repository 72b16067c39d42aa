"""What waits in all jobs, and the figures operators follow: the dashboard, ``/metrics``, slow pages."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from penstock import ItemContext, JobContext, NotFound, Penstock, Settings
from penstock.http.items.schemas import PendingPage
from penstock.http.system import stats_cache
from tests.http.conftest import Served, on_sqlite, serving
from tests.http.shapes import read_as

Serve = Callable[..., Served]
PER_LANE = (
    "ingest_ms", "items_sec", "error_rate", "not_found_rate", "db_latency_ewma", "pool_wait_ms",
    "claim_size", "concurrency", "ingest_rows", "lease_seconds",
)  # fmt: skip


@pytest.fixture
def open_list(settings: Settings) -> Iterator[Served]:
    """A server with the dashboard, and two users' jobs of two kinds that nobody works on."""
    app = Penstock(settings=settings.model_copy(update={"pending_dashboard_enabled": True, "slow_query_ms": 0.0001}))
    app.system.migrate()
    app.kind("held")(lambda item: None)
    app.kind("other")(lambda item: None)
    for kind, rows, owner in (("held", 5, "ada"), ("other", 2, "ada"), ("held", 3, "bob")):
        app.submit(kind, items=[{"title": f"{kind} {row}", "secret": "s3cret"} for row in range(rows)], owner=owner)
    with serving(app, worker=False) as served:
        yield served
    app.close()


@on_sqlite
def test_there_is_no_dashboard_unless_it_is_switched_on(app: Penstock, serve: Serve) -> None:
    served = serve(worker=False)
    for client in (served.client(), served.client("root", admin=True)):
        answer = client.get("/api/pending")
        assert (answer.status_code, answer.json()["code"]) == (404, "PENDING_DASHBOARD_DISABLED")


def test_everybody_sees_what_waits_for_them_and_admins_all(open_list: Served) -> None:
    ada, bob, root = open_list.client("ada"), open_list.client("bob"), open_list.client("root", admin=True)
    mine = ada.get("/api/pending")
    read_as(PendingPage, mine.json())
    assert "s3cret" not in mine.text
    assert {one["userId"] for one in mine.json()["items"]} == {"ada"}
    assert (len(mine.json()["items"]), mine.json()["pendingCount"]) == (7, {"held": 5, "other": 2})
    assert mine.json()["items"][0]["inputSummary"]["title"] == "held 0"
    refused = bob.get("/api/pending", params={"userId": "all"})
    assert (refused.status_code, refused.json()["code"]) == (403, "ADMINS_ONLY")
    everything = root.get("/api/pending", params={"userId": "all"}).json()
    assert (len(everything["items"]), everything["pendingCount"]) == (10, {"held": 8, "other": 2})
    assert root.get("/api/pending").json()["items"] == []
    for params, found in (
        ({"jobType": "other"}, 2),
        ({"jobType": "none"}, 0),
        ({"statuses": "PROCESSING"}, 0),
        ({"statuses": "PENDING"}, 10),
        ({"to": "2026-01-01"}, 0),
        ({"from": "2026-01-01"}, 10),
    ):
        assert len(root.get("/api/pending", params={"userId": "all", **params}).json()["items"]) == found, params
    for query, field in (
        ("statuses=DONE", "statuses"), ("statuses=x", "statuses"), ("after=x", "after"), ("userId=bob", "userId"),
        ("pageSize=501", "pageSize"), ("from=x", "from"), ("jobType=" + "x" * 65, "jobType"),
    ):  # fmt: skip
        wrong = root.get(f"/api/pending?{query}")
        assert (wrong.status_code, wrong.json()["code"], wrong.json()["field"]) == (422, "INVALID_INPUT", field), query


def test_one_jobs_own_are_for_whoever_may_see_it(open_list: Served) -> None:
    ada, bob, root = open_list.client("ada"), open_list.client("bob"), open_list.client("root", admin=True)
    [other] = open_list.app.jobs.list(kind="other")
    for client in (ada, root):
        page = client.get("/api/pending", params={"jobId": str(other.id)}).json()
        read_as(PendingPage, page)
        assert [(one["jobId"], one["userId"]) for one in page["items"]] == [(str(other.id), "ada")] * 2
    first = ada.get("/api/pending", params={"jobId": str(other.id), "pageSize": 1}).json()
    second = ada.get("/api/pending", params={"jobId": str(other.id), "pageSize": 1, "after": first["next"]}).json()
    assert [one["position"] for one in first["items"] + second["items"]] == [1, 2]
    for params in ({"jobType": "held"}, {"statuses": "PROCESSING"}, {"to": "2026-01-01"}):
        assert ada.get("/api/pending", params={"jobId": str(other.id), **params}).json()["items"] == [], params
    theirs = bob.get("/api/pending", params={"jobId": str(other.id)})
    assert (theirs.status_code, theirs.json()["code"]) == (404, "JOB_NOT_FOUND")
    for query, field in (("jobId=x", "jobId"), (f"jobId={other.id}&statuses=DONE", "statuses")):
        wrong = ada.get(f"/api/pending?{query}")
        assert (wrong.status_code, wrong.json()["field"]) == (422, field), query
    open_list.app.jobs.cancel(other.id)
    assert ada.get("/api/pending", params={"jobId": str(other.id)}).json()["items"] == []


def test_a_walk_through_what_waits_sees_each_once(open_list: Served) -> None:
    root = open_list.client("root", admin=True)
    seen: list[str] = []
    page: dict[str, Any] = {}
    params = {"userId": "all", "pageSize": "3"}
    for _ in range(10):
        page = root.get("/api/pending", params=params).json()
        seen += [one["id"] for one in page["items"]]
        if page["next"] is None:
            break
        params["after"] = page["next"]
    assert page["next"] is None
    assert (len(seen), len(set(seen))) == (10, 10)


@on_sqlite
def test_what_waits_is_counted_once_for_a_while(open_list: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    ada = open_list.client("ada")
    first = ada.get("/api/pending").json()
    open_list.app.submit("held", items=[{}], owner="ada")
    second = ada.get("/api/pending").json()
    assert (len(second["items"]), second["pendingCount"]) == (8, first["pendingCount"])
    assert second["countedAt"] == first["countedAt"]
    really = time.monotonic
    with monkeypatch.context() as later:
        later.setattr("penstock.http.system.stats_cache.time.monotonic", lambda: really() + 46.0)
        third = ada.get("/api/pending").json()
    assert third["pendingCount"] == {"held": 6, "other": 2}
    assert third["countedAt"] > first["countedAt"]


def test_a_page_is_logged_with_its_bounds(app: Penstock, serve: Serve) -> None:
    app.kind("held")(lambda item: None)
    job = app.submit("held", items=[1, 2, 3], owner="ada").job
    ada = serve(worker=False).client("ada")
    with capture_logs() as lines:
        page = ada.get(f"/api/jobs/{job.id}/items", params={"statuses": "PENDING", "pageSize": 2}).json()
    [line] = [line for line in lines if line["event"] == "a page of items"]
    bounds = [f"{one['updatedAt']}|{one['id']}".replace("Z|", "+00:00|") for one in page["items"]]
    assert (line["log_level"], line["items"], line["first"], line["last"]) == ("info", 2, *bounds)


@on_sqlite
def test_a_slow_page_is_logged_with_its_bounds(open_list: Served) -> None:
    ada = open_list.client("ada")
    with capture_logs() as lines:
        page = ada.get("/api/pending").json()
        ada.get("/api/pending", params={"jobType": "none"})
    slow, empty = [line for line in lines if line["event"] == "a page of items was slow"]
    assert (slow["log_level"], slow["items"], slow["milliseconds"] >= 0) == ("warning", 7, True)
    assert slow["first"].endswith(f"|{page['items'][0]['id']}")
    assert slow["last"].endswith(f"|{page['items'][-1]['id']}")
    assert (empty["items"], empty["first"], empty["last"]) == (0, None, None)


def test_metrics_tell_how_the_workers_do(app: Penstock, serve: Serve) -> None:
    @app.kind("rows")
    class Rows:
        def plan(self, job: JobContext) -> list[int]:
            return [1, 2, 3, 4]

        async def process(self, item: ItemContext) -> None:
            if item.position == 4:
                raise NotFound("nothing")

        def gauges(self) -> dict[str, Any]:
            return {"providers": {"shop": {"throttle_rate": 0.25}}, "odd": 1}

    app.kind("held")(lambda item: None)
    app.submit("rows", {}, owner="ada")
    assert app.drain(kinds=["rows"], timeout=30)
    app.submit("held", items=[1, 2], owner="ada")
    text = serve(worker=False).client(None).get("/metrics").text
    values: dict[str, float] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            values[name.partition("{")[0] + ("" if 'kind="rows"' not in name else " rows")] = float(value)
    for name in PER_LANE:
        assert f"penstock_{name} rows" in values, name
    assert values["penstock_not_found_rate rows"] > 0
    assert values["penstock_error_rate rows"] == 0
    assert values["penstock_api_throttle_rate rows"] == 0.25
    assert 'provider="shop"' in text
    for name in ("queue_depth", "pending_count"):
        assert f'penstock_{name}{{kind="held"}} 2.0' in text
        assert f'penstock_{name}{{kind="rows"}} 0.0' in text


@on_sqlite
def test_a_worker_that_has_nothing_to_do_keeps_its_series(
    app: Penstock, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.kind("rows")
    class Rows:
        def process(self, item: ItemContext) -> None: ...

        def gauges(self) -> dict[str, Any]:
            return {"providers": {"shop": {"throttle_rate": 0.25, "delay_seconds": 7.5}}}

    def series(text: str) -> dict[str, str]:
        lines = (line.rpartition(" ") for line in text.splitlines() if line.startswith("penstock_"))
        return {name: value for name, _, value in lines if 'kind="rows"' in name}

    with app.working() as worker:
        worker.signals.listen()
        job = app.submit("rows", items=[1, 2], owner="ada").job
        app.jobs.wait(job.id, timeout=30)
        worker._sample()
        busy = series(serve(worker=False).client(None).get("/metrics").text)
        worker._sign()
        # A minute later: what was sampled then is not looked at any more.
        monkeypatch.setattr(stats_cache, "_SAMPLES_LOOKED_AT", timedelta(0))
        idle = series(serve(worker=False).client(None).get("/metrics").text)
    assert any(name.startswith("penstock_items_sec") for name in busy)
    assert busy.keys() == idle.keys()
    labels = f'{{kind="rows",worker="{worker.name}"}}'
    assert (float(busy[f"penstock_items_sec{labels}"]) > 0, idle[f"penstock_items_sec{labels}"]) == (True, "0.0")
    assert idle[f"penstock_claim_size{labels}"] == busy[f"penstock_claim_size{labels}"]
    provider = f'{{kind="rows",provider="shop",worker="{worker.name}"}}'
    shown = (idle[f"penstock_api_throttle_rate{provider}"], idle[f"penstock_api_delay_seconds{provider}"])
    assert shown == ("0.25", "7.5")
    assert idle['penstock_jobs{kind="rows",state="failed"}'] == "0.0"
    assert idle['penstock_oldest_waiting_item_seconds{kind="rows"}'] == "0.0"
