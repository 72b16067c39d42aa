"""Which page of the list of jobs is requested: the same parameters for the list and for its live stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Query

from penstock.errors import InvalidInput
from penstock.http.moments import LONGEST_MOMENT, MOMENT
from penstock.http.pagination import read_cursor, written_cursor
from penstock.lifecycle.moments import read_moment
from penstock.lifecycle.states import JobState
from penstock.lifecycle.vocabularies import TASKS
from penstock.operations.read_jobs import LONGEST_SEARCH, JobCursor, JobFilter, JobPage

_STATES = {word: [state for state in JobState if TASKS.words[state] == word] for word in TASKS.statuses}
if TASKS.killed is not None:
    # A failure that something killed has that word.
    _STATES[TASKS.killed].append(JobState.FAILED)
_KILLED = {TASKS.words[JobState.FAILED]: False, TASKS.killed: True}
"""What a status says of failures: were they killed?"""
_TIME: dict[str, Any] = {"max_length": LONGEST_MOMENT, "json_schema_extra": MOMENT}


@dataclass(frozen=True, slots=True)
class PageRequest:
    """Which jobs, and behind which place of the list."""

    job_filter: JobFilter
    after: JobCursor | None


def read_page_request(
    status: Annotated[str | None, Query(description="Only jobs of this status.", examples=["running"])] = None,
    state: Annotated[
        str | None,
        Query(
            max_length=200,
            description="Only jobs in these states, separated by commas; finer than `status`.",
            examples=["paused,retrying"],
        ),
    ] = None,
    job_type: Annotated[str | None, Query(description="Only jobs of this kind.", max_length=64)] = None,
    q: Annotated[
        str | None,
        Query(
            max_length=LONGEST_SEARCH,
            description="Only jobs with this text in their title, kind, owner or error code, or whose id begins or "
            "ends with it (four digits or more). A page looks through 20,000 jobs; one that comes to its bound is "
            "short or empty, and its `next` link leads on.",
            examples=["prices.csv"],
        ),
    ] = None,
    earliest: Annotated[
        str | None,
        Query(alias="from", description="Only jobs created then or later; UTC unless it names a zone.", **_TIME),
    ] = None,
    latest: Annotated[str | None, Query(alias="to", description="Only jobs created before then.", **_TIME)] = None,
    cursor: Annotated[str | None, Query(description="From the `next` link of the page before.", max_length=200)] = None,
) -> PageRequest:
    """The query's parameters; contradictions are refused."""
    job_filter = JobFilter(
        states=_states(status, state),
        kind=job_type,
        search=q,
        created_from=read_moment(earliest, "from"),
        created_to=read_moment(latest, "to"),
        killed=_KILLED.get(status),
    )
    return PageRequest(job_filter, None if cursor is None else read_cursor(cursor))


APageRequest = Annotated[PageRequest, Depends(read_page_request)]


def next_cursor(page: JobPage) -> str | None:
    """The cursor of the page behind this one."""
    return None if page.next is None else written_cursor(page.next.created_at, page.next.id)


def _states(status: str | None, state: str | None) -> tuple[JobState, ...] | None:
    """The states both allow; none are given when neither says anything."""
    if status is None and state is None:
        return None
    if status is not None and status not in _STATES:
        raise InvalidInput(f"status is one of {', '.join(_STATES)}, not {status!r}", field="status")
    states = list(JobState)
    if state is not None:
        try:
            states = [JobState(word.strip()) for word in state.split(",")]
        except ValueError:
            raise InvalidInput(f"a state is one of {', '.join(JobState)}; got {state!r}", field="state") from None
    return tuple(name for name in states if status is None or name in _STATES[status])
