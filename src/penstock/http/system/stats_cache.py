"""Figures that many requests ask for and that may be some seconds old: read once, and cached."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, TypeVar

from penstock.app import Penstock
from penstock.lifecycle.callers import SYSTEM
from penstock.lifecycle.transport import TransportHealth
from penstock.operations.samples import LaneSample
from penstock.operations.workers import WorkerSeen

Value = TypeVar("Value")
_COUNTED_SECONDS = 45.0
_JOBS_COUNTED_SECONDS = 15.0
_SAMPLED_SECONDS = 2.0
_SAMPLES_LOOKED_AT = timedelta(seconds=60)
_MAX_KEPT = 1_000


@dataclass(frozen=True, slots=True)
class CachedValue(Generic[Value]):
    """A value, when it was read, and until when it is used."""

    value: Value
    at: datetime
    until: float


class TTLCache(Generic[Value]):
    """Values by key, each read again when it is older than so many seconds; one thread reads, the others wait."""

    def __init__(self, seconds: float, read: Callable[[str | None], Value]) -> None:
        self._seconds = seconds
        self._read = read
        self._lock = threading.Lock()
        self._values: dict[str | None, CachedValue[Value]] = {}

    def get(self, key: str | None = None) -> CachedValue[Value]:
        """The value of a key."""
        entry = self._values.get(key)
        if entry is not None and time.monotonic() < entry.until:
            return entry
        with self._lock:
            entry = self._values.get(key)
            if entry is None or time.monotonic() >= entry.until:
                entry = CachedValue(self._read(key), datetime.now(UTC), time.monotonic() + self._seconds)
                if len(self._values) >= _MAX_KEPT:
                    self._values.clear()
                self._values[key] = entry
            return entry


class StatsCache:
    """One server's."""

    def __init__(self, app: Penstock) -> None:
        self._app = app
        self.started_at = datetime.now(UTC)
        """When this server began."""
        self.transport_name = app.settings.transport
        self.open_items = TTLCache(_COUNTED_SECONDS, lambda user: app.acting_as(SYSTEM).items.count_open(user=user))
        """By kind, of a user or of everybody."""
        self.lanes = TTLCache(_SAMPLED_SECONDS, self._latest)
        """What each worker said last of each of its kinds."""
        self.jobs = TTLCache(_JOBS_COUNTED_SECONDS, lambda _key: app.system.count_jobs())
        """By kind and state; counting a million takes a while."""
        self.workers = TTLCache(_SAMPLED_SECONDS, lambda _key: app.system.workers())
        """Those that are there, and those that died lately."""
        self.worker_deaths = TTLCache(_SAMPLED_SECONDS, lambda _key: app.system.count_worker_deaths())
        """Since the database was made."""
        self.pruned_counts = TTLCache(_SAMPLED_SECONDS, lambda _key: app.system.count_pruned())
        """Jobs that were pruned since then, by kind and the state they ended in."""
        self.ages = TTLCache(_JOBS_COUNTED_SECONDS, lambda _key: app.system.ages())
        """How old the oldest items are."""
        self.backlog = TTLCache(_SAMPLED_SECONDS, lambda _key: app.messages.backlog())
        """What the outbox has not sent yet."""

    def all_lanes(self) -> list[LaneSample]:
        """What each worker said last of each of its kinds, and how the lanes are set that had nothing to do."""
        lanes = {(lane.kind, lane.worker): lane for lane in self.lanes.get().value}
        for worker in self.workers.get().value:
            if worker.alive:
                for kind, figures in worker.data.get("lanes", {}).items():
                    lanes.setdefault((kind, worker.name), LaneSample(kind, worker.seen_at, worker.name, figures))
        return list(lanes.values())

    def all_kinds(self) -> list[str]:
        """The kinds that are known here, that some worker knows, or of which there are jobs."""
        kinds = {kind.name for kind in self._app.kinds} | {kind for kind, _ in self.jobs.get().value}
        return sorted(kinds | {lane.kind for lane in self.all_lanes()})

    def _latest(self, _key: str | None) -> list[LaneSample]:
        since = datetime.now(UTC) - _SAMPLES_LOOKED_AT
        newest = {(sample.kind, sample.worker): sample for sample in self._app.system.samples(since=since)}
        return list(newest.values())


def transport_health(workers: Iterable[WorkerSeen]) -> dict[str, TransportHealth]:
    """How the running workers that read from a broker fare with it, by their names."""
    healths = {worker.name: worker.data.get("transport") for worker in workers if worker.alive}
    return {
        name: TransportHealth(bool(health.get("is_reachable")), health.get("lag") or {}, health.get("error"))
        for name, health in healths.items()
        if health
    }


def total_lag(healths: Iterable[TransportHealth]) -> dict[str, int]:
    """The messages of each topic that were not handled yet: each partition has one worker."""
    lag: Counter[str] = Counter()
    for health in healths:
        lag.update(health.lag)
    return dict(sorted(lag.items()))


def providers_of(lane: LaneSample) -> Iterator[tuple[str, dict[str, Any]]]:
    """What a lane's application says of those it asks, by their names."""
    gauges = lane.data.get("gauges")
    providers = gauges.get("providers") if isinstance(gauges, dict) else None
    for name, figures in providers.items() if isinstance(providers, dict) else ():
        if isinstance(figures, dict):
            yield name, figures
