"""The pipeline over HTTP: a job's grid, its export, what people do to it, and what waits."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Body, Query
from starlette.background import BackgroundTask
from starlette.responses import FileResponse, Response, StreamingResponse

from penstock.errors import InvalidInput, NotAllowed, SwitchedOff
from penstock.http.auth import AService, SignedIn
from penstock.http.blank_params import BlankParams
from penstock.http.errors import documented
from penstock.http.pagination import read_place, written_place
from penstock.http.responses import Json
from penstock.http.service import Service
from penstock.http.tokens import Identity
from penstock.http.vocabularies.moments import LONGEST_MOMENT, MOMENT, read_moment
from penstock.http.vocabularies.pipeline import schemas as shapes
from penstock.http.vocabularies.pipeline import translation as words
from penstock.http.vocabularies.tasks.routes import job_report
from penstock.http.vocabularies.tasks.schemas import JobStatusResponse
from penstock.lifecycle.job import Job
from penstock.lifecycle.states import ItemStatus
from penstock.operations.read_items import ItemCursor, ItemRow, TimeRange

routes = APIRouter(tags=["pipeline"])
lists = APIRouter(tags=["pipeline"], route_class=BlankParams)
MOST_ON_A_PAGE = 500
DEEPEST = 10_000
"""Items a numbered page of some statuses may lie behind; further on, cursors lead."""
OPEN = frozenset((ItemStatus.PENDING, ItemStatus.PROCESSING))
_LONGEST_KICKOFF_MS = 30_000
_LOOKED_AT = documented(401, 404, 422, 503)
_CHANGED = documented(401, 404, 409, 422, 503)
_WITH_BODY = _CHANGED | documented(400, 413)
_XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

Why = Annotated[shapes.Reason | None, Body()]
Again = Annotated[shapes.Reprocess | None, Body()]
PageSize = Annotated[int, Query(alias="pageSize", ge=1, le=MOST_ON_A_PAGE, description="Items on a page.")]
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


@lists.get("/api/jobs/{job_id}/items", summary="A job's grid", response_model=shapes.GridPage, responses=_LOOKED_AT)
def get_items(
    job_id: UUID,
    who: SignedIn,
    one: AService,
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
    job = one.app.acting_as(who.caller).jobs.get(job_id)
    wanted = _statuses(statuses or status)
    between = _between(earliest, latest)
    order = sort or ("position" if wanted is None and between is None else "updatedAt")
    in_order = order.endswith("position")
    if in_order and not (wanted is None and between is None):
        raise InvalidInput(
            "some statuses or times come in the order of their last change: sort=updatedAt or sort=-updatedAt",
            field="sort",
        )
    if page is not None and after is not None:
        raise InvalidInput("a page is asked for by its number or by a cursor, not by both", field="page")
    descending = order.startswith("-")

    def look(place: ItemCursor | None, limit: int) -> list[ItemRow]:
        chosen = wanted if in_order else wanted or list(ItemStatus)
        return one.app.acting_as(who.caller).items.page(
            job_id, statuses=chosen, after=place, between=between, limit=limit, descending=descending
        )

    if after is not None:
        place: ItemCursor | None = read_place(after, in_order=in_order, descending=descending)
    else:
        place = _numbered(page or 1, page_size, job, look, in_order=in_order, descending=descending)
    found = look(place, page_size)
    if after is None:
        # A numbered page shows the list as it is now; what has changed since is for those who walk through it.
        found = [item for item in found if not item.place.turned]
    columns = _columns(one, job)
    return Json(
        {
            "items": [words.grid_item(item, columns) for item in found],
            "columns": list(columns) or ["result"],
            "page": None if after is not None else page or 1,
            "pageSize": page_size,
            "total": job.progress.total if wanted is None and between is None else None,
            "next": written_place(found[-1].place, in_order=in_order) if len(found) == page_size else None,
        }
    )


@routes.get(
    "/api/jobs/{job_id}/errors",
    summary="What went wrong, by error code",
    response_model=list[shapes.ErrorGroupShown],
    responses=_LOOKED_AT,
)
def get_errors(job_id: UUID, who: SignedIn, one: AService) -> Response:
    """Items that failed or were not found, the most frequent code first."""
    return Json([words.error_group(group) for group in one.app.acting_as(who.caller).items.error_groups(job_id)])


@routes.post(
    "/api/jobs/{job_id}/kickoff",
    summary="Work on a job for a while",
    response_model=JobStatusResponse,
    responses=_CHANGED | documented(429),
)
def kickoff(
    job_id: UUID,
    who: SignedIn,
    one: AService,
    duration_ms: Annotated[int, Query(alias="durationMs", ge=100, le=_LONGEST_KICKOFF_MS)] = 5000,
) -> Response:
    """The request ends when the time is over or the job is; again and again, it brings the job to its end."""
    with one.kickoffs.taken():
        return Json(
            job_report(one.app.acting_as(who.caller).jobs.kickoff(job_id, duration=duration_ms / 1000.0), who, one)
        )


@routes.post("/api/jobs/{job_id}/pause", summary="Pause a job", response_model=JobStatusResponse, responses=_WITH_BODY)
def pause(job_id: UUID, who: SignedIn, one: AService, given: Why = None) -> Response:
    """Items in hand finish, no new ones start."""
    return Json(
        job_report(one.app.acting_as(who.caller).jobs.pause(job_id, reason=given.reason if given else None), who, one)
    )


@routes.post(
    "/api/jobs/{job_id}/resume",
    summary="Let a paused job go on",
    response_model=JobStatusResponse,
    responses=_WITH_BODY,
)
def resume(job_id: UUID, who: SignedIn, one: AService, given: Why = None) -> Response:
    """From where it was."""
    return Json(
        job_report(one.app.acting_as(who.caller).jobs.resume(job_id, reason=given.reason if given else None), who, one)
    )


@routes.post(
    "/api/jobs/{job_id}/commit", summary="Use a job's result", response_model=JobStatusResponse, responses=_WITH_BODY
)
def commit(job_id: UUID, who: SignedIn, one: AService, given: Why = None) -> Response:
    """The owner has used it; it waits no longer."""
    return Json(
        job_report(one.app.acting_as(who.caller).jobs.commit(job_id, reason=given.reason if given else None), who, one)
    )


@routes.post(
    "/api/jobs/{job_id}/abandon",
    summary="Give up a job's result",
    response_model=JobStatusResponse,
    responses=_WITH_BODY,
)
def abandon(job_id: UUID, who: SignedIn, one: AService, given: Why = None) -> Response:
    """The owner does not want it."""
    return Json(
        job_report(one.app.acting_as(who.caller).jobs.abandon(job_id, reason=given.reason if given else None), who, one)
    )


@routes.post(
    "/api/jobs/{job_id}/reprocess",
    summary="Run failed items again",
    response_model=JobStatusResponse,
    responses=_WITH_BODY,
)
def reprocess(job_id: UUID, who: SignedIn, one: AService, given: Again = None) -> Response:
    """In a new run. Items that have used up their tries, and those that failed for good, only where that is asked."""
    asked = given or shapes.Reprocess()
    if (asked.scope == "items") != (asked.item_ids is not None):
        raise InvalidInput("scope 'items' needs itemIds, and scope 'job' has none", field="itemIds")
    job = one.app.acting_as(who.caller).jobs.reprocess(
        job_id,
        statuses=asked.statuses,
        item_ids=None if asked.item_ids is None else [_item_id(text) for text in asked.item_ids],
        error_codes=asked.error_codes,
        reset_attempts=asked.reset_attempts,
        permanent=asked.permanent,
        reason=asked.reason,
    )
    return Json(job_report(job, who, one))


@routes.post(
    "/api/jobs/{job_id}/export",
    summary="A job's grid as a file",
    response_class=Response,
    responses={
        200: {"content": {"text/csv": {}, _XLSX: {}}, "description": "The file."},
        **documented(401, 404, 422, 429, 503, streams=True),
    },
)
def export(
    job_id: UUID,
    who: SignedIn,
    one: AService,
    file_format: Annotated[Literal["csv", "xlsx"], Query(alias="format")] = "csv",
) -> Response:
    """Straight from the database, exactly what the grid shows. Text that looks like a formula stays text."""
    headers, lines = one.app.acting_as(who.caller).items.export(job_id)
    name = {"Content-Disposition": f'attachment; filename="job-{job_id}.{file_format}"'}
    if file_format == "csv":
        from penstock.exports.csv_text import csv_chunks

        return StreamingResponse(csv_chunks(headers, lines), media_type="text/csv; charset=utf-8", headers=name)
    with one.exports.taken():
        path = _workbook(headers, lines)
    return FileResponse(path, media_type=_XLSX, headers=name, background=BackgroundTask(path.unlink))


@lists.get(
    "/api/pending",
    summary="What waits in all jobs",
    response_model=shapes.PendingPage,
    responses=documented(401, 403, 404, 422, 503),
)
def get_pending(
    who: SignedIn,
    one: AService,
    statuses: Statuses = None,
    user_id: Annotated[Literal["me", "all"], Query(alias="userId", description="`all` is for admins.")] = "me",
    job_type: Annotated[str | None, Query(alias="jobType", max_length=64)] = None,
    job_id: Annotated[
        UUID | None, Query(alias="jobId", description="Only of this job; who may see it decides, not `userId`.")
    ] = None,
    page_size: PageSize = 100,
    after: After = None,
    earliest: From = None,
    latest: To = None,
) -> Response:
    """Open items of jobs that go on, those that changed longest ago first. Where the operator has switched it on."""
    if not one.app.settings.pending_dashboard_enabled:
        raise SwitchedOff(
            "there is no list of all that waits here; PENDING_DASHBOARD_ENABLED switches it on",
            code="PENDING_DASHBOARD_DISABLED",
        )
    user = _whose(user_id, who)
    wanted = _statuses(statuses) or [ItemStatus.PENDING, ItemStatus.PROCESSING]
    place, between = None if after is None else read_place(after, in_order=False), _between(earliest, latest)
    if job_id is None:
        found = one.app.acting_as(who.caller).items.pending(
            user=user, statuses=wanted, kind=job_type, after=place, between=between, limit=page_size
        )
    else:
        found = _waiting_in(job_id, job_type, wanted, place, between, page_size, who, one)
    counted = one.figures.open_items.get(user)
    return Json(
        {
            "items": [{**words.item_fields(item), "userId": item.user_id} for item in found],
            "pageSize": page_size,
            "next": written_place(found[-1].place, in_order=False) if len(found) == page_size else None,
            "pendingCount": counted.value,
            "countedAt": counted.at,
        }
    )


def _waiting_in(
    job_id: UUID,
    job_type: str | None,
    statuses: list[ItemStatus],
    after: ItemCursor | None,
    between: TimeRange | None,
    limit: int,
    who: Identity,
    one: Service,
) -> list[ItemRow]:
    """What waits in one job, which whoever asks may see."""
    if not OPEN.issuperset(statuses):
        raise InvalidInput("what waits is PENDING or PROCESSING; a job's own items have the others", field="statuses")
    job = one.app.acting_as(who.caller).jobs.get(job_id)
    if job_type not in (None, job.kind) or job.finished:
        return []
    return one.app.acting_as(who.caller).items.page(
        job_id, statuses=statuses, after=after, between=between, limit=limit
    )


def _whose(user_id: str, who: Identity) -> str | None:
    if user_id == "me":
        return who.user
    if not who.admin:
        raise NotAllowed("only admins see what waits for all users", code="ADMINS_ONLY")
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
    job_report = TimeRange()
    return TimeRange(
        read_moment(earliest, "from") or job_report.earliest, read_moment(latest, "to") or job_report.latest
    )


def _numbered(
    page: int,
    page_size: int,
    job: Job,
    look: Callable[[ItemCursor | None, int], list[ItemRow]],
    *,
    in_order: bool,
    descending: bool,
) -> ItemCursor | None:
    """Where a numbered page begins: by arithmetic in the order of positions, else by a walk that has a bound."""
    skipped = (page - 1) * page_size
    if in_order:
        behind = job.progress.total + 1 - skipped if descending else skipped
        return ItemCursor(position=max(0, min(behind, 2**31 - 1)))
    if skipped > DEEPEST:
        raise InvalidInput(
            f"page {page:,} lies behind more than {DEEPEST:,} items; follow `next` with `after` instead",
            field="page",
            code="PAGE_TOO_DEEP",
        )
    place: ItemCursor | None = None
    while skipped:
        passed = look(place, min(skipped, MOST_ON_A_PAGE))
        if not passed:
            break
        skipped -= len(passed)
        place = passed[-1].place
    return place


def _item_id(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise InvalidInput(f"{text[:40]!r} is not the id of an item", field="itemIds")
    return int(text)


def _columns(one: Service, job: Job) -> tuple[str, ...]:
    return one.app.kinds.get(job.kind).columns if job.kind in one.app.kinds else ()


def _workbook(headers: tuple[str, ...], lines: Iterator[list[Any]]) -> Path:
    """A workbook in a file of its own, which somebody else removes."""
    from penstock.exports.workbook import write_workbook

    with _made() as path:
        write_workbook(path, headers, lines)
        return path


@contextmanager
def _made() -> Iterator[Path]:
    """A name for a new file; nothing is left of it when the block fails."""
    with tempfile.NamedTemporaryFile(prefix="penstock-export-", suffix=".xlsx", delete=False) as file:
        path = Path(file.name)
    try:
        yield path
    except BaseException:
        path.unlink(missing_ok=True)
        raise
