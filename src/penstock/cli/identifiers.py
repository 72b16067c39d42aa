"""From what somebody typed to a job: its whole id, or a part that only one job has."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from uuid import UUID

from penstock.errors import InvalidInput, JobNotFound

if TYPE_CHECKING:
    from penstock.app import Jobs

LEAST = 6
RECENT = 10_000
_PAGE = 1_000
_PART = re.compile(r"[0-9a-f]+")


def short(job_id: UUID) -> str:
    """The part of an id that is shown in tables: its last group, which is random and so tells jobs apart."""
    return job_id.hex[-12:]


def find_id(jobs: Jobs, text: str) -> UUID:
    """The id of the job that ``text`` names, looked for among the newest 10,000 where it is only a part."""
    try:
        return UUID(text)
    except ValueError:
        pass
    part = text.strip().lower().replace("-", "")
    if not _PART.fullmatch(part):
        raise JobNotFound(f"{text!r} is not a job's id: an id is made of 0-9 and a-f")
    if len(part) < LEAST:
        raise JobNotFound(f"{text!r} is too short for a job's id; give at least {LEAST} characters of it")
    matches = _matching(jobs, part)
    if not matches:
        raise JobNotFound(f"no job among the newest {RECENT:,} has an id that begins or ends with {text!r}")
    if len(matches) > 1:
        some = ", ".join(map(str, matches[:3]))
        raise InvalidInput(
            f"{len(matches)} jobs have an id that begins or ends with {text!r} ({some}…): give more of it",
            code="JOB_AMBIGUOUS",
        )
    return matches[0]


def _matching(jobs: Jobs, part: str) -> list[UUID]:
    from penstock.app import JobCursor

    matches: list[UUID] = []
    after: JobCursor | None = None
    for _ in range(RECENT // _PAGE):
        page = jobs.list(after=after, limit=_PAGE)
        matches += [job.id for job in page if job.id.hex.startswith(part) or job.id.hex.endswith(part)]
        if len(page) < _PAGE:
            break
        after = JobCursor(page[-1].created_at, page[-1].id)
    return matches
