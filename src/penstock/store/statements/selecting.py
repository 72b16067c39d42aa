"""Which jobs a change is meant for."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, String, bindparam, true

from penstock.lifecycle.callers import Sight
from penstock.store.dialects.contract import Ways
from penstock.store.tables import jobs
from penstock.store.types import Identifier


def by_id() -> ColumnElement[bool]:
    """The one job named by ``the_job_id``."""
    return jobs.c.id == bindparam("the_job_id", type_=Identifier)


def by_ids(ways: Ways) -> ColumnElement[bool]:
    """The jobs listed in ``the_jobs``."""
    return ways.among(jobs.c.id, "the_jobs")


def visible_to(sight: Sight, user_id: ColumnElement[Any] = jobs.c.user_id) -> ColumnElement[bool]:
    """What a caller of that sight may see; whose it must be is in ``the_caller_id``."""
    match sight:
        case Sight.EVERYTHING:
            return true()
        case Sight.GUESTS:
            return user_id.is_(None)
        case Sight.OWN:
            return user_id == bindparam("the_caller_id", type_=String)


def followers(ways: Ways) -> ColumnElement[bool]:
    """The jobs that follow one of ``the_leaders``."""
    return ways.among(jobs.c.leader_id, "the_leaders")
