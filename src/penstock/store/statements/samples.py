"""What the workers' controllers chose, from time to time."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Delete, Float, Insert, Integer, Select, String, bindparam, delete, func, select

from penstock.store.dialects.contract import Dialect, Field, fields
from penstock.store.queries.built_once import built_once
from penstock.store.tables import lane_samples
from penstock.store.types import Moment, Payload

STRETCHES = fields(Field("begins", Moment()), Field("ends", Moment()))


@built_once
def insert_sample(dialect: Dialect) -> Insert:
    """One lane's sample; a second one of the same instant is no loss."""
    source = select(
        bindparam("the_kind", type_=String), dialect.now(), bindparam("the_worker", type_=String),
        bindparam("the_data", type_=Payload),
    )  # fmt: skip
    return dialect.insert_unless_taken(lane_samples).from_select(["kind", "at", "worker", "data"], source)


@built_once
def samples_since(dialect: Dialect, *, of_kind: bool, bounded: bool) -> Select[Any]:
    """Samples of a kind (or of all) behind a moment, perhaps up to another one, the oldest first."""
    asked = select(*lane_samples.c).where(lane_samples.c.at > bindparam("the_moment", type_=Moment))
    if of_kind:
        asked = asked.where(lane_samples.c.kind == bindparam("the_kind", type_=String))
    if bounded:
        asked = asked.where(lane_samples.c.at <= bindparam("the_end", type_=Moment))
    return asked.order_by(lane_samples.c.at, lane_samples.c.worker).limit(bindparam("the_limit", type_=Integer))


@built_once
def newest_sample(dialect: Dialect, *, bounded: bool) -> Select[Any]:
    """When the newest sample of a kind was made, perhaps up to some moment."""
    asked = select(func.max(lane_samples.c.at).label("at")).where(
        lane_samples.c.kind == bindparam("the_kind", type_=String)
    )
    return asked.where(lane_samples.c.at <= bindparam("the_end", type_=Moment)) if bounded else asked


@built_once
def last_of_stretches(dialect: Dialect) -> Select[Any]:
    """The last sample of a kind in each stretch of time: one look into the index for each, however many there are."""
    stretches = dialect.rows("stretches", STRETCHES)
    other = lane_samples.alias("other")
    of_kind = bindparam("the_kind", type_=String)
    last = (
        select(func.max(other.c.at))
        .where(other.c.kind == of_kind, other.c.at > stretches.c.begins, other.c.at <= stretches.c.ends)
        .correlate(stretches)
        .scalar_subquery()
    )
    return (
        select(*lane_samples.c)
        .select_from(stretches.join(lane_samples, (lane_samples.c.kind == of_kind) & (lane_samples.c.at == last)))
        .order_by(lane_samples.c.at, lane_samples.c.worker)
    )


@built_once
def delete_samples(dialect: Dialect) -> Delete:
    """Samples older than so many seconds."""
    oldest = dialect.later(dialect.now(), bindparam("the_seconds_ago", type_=Float))
    return delete(lane_samples).where(lane_samples.c.at < oldest)
