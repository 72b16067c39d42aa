"""Conditions on jobs that several queries share: which jobs are meant, and who may see them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import CTE, ColumnElement, FromClause, String, and_, bindparam, literal_column, or_, select, true

from penstock.lifecycle.callers import Visibility
from penstock.lifecycle.states import ACTIVE, FLOWING, JobState
from penstock.store.dialects.dialect import Dialect
from penstock.store.tables import JOB_FOLLOWS, jobs
from penstock.store.types import Identifier


def by_id() -> ColumnElement[bool]:
    """The one job named by the parameter ``job_id``."""
    return jobs.c.id == bindparam("job_id", type_=Identifier)


def by_ids(dialect: Dialect) -> ColumnElement[bool]:
    """The jobs listed in the parameter ``job_ids``."""
    return dialect.among(jobs.c.id, "job_ids")


def visible_to(sight: Visibility, user_id: ColumnElement[Any] = jobs.c.user_id) -> ColumnElement[bool]:
    """What a caller of that sight may see; whose it must be is in the parameter ``caller_id``."""
    match sight:
        case Visibility.EVERYTHING:
            return true()
        case Visibility.GUESTS:
            return user_id.is_(None)
        case Visibility.OWN:
            return user_id == bindparam("caller_id", type_=String)


def free_followers(which: ColumnElement[bool]) -> CTE:
    """The ids of the jobs that follow and are meant, locked; those that somebody else has locked are left out.

    A follower in somebody's open transaction keeps neither its leader nor the other followers: the sweep lets it end as
    its leader did, once it is free.
    """
    return (
        select(jobs.c.id)
        .where(JOB_FOLLOWS, which)
        .order_by(jobs.c.id)
        .with_for_update(skip_locked=True, key_share=True)
        .cte("free")
    )


def key_in_use() -> ColumnElement[bool]:
    """Does another job lead the job's key, or has its owner another active one of it?"""
    other = jobs.alias("other")
    same_owner = other.c.user_id.is_not_distinct_from(jobs.c.user_id)
    return (
        select(other.c.id)
        .where(
            other.c.kind == jobs.c.kind,
            other.c.unique_key == jobs.c.unique_key,
            other.c.id != jobs.c.id,
            other.c.leader_id.is_(None),
            or_(_in_state(other, FLOWING), and_(_in_state(other, ACTIVE), same_owner)),
        )
        .exists()
    )


def is_followed() -> ColumnElement[bool]:
    """Does anybody wait for the job's work now?"""
    other = jobs.alias("other")
    return (
        select(other.c.id)
        .where(other.c.leader_id == jobs.c.id, other.c.leader_id.is_not(None), _in_state(other, ACTIVE))
        .exists()
    )


def _in_state(table: FromClause, states: frozenset[JobState]) -> ColumnElement[bool]:
    """In the words of the partial indexes, which a statement with parameters could not use."""
    return table.c.state.in_([literal_column(f"'{state}'") for state in JobState if state in states])
