"""``/api/system``: how all of it is doing, for admins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from importlib.metadata import version
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from penstock.http.auth import Admin, AService
from penstock.http.errors import documented
from penstock.http.responses import Json
from penstock.http.stats_cache import providers_of
from penstock.operations.outbox import MOST_COUNTED, Backlog
from penstock.operations.samples import LaneSample
from penstock.operations.workers import WorkerSeen

routes = APIRouter(prefix="/api", tags=["operating"])
_OF_LANES = (
    "claim_size", "concurrency", "ingest_rows", "lease_seconds", "items_sec", "rows_sec", "error_rate",
    "not_found_rate", "retry_rate", "db_latency_ewma", "pool_wait_ms", "held", "abandoned",
)  # fmt: skip


class DatabaseShown(BaseModel):
    """How quickly the database answers this server when it writes."""

    dialect: str = Field(examples=["postgresql"])
    latency_ms: float
    pool_wait_ms: float


class TotalsShown(BaseModel):
    """All lanes together; the rates are weighted by what each of them does."""

    items_sec: float
    error_rate: float | None = Field(description="Null while nothing is done.")
    not_found_rate: float | None


class LaneShown(BaseModel):
    """What one worker said last of one kind, within the last minute."""

    kind: str
    worker: str
    at: datetime
    claim_size: int | None
    concurrency: int | None
    ingest_rows: int | None
    lease_seconds: float | None
    items_sec: float | None
    rows_sec: float | None
    error_rate: float | None
    not_found_rate: float | None
    retry_rate: float | None
    db_latency_ewma: float | None
    pool_wait_ms: float | None
    held: int | None
    abandoned: int | None = Field(description="Calls that were given up and still run.")


class WorkerShown(BaseModel):
    """A worker that is there, or that died within the last hour."""

    name: str
    started_at: datetime
    seen_at: datetime
    alive: bool = Field(description="Was it seen within the last half minute?")
    kinds: list[str]
    held: dict[str, int] = Field(description="Items in its hands, by kind.")
    abandoned: dict[str, int] = Field(description="Calls it gave up that still run, by kind.")


class ProviderShown(BaseModel):
    """One whom an application asks, in that application's own figures."""

    model_config = ConfigDict(extra="allow")
    kind: str
    worker: str
    name: str
    throttle_rate: float | None


class OutboxShown(BaseModel):
    """What has not been sent yet."""

    waiting: int = Field(description=f"{MOST_COUNTED:,} means as many or more.")
    oldest_seconds: float | None = Field(description="How long the oldest that has a subscriber has waited.")
    failing: int = Field(description="Those that were tried in vain.")
    last_error: str | None
    unsubscribed: int = Field(description="Those of topics that no running worker subscribes to.")
    unsubscribed_seconds: float | None = Field(description="How long the oldest of those has waited.")


class SystemShown(BaseModel):
    """All of it."""

    version: str
    started_at: datetime = Field(description="When this server began.")
    database: DatabaseShown
    queue_depth: dict[str, int] = Field(description="Items that wait or are in hand, by kind.")
    jobs: dict[str, int] = Field(description="Jobs by state.")
    totals: TotalsShown
    lanes: list[LaneShown]
    workers: list[WorkerShown]
    providers: list[ProviderShown]
    outbox: OutboxShown


@routes.get(
    "/system", summary="How all of it is doing", response_model=SystemShown, responses=documented(401, 403, 422, 503)
)
def get_system(_who: Admin, one: AService) -> Response:
    """For admins. Counts are kept for some seconds, so that looking often costs nothing."""
    figures, store = one.figures, one.app.store
    lanes = figures.lanes.get().value
    jobs: Counter[str] = Counter()
    for (_kind, state), count in figures.jobs.get().value.items():
        jobs[state.value] += count
    return Json(
        {
            "version": version("penstock"),
            "started_at": figures.started_at,
            "database": {
                "dialect": store.dialect.name,
                "latency_ms": round(store.latency.latency_ms, 2),
                "pool_wait_ms": round(store.latency.wait_ms, 2),
            },
            "queue_depth": figures.open_items.get().value,
            "jobs": jobs,
            "totals": totals(lanes),
            "lanes": [_lane(lane) for lane in lanes],
            "workers": [_worker(worker) for worker in figures.workers.get().value],
            "providers": list(_providers(lanes)),
            "outbox": _outbox(figures.backlog.get().value),
        }
    )


def totals(lanes: Sequence[LaneSample]) -> dict[str, float | None]:
    """The lanes' speeds together, and their rates as if they were one lane."""
    speeds = [lane.data.get("items_sec") or 0.0 for lane in lanes]
    whole = sum(speeds)

    def rate(name: str) -> float | None:
        if not whole:
            return None
        parts = ((lane.data.get(name) or 0.0) * speed for lane, speed in zip(lanes, speeds, strict=True))
        return round(sum(parts) / whole, 4)

    return {"items_sec": round(whole, 1), "error_rate": rate("error_rate"), "not_found_rate": rate("not_found_rate")}


def _lane(lane: LaneSample) -> dict[str, Any]:
    figures = {name: lane.data.get(name) for name in _OF_LANES}
    return {"kind": lane.kind, "worker": lane.worker, "at": lane.at, **figures}


def _worker(worker: WorkerSeen) -> dict[str, Any]:
    return {
        "name": worker.name,
        "started_at": worker.started_at,
        "seen_at": worker.seen_at,
        "alive": worker.alive,
        "kinds": worker.data.get("kinds", []),
        "held": worker.data.get("held", {}),
        "abandoned": worker.data.get("abandoned", {}),
    }


def _providers(lanes: Iterable[LaneSample]) -> Iterable[dict[str, Any]]:
    for lane in lanes:
        for name, figures in providers_of(lane):
            named = {"kind": lane.kind, "worker": lane.worker, "name": name}
            yield {"throttle_rate": None, **figures, **named}


def _outbox(behind: Backlog) -> dict[str, Any]:
    return {
        "waiting": behind.waiting,
        "oldest_seconds": _tenths(behind.oldest_seconds),
        "failing": behind.failing,
        "last_error": behind.last_error,
        "unsubscribed": behind.unsubscribed,
        "unsubscribed_seconds": _tenths(behind.unsubscribed_seconds),
    }


def _tenths(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)
