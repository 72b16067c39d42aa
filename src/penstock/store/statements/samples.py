"""What the workers' controllers chose, from time to time."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Delete, Float, Insert, Integer, Select, String, bindparam, delete, select

from penstock.store.dialects.contract import Ways
from penstock.store.statements.built_once import built_once
from penstock.store.tables import lane_samples
from penstock.store.types import Moment, Payload


@built_once
def insert_sample(ways: Ways) -> Insert:
    """One lane's sample; a second one of the same instant is no loss."""
    source = select(
        bindparam("the_kind", type_=String), ways.now(), bindparam("the_worker", type_=String),
        bindparam("the_data", type_=Payload),
    )  # fmt: skip
    return ways.insert_unless_taken(lane_samples).from_select(["kind", "at", "worker", "data"], source)


@built_once
def samples_since(ways: Ways, *, of_kind: bool) -> Select[Any]:
    """Samples of a kind (or of all) behind a moment, the oldest first."""
    asked = select(*lane_samples.c).where(lane_samples.c.at > bindparam("the_moment", type_=Moment))
    if of_kind:
        asked = asked.where(lane_samples.c.kind == bindparam("the_kind", type_=String))
    return asked.order_by(lane_samples.c.at, lane_samples.c.worker).limit(bindparam("the_limit", type_=Integer))


@built_once
def delete_samples(ways: Ways) -> Delete:
    """Samples older than so many seconds."""
    oldest = ways.later(ways.now(), bindparam("the_seconds_ago", type_=Float))
    return delete(lane_samples).where(lane_samples.c.at < oldest)
