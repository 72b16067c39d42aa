"""What ``/metrics`` tells: how many jobs are where, how the workers are set and why, and how long requests take."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from penstock.assembly import Penstock
from penstock.errors import PenstockError
from penstock.http.figures import Figures

CONTENT_TYPE = CONTENT_TYPE_LATEST
_KEPT_SECONDS = 15.0
_OF_LANES = {
    "claim_size": "Items a worker claims at once.",
    "concurrency": "Items a worker runs at once.",
    "ingest_rows": "Planned items a worker writes at once.",
    "lease_seconds": "How long a worker's leases last.",
    "average_item_ms": "What an item takes.",
    "ingest_ms": "What a batch of planned items takes.",
    "items_sec": "Items ended a second.",
    "rows_sec": "Planned items written a second.",
    "error_rate": "Share of tries that ended in an error.",
    "not_found_rate": "Share of tries that found nothing.",
    "retry_rate": "Share of tries that the other side put off.",
    "db_latency_ewma": "Smoothed milliseconds of a transaction.",
    "pool_wait_ms": "Smoothed milliseconds of the wait for a connection, or for one's turn to write.",
    "held": "Items in a worker's hands.",
}


class Metrics:
    """One server's figures."""

    def __init__(self, app: Penstock, figures: Figures) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(JobCounts(app))
        self._registry.register(OfLanes(figures))
        self.requests = Histogram(
            "penstock_http_request_seconds",
            "How long requests took, by route and status.",
            ("method", "route", "status"),
            registry=self._registry,
        )

    def text(self) -> bytes:
        """All of them, in Prometheus' format."""
        return generate_latest(self._registry)


class JobCounts(Collector):
    """Jobs by kind and state, counted at most every few seconds: counting a million takes a while."""

    def __init__(self, app: Penstock) -> None:
        self._app = app
        self._counted: dict[tuple[str, str], int] = {}
        self._until = 0.0
        self._counting = threading.Lock()

    def collect(self) -> Iterator[Metric]:
        """The gauge."""
        gauge = GaugeMetricFamily("penstock_jobs", "Jobs by kind and state.", labels=("kind", "state"))
        for (kind, state), count in self._counts().items():
            gauge.add_metric((kind, state), count)
        yield gauge

    def _counts(self) -> dict[tuple[str, str], int]:
        with self._counting:
            if time.monotonic() >= self._until:
                try:
                    self._counted = {(kind, state.value): count for (kind, state), count in self._app.counts().items()}
                except PenstockError:
                    self._counted = {}  # a scrape without them says more than one that fails
                self._until = time.monotonic() + _KEPT_SECONDS
            return self._counted


class OfLanes(Collector):
    """What waits, and what each worker said last of each of its kinds, as far as that was within the last minute."""

    def __init__(self, figures: Figures) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Metric]:
        """The gauges; none where the database does not answer."""
        try:
            waiting = self._figures.open_items.get().value
            lanes = self._figures.lanes.get().value
        except PenstockError:
            return
        for name in ("penstock_queue_depth", "penstock_pending_count"):
            gauge = GaugeMetricFamily(name, "Items that wait or are in hand, by kind.", labels=("kind",))
            for kind, count in waiting.items():
                gauge.add_metric((kind,), count)
            yield gauge
        for name, meaning in _OF_LANES.items():
            gauge = GaugeMetricFamily(f"penstock_{name}", meaning, labels=("kind", "worker"))
            for lane in lanes:
                if isinstance(lane.data.get(name), int | float):
                    gauge.add_metric((lane.kind, lane.worker), lane.data[name])
            yield gauge
        throttle = GaugeMetricFamily(
            "penstock_api_throttle_rate",
            "Share of calls that a provider refused for now.",
            labels=("kind", "worker", "provider"),
        )
        for lane in lanes:
            for provider, figures in _providers(lane.data):
                throttle.add_metric((lane.kind, lane.worker, provider), figures.get("throttle_rate") or 0.0)
        yield throttle


def _providers(data: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """What an application says of those it asks."""
    gauges = data.get("gauges")
    providers = gauges.get("providers") if isinstance(gauges, dict) else None
    for name, figures in providers.items() if isinstance(providers, dict) else ():
        if isinstance(figures, dict):
            yield name, figures
