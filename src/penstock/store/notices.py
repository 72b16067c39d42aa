"""What a transaction tells the workers once it has committed: a kind has work, or a job was stopped.

A notice is a short text, because that is what PostgreSQL's NOTIFY carries: the kind's name, or the job's id behind an
exclamation mark, which no kind's name has.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

_STOPPED = "!"


def stopped(job_id: UUID) -> str:
    """Handlers of this job need not go on."""
    return f"{_STOPPED}{job_id}"


def stopped_jobs(notices: Iterable[str]) -> frozenset[UUID]:
    """The jobs that were stopped, among what was told.

    >>> stopped_jobs(["thumbnails", "!01978f7e-7000-7000-8000-000000000001"])
    frozenset({UUID('01978f7e-7000-7000-8000-000000000001')})
    """
    return frozenset(UUID(one[len(_STOPPED) :]) for one in notices if one.startswith(_STOPPED))
