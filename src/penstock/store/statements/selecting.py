"""Which jobs a change is meant for."""

from __future__ import annotations

from sqlalchemy import ColumnElement, bindparam, true

from penstock.lifecycle.callers import Caller
from penstock.store.dialects.contract import Ways
from penstock.store.tables import jobs
from penstock.store.types import Identifier


def by_id() -> ColumnElement[bool]:
    """The one job named by ``the_job_id``."""
    return jobs.c.id == bindparam("the_job_id", type_=Identifier)


def by_ids(ways: Ways) -> ColumnElement[bool]:
    """The jobs listed in ``the_jobs``."""
    return ways.among(jobs.c.id, "the_jobs")


def visible_to(caller: Caller) -> ColumnElement[bool]:
    """The jobs this caller may see: an owner's own, a guest's those of guests, everyone else's all."""
    if caller.sees_everything:
        return true()
    return jobs.c.user_id.is_(None) if caller.id is None else jobs.c.user_id == caller.id


def followers(ways: Ways) -> ColumnElement[bool]:
    """The jobs that follow one of ``the_leaders``."""
    return ways.among(jobs.c.leader_id, "the_leaders")
