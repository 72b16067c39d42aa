"""The shapes of ``/api/system``; a lane's setting is also part of the jobs it works on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from penstock.operations.outbox import MAX_COUNTED


@dataclass(kw_only=True)
class LaneSetting:
    """How one worker's lane for a kind of job was set at some moment."""

    worker: str
    at: datetime
    claim_size: int | None
    concurrency: int | None
    ingest_rows: int | None
    lease_seconds: float | None
    signals: Annotated[dict[str, Any], Field(description="What the settings followed.")]
    gauges: Annotated[Any, Field(description="The application's own figures, such as its providers' throttle rates.")]


@dataclass(kw_only=True)
class DatabaseShown:
    """How quickly the database answers this server when it writes."""

    dialect: Annotated[str, Field(examples=["postgresql"])]
    latency_ms: float
    pool_wait_ms: float


@dataclass(kw_only=True)
class TotalsShown:
    """All lanes together; the rates are weighted by what each of them does."""

    items_sec: float
    error_rate: Annotated[float | None, Field(description="Null while nothing is done.")]
    not_found_rate: float | None


@dataclass(kw_only=True)
class LaneShown:
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
    abandoned: Annotated[int | None, Field(description="Calls that were given up and still run.")]


@dataclass(kw_only=True)
class WorkerShown:
    """A worker that is there, or that died within the last hour."""

    name: str
    started_at: datetime
    seen_at: datetime
    alive: Annotated[bool, Field(description="Was it seen within the last half minute?")]
    kinds: list[str]
    held: Annotated[dict[str, int], Field(description="Items it holds, by kind.")]
    abandoned: Annotated[dict[str, int], Field(description="Calls it gave up that still run, by kind.")]


@dataclass(kw_only=True)
class ProviderShown:
    """A provider that an application asks."""

    kind: str
    worker: str
    name: str
    throttle_rate: float | None
    figures: Annotated[dict[str, Any], Field(description="All that the application says of it.")]


@dataclass(kw_only=True)
class OutboxShown:
    """What has not been sent yet."""

    waiting: Annotated[int, Field(description=f"{MAX_COUNTED:,} means as many or more.")]
    oldest_seconds: Annotated[float | None, Field(description="How long the oldest that has a subscriber has waited.")]
    failing: Annotated[int, Field(description="Those that failed at least once.")]
    last_error: str | None
    unsubscribed: Annotated[int, Field(description="Those of topics that no running worker subscribes to.")]
    unsubscribed_seconds: Annotated[float | None, Field(description="How long the oldest of those has waited.")]


@dataclass(kw_only=True)
class TransportShown:
    """What carries messages, as the workers say that read from it."""

    name: Annotated[str, Field(examples=["kafka"], description="PENSTOCK_TRANSPORT of this server.")]
    reachable: Annotated[
        bool | None,
        Field(description="False where a running worker does not reach the broker; null where none reads from one."),
    ]
    lag: Annotated[dict[str, int], Field(description="Messages that were not handled yet, by topic.")]
    last_error: str | None


@dataclass(kw_only=True)
class SystemShown:
    """All of it."""

    version: str
    started_at: Annotated[datetime, Field(description="When this server began.")]
    database: DatabaseShown
    queue_depth: Annotated[dict[str, int], Field(description="Items that wait or run, by kind.")]
    jobs: Annotated[dict[str, int], Field(description="Jobs by state.")]
    totals: TotalsShown
    lanes: list[LaneShown]
    workers: list[WorkerShown]
    providers: list[ProviderShown]
    outbox: OutboxShown
    transport: TransportShown
