"""What the workers' controllers chose, from time to time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Delete, Float, Insert, Integer, Select, String, bindparam, delete, func, select

from penstock.lifecycle.payloads import JSON
from penstock.store.dialects.dialect import Dialect, Field
from penstock.store.queries.built_once import built_once
from penstock.store.tables import lane_samples
from penstock.store.transaction import Transaction
from penstock.store.types import Moment, Payload

_STRETCHES = (Field("begins", Moment()), Field("ends", Moment()))


class SampleRow(NamedTuple):
    """What one worker's lane for a kind did lately, and how it is set."""

    kind: str
    at: datetime
    worker: str
    data: dict[str, JSON]


class Stretch(NamedTuple):
    """A stretch of time: behind its beginning, up to its end."""

    begins: datetime
    ends: datetime


def insert_sample(transaction: Transaction, kind: str, worker: str, data: dict[str, JSON]) -> None:
    """One lane's sample; a second one of the same instant is no loss."""
    transaction.execute(_insert_sample(transaction.dialect), {"kind": kind, "worker": worker, "data": data})


@built_once
def _insert_sample(dialect: Dialect) -> Insert:
    source = select(
        bindparam("kind", type_=String), dialect.now(), bindparam("worker", type_=String),
        bindparam("data", type_=Payload),
    )  # fmt: skip
    return dialect.insert_unless_taken(lane_samples).from_select(["kind", "at", "worker", "data"], source)


def samples_since(
    transaction: Transaction, since: datetime, *, until: datetime | None, kind: str | None, limit: int
) -> list[SampleRow]:
    """Samples of a kind (or of all) behind a moment, perhaps up to another one, the oldest first."""
    statement = _samples_since(transaction.dialect, of_kind=kind is not None, bounded=until is not None)
    parameters = {"since": since, "until": until, "kind": kind, "limit": limit}
    return transaction.fetch(SampleRow, statement, parameters)


@built_once
def _samples_since(_: Dialect, *, of_kind: bool, bounded: bool) -> Select[Any]:
    samples = _all_samples().where(lane_samples.c.at > bindparam("since", type_=Moment))
    if of_kind:
        samples = samples.where(lane_samples.c.kind == bindparam("kind", type_=String))
    if bounded:
        samples = samples.where(lane_samples.c.at <= bindparam("until", type_=Moment))
    return samples.order_by(lane_samples.c.at, lane_samples.c.worker).limit(bindparam("limit", type_=Integer))


def newest_sample(transaction: Transaction, kind: str, *, until: datetime | None) -> datetime | None:
    """When the newest sample of a kind was made, perhaps up to some moment."""
    statement = _newest_sample(transaction.dialect, bounded=until is not None)
    return transaction.value(datetime, statement, {"kind": kind, "until": until})


@built_once
def _newest_sample(_: Dialect, *, bounded: bool) -> Select[Any]:
    newest = select(func.max(lane_samples.c.at).label("at"))
    newest = newest.where(lane_samples.c.kind == bindparam("kind", type_=String))
    return newest.where(lane_samples.c.at <= bindparam("until", type_=Moment)) if bounded else newest


def last_of_stretches(transaction: Transaction, kind: str, stretches: Sequence[Stretch]) -> list[SampleRow]:
    """The last sample of a kind in each stretch of time: one look into the index for each, however many there are."""
    parameters = transaction.dialect.parameters("stretches", _STRETCHES, stretches)
    return transaction.fetch(SampleRow, _last_of_stretches(transaction.dialect), parameters | {"kind": kind})


@built_once
def _last_of_stretches(dialect: Dialect) -> Select[Any]:
    stretches = dialect.rows("stretches", _STRETCHES)
    other = lane_samples.alias("other")
    of_kind = bindparam("kind", type_=String)
    last = (
        select(func.max(other.c.at))
        .where(other.c.kind == of_kind, other.c.at > stretches.c.begins, other.c.at <= stretches.c.ends)
        .correlate(stretches)
        .scalar_subquery()
    )
    return (
        _all_samples()
        .select_from(stretches.join(lane_samples, (lane_samples.c.kind == of_kind) & (lane_samples.c.at == last)))
        .order_by(lane_samples.c.at, lane_samples.c.worker)
    )


def delete_samples(transaction: Transaction, *, seconds: float) -> int:
    """Delete samples older than so many seconds; the answer is how many."""
    return transaction.execute(_delete_samples(transaction.dialect), {"seconds_ago": -seconds})


@built_once
def _delete_samples(dialect: Dialect) -> Delete:
    oldest = dialect.later(dialect.now(), bindparam("seconds_ago", type_=Float))
    return delete(lane_samples).where(lane_samples.c.at < oldest)


def _all_samples() -> Select[Any]:
    return select(*(lane_samples.c[name] for name in SampleRow._fields))
