"""What ``/metrics`` tells: how many jobs are where, how the workers are set and why, and how long requests take.

A series does not end because there is nothing to count: a kind without jobs has zeros, and a worker that has nothing to
do shows its settings, and rates of zero, for as long as it is alive.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from penstock.errors import PenstockError
from penstock.http.system.stats_cache import StatsCache, providers_of, total_lag, transport_health
from penstock.lifecycle.states import JobState
from penstock.lifecycle.transport import TransportHealth
from penstock.operations.outbox import MAX_COUNTED

CONTENT_TYPE = CONTENT_TYPE_LATEST
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
    "abandoned": "Calls that were given up and still run: threads that hang, coroutines that will not be cancelled.",
}

_OF_PROVIDERS = (
    ("penstock_api_throttle_rate", "throttle_rate", "Share of calls that a provider refused or failed."),
    ("penstock_api_delay_seconds", "delay_seconds", "Seconds between two calls to a provider, or until the next one."),
)
_COUNTED_BY_LANES = {
    "late_outcomes": "Outcomes that came when the item was another worker's already.",
    "store_errors": "How often the database failed a worker.",
}


class Metrics:
    """One server's figures."""

    def __init__(self, figures: StatsCache) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(JobCounts(figures))
        self._registry.register(OfLanes(figures))
        self._registry.register(OfService(figures))
        self._registry.register(OfTrouble(figures))
        self.requests = Histogram(
            "penstock_http_request_seconds",
            "How long requests took, by route and status.",
            ("method", "route", "status"),
            registry=self._registry,
        )
        self.refused_connections = Counter(
            "penstock_refused_connections",
            "Connections that were ended for what their clients did, by code.",
            ("code",),
            registry=self._registry,
        )

    def text(self) -> bytes:
        """All of them, in Prometheus' format."""
        return generate_latest(self._registry)


class JobCounts(Collector):
    """Jobs by kind and state."""

    def __init__(self, figures: StatsCache) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Metric]:
        """The gauge; without a count where the database does not answer, which says more than a scrape that fails."""
        gauge = GaugeMetricFamily("penstock_jobs", "Jobs by kind and state.", labels=("kind", "state"))
        try:
            counts, kinds = self._figures.jobs.get().value, self._figures.all_kinds()
        except PenstockError:
            counts, kinds = {}, []
        for kind in kinds:
            for state in JobState:
                gauge.add_metric((kind, state.value), counts.get((kind, state), 0))
        yield gauge


class OfLanes(Collector):
    """What waits, and what each worker said last of each of its kinds."""

    def __init__(self, figures: StatsCache) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Metric]:
        """The gauges; none where the database does not answer."""
        try:
            waiting = self._figures.open_items.get().value
            kinds, lanes = self._figures.all_kinds(), self._figures.all_lanes()
        except PenstockError:
            return
        for name in ("penstock_queue_depth", "penstock_pending_count"):
            gauge = GaugeMetricFamily(name, "Items that wait or run, by kind.", labels=("kind",))
            for kind in kinds:
                gauge.add_metric((kind,), waiting.get(kind, 0))
            yield gauge
        for name, meaning in _OF_LANES.items():
            gauge = GaugeMetricFamily(f"penstock_{name}", meaning, labels=("kind", "worker"))
            for lane in lanes:
                if isinstance(lane.data.get(name), int | float):
                    gauge.add_metric((lane.kind, lane.worker), lane.data[name])
            yield gauge
        for name, figure, meaning in _OF_PROVIDERS:
            gauge = GaugeMetricFamily(name, meaning, labels=("kind", "worker", "provider"))
            for lane in lanes:
                for provider, figures in providers_of(lane):
                    gauge.add_metric((lane.kind, lane.worker, provider), figures.get(figure) or 0.0)
            yield gauge


class OfService(Collector):
    """The workers that are alive, how they fare with a broker, and how far the outbox is behind."""

    def __init__(self, figures: StatsCache) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Metric]:
        """The gauges; none where the database does not answer."""
        try:
            workers = self._figures.workers.get().value
            behind = self._figures.backlog.get().value
            deaths = self._figures.worker_deaths.get().value
            pruned_counts = self._figures.pruned_counts.get().value
        except PenstockError:
            return
        alive = sum(worker.alive for worker in workers)
        yield GaugeMetricFamily("penstock_workers_alive", "Workers seen within the last half minute.", value=alive)
        yield CounterMetricFamily(
            "penstock_worker_deaths", "Workers that died or stopped responding while they held items.", value=deaths
        )
        pruned_jobs = CounterMetricFamily(
            "penstock_pruned_jobs", "Jobs that were kept for long enough and deleted.", labels=("kind", "state")
        )
        for count in pruned_counts:
            pruned_jobs.add_metric((count.kind, count.state), count.jobs)
        yield pruned_jobs
        yield from _of_transport(transport_health(workers))
        yield GaugeMetricFamily(
            "penstock_outbox_waiting",
            f"Messages not sent yet; {MAX_COUNTED:,} means as many or more.",
            value=behind.waiting,
        )
        yield GaugeMetricFamily(
            "penstock_outbox_lag_seconds",
            "How long the oldest message that has a subscriber has waited; 0 when none does.",
            value=behind.oldest_seconds or 0.0,
        )
        yield GaugeMetricFamily(
            "penstock_outbox_unsubscribed",
            "Messages not sent yet, of topics that no running worker subscribes to.",
            value=behind.unsubscribed,
        )
        yield GaugeMetricFamily(
            "penstock_outbox_unsubscribed_seconds",
            "How long the oldest of those has waited; 0 when none does.",
            value=behind.unsubscribed_seconds or 0.0,
        )


def _of_transport(health_by_worker: Mapping[str, TransportHealth]) -> Iterator[Metric]:
    """Of the workers that read from a broker; no figures where none does."""
    reachable = GaugeMetricFamily("penstock_broker_reachable", "1 while it reaches the broker.", labels=("worker",))
    for worker, health in health_by_worker.items():
        reachable.add_metric((worker,), float(health.is_reachable))
    yield reachable
    lag = GaugeMetricFamily("penstock_consumer_lag", "Messages that were not handled yet, by topic.", labels=("topic",))
    for topic, count in total_lag(health_by_worker.values()).items():
        lag.add_metric((topic,), count)
    yield lag


class OfTrouble(Collector):
    """What an alarm looks at: how old the oldest items are, and what went wrong between workers and the database.

    Ages and expired leases are read from the database. The counters are each worker's own, since it began, as it wrote
    them down with its last figures.
    """

    def __init__(self, figures: StatsCache) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Metric]:
        """The figures; none where the database does not answer."""
        try:
            ages = self._figures.ages.get().value
            kinds, lanes = self._figures.all_kinds(), self._figures.all_lanes()
        except PenstockError:
            return
        for name, meaning, by_kind in (
            ("waiting", "Seconds since the oldest waiting item began to, those of paused jobs included.", ages.waiting),
            ("running", "Seconds since the item that is in hand longest was claimed.", ages.running),
        ):
            gauge = GaugeMetricFamily(f"penstock_oldest_{name}_item_seconds", meaning, labels=("kind",))
            for kind in kinds:
                gauge.add_metric((kind,), by_kind.get(kind, 0.0))
            yield gauge
        yield GaugeMetricFamily(
            "penstock_expired_leases",
            "Leases that ran out and that no sweep has taken back yet.",
            value=ages.expired_leases,
        )
        for name, meaning in _COUNTED_BY_LANES.items():
            counter = CounterMetricFamily(f"penstock_{name}", meaning, labels=("kind", "worker"))
            for lane in lanes:
                if isinstance(lane.data.get(name), int):
                    counter.add_metric((lane.kind, lane.worker), lane.data[name])
            yield counter
