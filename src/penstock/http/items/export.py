"""A job's grid as a file."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from typing import Annotated, Literal
from uuid import UUID

from fastapi import Query
from starlette.responses import Response

from penstock.http.auth import AService, SignedIn
from penstock.http.errors import documented
from penstock.http.limits import Slots
from penstock.http.responses import Streamed
from penstock.http.routing import Router
from penstock.operations.export import Grid, export_grid

routes = Router(tags=["items"])
_CSV = "text/csv; charset=utf-8"
_XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


@routes.post(
    "/api/jobs/{job_id}/export",
    summary="A job's grid as a file",
    response_class=Response,
    responses={
        200: {"content": {"text/csv": {}, _XLSX: {}}, "description": "The file."},
        **documented(401, 404, 422, 429, 503, streams=True),
    },
)
def export_items(
    job_id: UUID,
    who: SignedIn,
    service: AService,
    file_format: Annotated[Literal["csv", "xlsx"], Query(alias="format")] = "csv",
) -> Response:
    """Straight from the database, exactly what the grid shows. Text that looks like a formula stays text."""
    grid = export_grid(service.app, job_id, who.caller)
    name = {"Content-Disposition": f'attachment; filename="job-{job_id}.{file_format}"'}
    if file_format == "csv":
        return Streamed(_csv(grid), media_type=_CSV, headers=name)
    chunks = _workbook(grid, service.exports)
    next(chunks)  # too many at once are refused while there is still a status to do it with
    return Streamed(chunks, media_type=_XLSX, headers=name)


def _csv(grid: Grid) -> Generator[bytes]:
    from penstock.exports.csv_text import csv_chunks

    with closing(grid.lines):
        yield from csv_chunks(grid.headers, grid.lines)


def _workbook(grid: Grid, slots: Slots) -> Generator[bytes]:
    """Nothing, once there is a slot, and then the workbook; the slot is free again when this is over or closed."""
    from penstock.exports.workbook import workbook_chunks

    with slots.take(), closing(grid.lines):
        yield b""
        yield from workbook_chunks(grid.headers, grid.lines, numbers=grid.number_headers)
