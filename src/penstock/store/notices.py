"""What a transaction tells the workers once it has committed: a kind has work, or a job was stopped.

A notice is a short text, because that is what PostgreSQL's NOTIFY carries: the kind's name, or the job's id behind an
exclamation mark, which no kind's name has. A listener proves that it hears by a text behind a question mark. Anybody
who may connect may send to our channel: what is none of these means nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID, uuid4

_STOP_MARK = "!"
_PROOF = "?"


def stop_notice(job_id: UUID) -> str:
    """The notice that a job was stopped: its handlers need not continue."""
    return f"{_STOP_MARK}{job_id}"


def stopped_jobs(notices: Iterable[str]) -> frozenset[UUID]:
    """The jobs that were stopped, among what was told.

    >>> stopped_jobs(["price-check", "!01978f7e-7000-7000-8000-000000000001", "!hello"])
    frozenset({UUID('01978f7e-7000-7000-8000-000000000001')})
    """
    job_ids = (_id_of(notice[len(_STOP_MARK) :]) for notice in notices if notice.startswith(_STOP_MARK))
    return frozenset(job_id for job_id in job_ids if job_id is not None)


def new_proof() -> str:
    """A notice that a listener sends to itself."""
    return f"{_PROOF}{uuid4()}"


def is_proof(notice: str) -> bool:
    """Is this a listener's proof, which means nothing to others?"""
    return notice.startswith(_PROOF)


def _id_of(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
