"""How all of it is doing: for admins at ``/api/system``, for Prometheus, and for a job's owner as samples."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import uuid4

import pytest

from penstock import Penstock
from penstock.app import LaneSample, System
from penstock.errors import StoreUnavailable
from penstock.http.jobs.routes import MAX_SAMPLES
from penstock.http.jobs.schemas import JobSamples
from penstock.http.system.report import totals
from penstock.http.system.schemas import LaneShown, SystemShown, TotalsShown
from penstock.operations.samples import keep_samples
from penstock.operations.workers import appear
from tests.http.conftest import Served
from tests.http.shapes import read_as

Serve = Callable[..., Served]
LANE: dict[str, Any] = {
    "claim_size": 5, "concurrency": 4, "ingest_rows": 500, "lease_seconds": 30.0, "average_item_ms": 2.5,
    "ingest_ms": None, "items_sec": 30.0, "rows_sec": 0.0, "error_rate": 0.1, "not_found_rate": 0.2,
    "retry_rate": 0.0, "db_latency_ewma": 1.5, "pool_wait_ms": 0.1, "pressure": "none", "held": 2,
    "gauges": {"providers": {"shop": {"throttle_rate": 0.25, "delay_ms": 40}}, "more": 1},
}  # fmt: skip


@pytest.fixture
def busy(app: Penstock) -> Penstock:
    """One job that waits, a message nobody could send, a worker that is there, and what it said last."""
    app.kind("held")(lambda item: None)
    app.submit("held", {}, owner="ada")
    app.messages.publish("topic", {"n": 1})
    app.store.write(lambda one: appear(one, "w1", {"kinds": ["held"], "held": {"held": 2}}))
    app.store.write(lambda one: keep_samples(one, "w1", {"held": LANE}))
    return app


def test_the_system_is_for_admins(serve: Serve) -> None:
    served = serve(worker=False)
    nobody = served.client(None).get("/api/system")
    assert (nobody.status_code, nobody.json()["code"]) == (401, "TOKEN_MISSING")
    ada = served.client().get("/api/system")
    assert (ada.status_code, ada.json()["code"]) == (403, "ADMINS_ONLY")


def test_an_admin_sees_all_of_it(busy: Penstock, serve: Serve) -> None:
    before = datetime.now(UTC)
    answer = serve(worker=False).client("root", admin=True).get("/api/system")
    assert answer.status_code == 200, answer.text
    body = answer.json()
    shown = read_as(SystemShown, body)
    assert before <= shown.started_at <= datetime.now(UTC)
    assert shown.database.dialect == busy.store.dialect.name
    assert shown.database.latency_ms > 0, "this process has written"
    assert (body["queue_depth"], body["jobs"]) == ({"held": 1}, {"queued": 1})
    assert body["totals"] == {"items_sec": 30.0, "error_rate": 0.1, "not_found_rate": 0.2}
    [lane] = body["lanes"]
    read_as(LaneShown, lane)
    assert (lane["kind"], lane["worker"], lane["claim_size"], lane["held"]) == ("held", "w1", 5, 2)
    [worker] = body["workers"]
    assert (worker["name"], worker["alive"], worker["kinds"], worker["held"]) == ("w1", True, ["held"], {"held": 2})
    assert body["providers"] == [
        {
            "kind": "held",
            "worker": "w1",
            "name": "shop",
            "throttle_rate": 0.25,
            "figures": {"throttle_rate": 0.25, "delay_ms": 40},
        }
    ]
    outbox = body["outbox"]
    assert (outbox["waiting"], outbox["failing"], outbox["last_error"]) == (1, 0, None)
    assert outbox["oldest_seconds"] is None, "nobody subscribes to it, so no relay is behind"
    assert (outbox["unsubscribed"], outbox["unsubscribed_seconds"] >= 0) == (1, True)
    assert body["transport"] == {"name": "in-process", "reachable": None, "lag": {}, "last_error": None}


def test_looking_often_counts_once(busy: Penstock, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = []
    whole = System.count_jobs

    def count_jobs(self: System) -> Any:
        counted.append(self)
        return whole(self)

    monkeypatch.setattr(System, "count_jobs", count_jobs)
    root = serve(worker=False).client("root", admin=True)
    for _ in range(3):
        assert root.get("/api/system").json()["jobs"] == {"queued": 1}
        assert 'penstock_jobs{kind="held",state="queued"} 1.0' in root.get("/metrics").text
    assert len(counted) == 1


def test_rates_of_all_lanes_are_weighted_by_what_each_does() -> None:
    now = datetime.now(UTC)
    lanes = [
        LaneSample("a", now, "w", {"items_sec": 30.0, "error_rate": 0.1, "not_found_rate": 0.0}),
        LaneSample("b", now, "w", {"items_sec": 10.0, "error_rate": 0.5, "not_found_rate": None}),
        LaneSample("c", now, "w", {"items_sec": None}),
    ]
    assert totals(lanes) == TotalsShown(items_sec=40.0, error_rate=0.2, not_found_rate=0.0)
    assert totals(lanes[2:]) == TotalsShown(items_sec=0.0, error_rate=None, not_found_rate=None)
    assert totals([]) == TotalsShown(items_sec=0.0, error_rate=None, not_found_rate=None)


def test_metrics_tell_of_the_workers_and_the_outbox(busy: Penstock, serve: Serve) -> None:
    text = serve(worker=False).client(None).get("/metrics").text
    figures = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert figures["penstock_workers_alive"] == "1.0"
    assert figures["penstock_outbox_waiting"] == "1.0"
    assert figures["penstock_outbox_lag_seconds"] == "0.0", "nobody subscribes to it, so no relay is behind"
    assert figures["penstock_outbox_unsubscribed"] == "1.0"
    assert float(figures["penstock_outbox_unsubscribed_seconds"]) >= 0
    assert figures['penstock_api_throttle_rate{kind="held",provider="shop",worker="w1"}'] == "0.25"


def test_a_topic_of_a_worker_that_is_there_has_a_subscriber(busy: Penstock, serve: Serve) -> None:
    busy.store.write(lambda one: appear(one, "w2", {"kinds": [], "held": {}, "topics": ["topic"]}))
    outbox = serve(worker=False).client("root", admin=True).get("/api/system").json()["outbox"]
    assert (outbox["waiting"], outbox["unsubscribed"], outbox["unsubscribed_seconds"]) == (1, 0, None)
    assert outbox["oldest_seconds"] >= 0


def test_workers_say_how_they_fare_with_a_broker(busy: Penstock, serve: Serve) -> None:
    """Each partition has one worker: their lags add up; and one of them that is cut off is enough to look there."""
    said: dict[str, Any] = {"kinds": [], "held": {}, "topics": ["*"]}
    for name, health in {
        "w2": {"is_reachable": True, "lag": {"orders": 5}, "error": None},
        "w3": {"is_reachable": False, "lag": {"orders": 2, "bills": 1}, "error": "connection refused"},
    }.items():
        busy.store.write(partial(appear, name=name, data=said | {"transport": health}))
    served = serve(worker=False)
    assert served.client("root", admin=True).get("/api/system").json()["transport"] == {
        "name": "in-process", "reachable": False, "lag": {"bills": 1, "orders": 7}, "last_error": "connection refused",
    }  # fmt: skip
    text = served.client(None).get("/metrics").text
    figures = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert figures['penstock_broker_reachable{worker="w2"}'] == "1.0"
    assert figures['penstock_broker_reachable{worker="w3"}'] == "0.0"
    assert figures['penstock_consumer_lag{topic="orders"}'] == "7.0"
    assert figures['penstock_consumer_lag{topic="bills"}'] == "1.0"


def test_metrics_without_a_database_are_fewer_but_there(
    busy: Penstock, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object, **__: object) -> None:
        raise StoreUnavailable("the database is not available: connection refused")

    served = serve(worker=False)
    monkeypatch.setattr(busy.store, "read", away)
    answer = served.client(None).get("/metrics")
    assert answer.status_code == 200
    assert "penstock_http_request_seconds" in answer.text
    assert "penstock_workers_alive 1.0" not in answer.text
    told = served.client("root", admin=True).get("/api/system")
    assert (told.status_code, told.json()["code"]) == (503, "DB_CONN_REFUSED")


def test_a_jobs_samples_are_its_owners(busy: Penstock, serve: Serve) -> None:
    served = serve(worker=False)
    job = busy.submit("held", {}, owner="ada").job
    address = f"/api/jobs/{job.id}/samples"
    assert served.client(None).get(address).status_code == 401
    for answer in (served.client("bob").get(address), served.client().get(f"/api/jobs/{uuid4()}/samples")):
        assert (answer.status_code, answer.json()["code"]) == (404, "JOB_NOT_FOUND")
    assert served.client().get(address).json() == {"samples": []}
    busy.store.write(lambda one: keep_samples(one, "w2", {"held": LANE, "other": LANE}))
    answer = served.client().get(address)
    read_as(JobSamples, answer.json())
    [one] = answer.json()["samples"]
    settings = {"claim_size": 5, "concurrency": 4, "ingest_rows": 500, "lease_seconds": 30.0}
    signals = {name: value for name, value in LANE.items() if name not in settings and name != "gauges"}
    assert one == {"worker": "w2", "at": one["at"], **settings, "signals": signals, "gauges": LANE["gauges"]}
    assert served.client("root", admin=True).get(address).json() == answer.json()


def test_there_are_never_more_than_some_hundred(busy: Penstock, serve: Serve) -> None:
    job = busy.submit("held", {}, owner="ada").job
    first = job.created_at + timedelta(seconds=1)
    write_samples(busy, [first + timedelta(seconds=number) for number in range(MAX_SAMPLES + 100)])
    shown = serve(worker=False).client().get(f"/api/jobs/{job.id}/samples").json()["samples"]
    moments = [datetime.fromisoformat(one["at"]) for one in shown]
    assert MAX_SAMPLES // 2 < len(moments) <= MAX_SAMPLES
    assert moments == sorted(moments)
    assert moments[-1] == first + timedelta(seconds=MAX_SAMPLES + 99)


def write_samples(app: Penstock, moments: list[datetime]) -> None:
    """As if they had been made then."""
    from penstock.store.tables import lane_samples

    rows = [{"kind": "held", "at": one, "worker": "w", "data": LANE} for one in moments]
    with app.store.engine.begin() as connection:
        connection.execute(lane_samples.insert(), rows)
