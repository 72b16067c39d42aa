"""Samples of the lanes: what the controllers of each worker chose, beside the signals they followed.

They are for people to look at (a job's answer, ``/metrics``, charts); nothing decides by them. A day of them is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from penstock.lifecycle.payloads import JSON
from penstock.store.queries import samples as queries
from penstock.store.transaction import Transaction

Gauges = Callable[[], Mapping[str, JSON]]
"""Figures of an application's own, by name, asked for with each sample of its kind."""
_KEPT_SECONDS = 86_400.0
_MAX_SAMPLES = 2_000
_MOMENT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class LaneSample:
    """What one worker's lane for a kind did lately, and how it is set."""

    kind: str
    at: datetime
    worker: str
    data: dict[str, Any]


def keep_samples(transaction: Transaction, worker: str, samples: Mapping[str, dict[str, Any]]) -> None:
    """One sample for each kind a worker was busy with."""
    for kind, data in samples.items():
        queries.insert_sample(transaction, kind, worker, data)


def samples(
    transaction: Transaction,
    *,
    since: datetime,
    until: datetime | None = None,
    kind: str | None = None,
    limit: int = _MAX_SAMPLES,
) -> list[LaneSample]:
    """The samples behind a moment, perhaps up to another one, the oldest first; the oldest ``limit`` of them."""
    return _samples_from(queries.samples_since(transaction, since, until=until, kind=kind, limit=limit))


def thinned_samples(
    transaction: Transaction, kind: str, *, since: datetime, until: datetime | None, limit: int
) -> list[LaneSample]:
    """At most so many of a kind's samples, all of them or spread evenly over the time they were made in.

    A kind that was busy all day on ten workers has 170,000 samples. Instead of reading them all, the time is cut into
    ``limit`` stretches and each gives its last sample, whichever worker that is of; so the newest is always there.
    """
    first = samples(transaction, since=since, until=until, kind=kind, limit=limit + 1)
    if len(first) <= limit:
        return first
    end = queries.newest_sample(transaction, kind, until=until) or first[-1].at
    begin = first[0].at - _MOMENT
    cuts = [begin + (end - begin) * number / limit for number in range(limit)] + [end]
    stretches = [queries.Stretch(begins, ends) for begins, ends in pairwise(cuts)]
    last = _samples_from(queries.last_of_stretches(transaction, kind, stretches))
    # Two workers may have sampled in the same instant: one of them will do.
    return list({sample.at: sample for sample in last}.values())


def _samples_from(rows: Iterable[queries.SampleRow]) -> list[LaneSample]:
    return [LaneSample(row.kind, row.at, row.worker, row.data) for row in rows]


def forget_samples(transaction: Transaction) -> int:
    """Drop those older than a day; the answer is how many."""
    return queries.delete_samples(transaction, seconds=_KEPT_SECONDS)
