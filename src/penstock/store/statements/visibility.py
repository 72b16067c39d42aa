"""Which jobs a change is meant for."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, String, bindparam, true

from penstock.lifecycle.callers import Visibility
from penstock.store.dialects.contract import Dialect
from penstock.store.queries.visibility import free_followers, is_followed, key_in_use
from penstock.store.tables import jobs
from penstock.store.types import Identifier

__all__ = ["by_id", "by_ids", "free_followers", "is_followed", "key_in_use", "visible_to"]


def by_id() -> ColumnElement[bool]:
    """The one job named by ``the_job_id``."""
    return jobs.c.id == bindparam("the_job_id", type_=Identifier)


def by_ids(dialect: Dialect) -> ColumnElement[bool]:
    """The jobs listed in ``the_jobs``."""
    return dialect.among(jobs.c.id, "the_jobs")


def visible_to(sight: Visibility, user_id: ColumnElement[Any] = jobs.c.user_id) -> ColumnElement[bool]:
    """What a caller of that sight may see; whose it must be is in ``the_caller_id``."""
    match sight:
        case Visibility.EVERYTHING:
            return true()
        case Visibility.GUESTS:
            return user_id.is_(None)
        case Visibility.OWN:
            return user_id == bindparam("the_caller_id", type_=String)
