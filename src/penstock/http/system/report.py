"""How all of it is doing, in the shapes of ``/api/system``. Pure: no database, no request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version

from penstock.http.system.schemas import (
    DatabaseShown,
    LaneSetting,
    LaneShown,
    OutboxShown,
    ProviderShown,
    SystemShown,
    TotalsShown,
    TransportShown,
    WorkerShown,
)
from penstock.http.system.stats_cache import StatsCache, providers_of, total_lag, transport_health
from penstock.lifecycle.states import JobState
from penstock.lifecycle.transport import TransportHealth
from penstock.operations.outbox import Backlog
from penstock.operations.samples import LaneSample
from penstock.operations.workers import WorkerSeen
from penstock.store.engine import Store

_SETTINGS = ("claim_size", "concurrency", "ingest_rows", "lease_seconds")


def system_report(stats: StatsCache, store: Store) -> SystemShown:
    """All of it."""
    lanes, workers = stats.lanes.get().value, stats.workers.get().value
    return SystemShown(
        version=version("penstock"),
        started_at=stats.started_at,
        database=DatabaseShown(
            dialect=store.dialect.name,
            latency_ms=round(store.latency.latency_ms, 2),
            pool_wait_ms=round(store.latency.wait_ms, 2),
        ),
        queue_depth=stats.open_items.get().value,
        jobs=_jobs_by_state(stats.jobs.get().value),
        totals=totals(lanes),
        lanes=[_lane(lane) for lane in lanes],
        workers=[_worker(worker) for worker in workers],
        providers=list(_providers(lanes)),
        outbox=_outbox(stats.backlog.get().value),
        transport=_transport(stats.transport_name, transport_health(workers)),
    )


def totals(lanes: Sequence[LaneSample]) -> TotalsShown:
    """The lanes' speeds together, and their rates as if they were one lane."""
    speeds = [lane.data.get("items_sec") or 0.0 for lane in lanes]
    whole = sum(speeds)

    def rate(name: str) -> float | None:
        if not whole:
            return None
        parts = ((lane.data.get(name) or 0.0) * speed for lane, speed in zip(lanes, speeds, strict=True))
        return round(sum(parts) / whole, 4)

    return TotalsShown(items_sec=round(whole, 1), error_rate=rate("error_rate"), not_found_rate=rate("not_found_rate"))


def lane_setting(sample: LaneSample) -> LaneSetting:
    """How a worker's lane was set at some moment, and what it followed."""
    data = sample.data
    return LaneSetting(
        worker=sample.worker,
        at=sample.at,
        claim_size=data.get("claim_size"),
        concurrency=data.get("concurrency"),
        ingest_rows=data.get("ingest_rows"),
        lease_seconds=data.get("lease_seconds"),
        signals={name: value for name, value in data.items() if name not in (*_SETTINGS, "gauges")},
        gauges=data.get("gauges"),
    )


def _jobs_by_state(counts: Mapping[tuple[str, JobState], int]) -> dict[str, int]:
    jobs: Counter[str] = Counter()
    for (_kind, state), count in counts.items():
        jobs[state.value] += count
    return dict(jobs)


def _lane(lane: LaneSample) -> LaneShown:
    data = lane.data
    return LaneShown(
        kind=lane.kind,
        worker=lane.worker,
        at=lane.at,
        claim_size=data.get("claim_size"),
        concurrency=data.get("concurrency"),
        ingest_rows=data.get("ingest_rows"),
        lease_seconds=data.get("lease_seconds"),
        items_sec=data.get("items_sec"),
        rows_sec=data.get("rows_sec"),
        error_rate=data.get("error_rate"),
        not_found_rate=data.get("not_found_rate"),
        retry_rate=data.get("retry_rate"),
        db_latency_ewma=data.get("db_latency_ewma"),
        pool_wait_ms=data.get("pool_wait_ms"),
        held=data.get("held"),
        abandoned=data.get("abandoned"),
    )


def _worker(worker: WorkerSeen) -> WorkerShown:
    return WorkerShown(
        name=worker.name,
        started_at=worker.started_at,
        seen_at=worker.seen_at,
        alive=worker.alive,
        kinds=worker.data.get("kinds", []),
        held=worker.data.get("held", {}),
        abandoned=worker.data.get("abandoned", {}),
    )


def _providers(lanes: Iterable[LaneSample]) -> Iterable[ProviderShown]:
    for lane in lanes:
        for name, figures in providers_of(lane):
            yield ProviderShown(
                kind=lane.kind,
                worker=lane.worker,
                name=name,
                throttle_rate=figures.get("throttle_rate"),
                figures=figures,
            )


def _outbox(behind: Backlog) -> OutboxShown:
    return OutboxShown(
        waiting=behind.waiting,
        oldest_seconds=_tenths(behind.oldest_seconds),
        failing=behind.failing,
        last_error=behind.last_error,
        unsubscribed=behind.unsubscribed,
        unsubscribed_seconds=_tenths(behind.unsubscribed_seconds),
    )


def _transport(name: str, health_by_worker: Mapping[str, TransportHealth]) -> TransportShown:
    healths = list(health_by_worker.values())
    return TransportShown(
        name=name,
        reachable=all(health.is_reachable for health in healths) if healths else None,
        lag=total_lag(healths),
        last_error=next((health.error for health in healths if health.error), None),
    )


def _tenths(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)
