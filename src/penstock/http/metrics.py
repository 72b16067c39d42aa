"""What ``/metrics`` tells: how many jobs are where, and how long requests take."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from penstock.assembly import Penstock
from penstock.errors import PenstockError

CONTENT_TYPE = CONTENT_TYPE_LATEST
_KEPT_SECONDS = 15.0


class Metrics:
    """One server's figures."""

    def __init__(self, app: Penstock) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(JobCounts(app))
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
