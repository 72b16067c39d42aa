"""A job's grid, its errors, and what waits in all jobs."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal
from uuid import UUID

from fastapi import Query
from starlette.responses import Response

from penstock.errors import InvalidInput, NotAllowed, SwitchedOff
from penstock.http.auth import AService, SignedIn
from penstock.http.blank_params import BlankParams
from penstock.http.errors import documented
from penstock.http.items.pages import (
    MAX_ON_A_PAGE,
    GridQuery,
    PendingQuery,
    read_grid,
    read_pending,
    read_pending_of_job,
)
from penstock.http.items.report import error_group, grid_item, pending_item
from penstock.http.items.schemas import ErrorGroupShown, GridPage, PendingPage
from penstock.http.moments import LONGEST_MOMENT, MOMENT
from penstock.http.pagination import read_place, written_place
from penstock.http.responses import Json
from penstock.http.routing import Router
from penstock.http.tokens import Identity
from penstock.lifecycle.moments import read_moment
from penstock.lifecycle.states import OPEN_STATUSES, ItemStatus
from penstock.operations.read_items import TimeRange

routes = Router(tags=["items"])
lists = Router(tags=["items"], route_class=BlankParams)
_LOOKED_AT = documented(401, 404, 422, 503)

PageSize = Annotated[int, Query(alias="pageSize", ge=1, le=MAX_ON_A_PAGE, description="Items on a page.")]
After = Annotated[str | None, Query(max_length=200, description="`next` of the page before.")]
Statuses = Annotated[str | None, Query(max_length=200, description="Some of them, separated by commas.")]
From = Annotated[
    str | None,
    Query(
        alias="from",
        max_length=LONGEST_MOMENT,
        json_schema_extra=MOMENT,
        description="Only items that last changed then or later; UTC unless it names a zone.",
    ),
]
To = Annotated[
    str | None,
    Query(
        alias="to",
        max_length=LONGEST_MOMENT,
        json_schema_extra=MOMENT,
        description="Only items that last changed before then.",
    ),
]


@lists.get("/api/jobs/{job_id}/items", summary="A job's grid", response_model=GridPage, responses=_LOOKED_AT)
def list_items(
    job_id: UUID,
    who: SignedIn,
    service: AService,
    status: Annotated[str | None, Query(max_length=200, description="The same as `statuses`.")] = None,
    statuses: Statuses = None,
    page: Annotated[int | None, Query(ge=1, le=2**31 - 1, description="Counted from 1.")] = None,
    page_size: PageSize = 100,
    sort: Annotated[
        Literal["position", "-position", "updatedAt", "-updatedAt"] | None,
        Query(description="By position unless some statuses or times are asked for, then by last change."),
    ] = None,
    after: After = None,
    earliest: From = None,
    latest: To = None,
) -> Response:
    """Items as they stand in the database, by key: a page at the end costs what the first one costs.

    In the order of positions every item comes exactly once. In that of the last change an item that changes moves to
    the end, and comes again there if it was seen already. Backwards, following `next`, what has changed since the first
    page comes behind the item that changed longest ago: none is missed.
    """
    query = GridQuery(_statuses(statuses or status), _between(earliest, latest), sort, page, after, page_size)
    job, rows = service.app.store.read(partial(read_grid, job_id=job_id, caller=who.caller, query=query))
    kinds = service.app.kinds
    columns = kinds.get(job.kind).columns if job.kind in kinds else ()
    return Json(
        GridPage(
            items=[grid_item(row, columns) for row in rows],
            columns=list(columns) or ["result"],
            page=None if after is not None else page or 1,
            pageSize=page_size,
            total=job.progress.total if query.is_everything else None,
            next=written_place(rows[-1].place, in_order=query.in_order) if len(rows) == page_size else None,
        )
    )


@routes.get(
    "/api/jobs/{job_id}/errors",
    summary="What went wrong, by error code",
    response_model=list[ErrorGroupShown],
    responses=_LOOKED_AT,
)
def list_errors(job_id: UUID, who: SignedIn, service: AService) -> Response:
    """Items that failed or were not found, the most frequent code first."""
    return Json([error_group(group) for group in service.app.acting_as(who.caller).items.error_groups(job_id)])


@lists.get(
    "/api/pending",
    summary="What waits in all jobs",
    response_model=PendingPage,
    responses=documented(401, 403, 404, 422, 503),
)
def list_pending(
    who: SignedIn,
    service: AService,
    statuses: Statuses = None,
    user_id: Annotated[Literal["me", "all"], Query(alias="userId", description="`all` is for admins.")] = "me",
    job_type: Annotated[str | None, Query(alias="jobType", max_length=64)] = None,
    job_id: Annotated[
        UUID | None, Query(alias="jobId", description="Only of this job; `userId` is ignored then.")
    ] = None,
    page_size: PageSize = 100,
    after: After = None,
    earliest: From = None,
    latest: To = None,
) -> Response:
    """Open items of active jobs, those that changed longest ago first. The operator has to switch it on."""
    if not service.app.settings.pending_dashboard_enabled:
        raise SwitchedOff(
            "there is no list of all that waits here; PENDING_DASHBOARD_ENABLED switches it on",
            code="PENDING_DASHBOARD_DISABLED",
        )
    query = PendingQuery(
        statuses=_statuses(statuses) or list(OPEN_STATUSES),
        user=_whose(user_id, who),
        kind=job_type,
        after=None if after is None else read_place(after, in_order=False),
        between=_between(earliest, latest),
        page_size=page_size,
    )
    if job_id is None:
        rows = service.app.store.read(partial(read_pending, query=query))
    else:
        rows = service.app.store.read(partial(read_pending_of_job, job_id=job_id, caller=who.caller, query=query))
    open_items = service.stats.open_items.get(query.user)
    return Json(
        PendingPage(
            items=[pending_item(row) for row in rows],
            pageSize=page_size,
            next=written_place(rows[-1].place, in_order=False) if len(rows) == page_size else None,
            pendingCount=open_items.value,
            countedAt=open_items.at,
        )
    )


def _whose(user_id: str, who: Identity) -> str | None:
    if user_id == "me":
        return who.user
    if not who.admin:
        raise NotAllowed("only admins see what waits in all users' jobs", code="ADMINS_ONLY")
    return None


def _statuses(text: str | None) -> list[ItemStatus] | None:
    if text is None:
        return None
    try:
        return [ItemStatus(word.strip()) for word in text.split(",")]
    except ValueError:
        raise InvalidInput(f"a status is one of {', '.join(ItemStatus)}; got {text!r}", field="statuses") from None


def _between(earliest: str | None, latest: str | None) -> TimeRange | None:
    if earliest is None and latest is None:
        return None
    anytime = TimeRange()
    return TimeRange(read_moment(earliest, "from") or anytime.earliest, read_moment(latest, "to") or anytime.latest)
