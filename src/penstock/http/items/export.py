"""A job's grid as a file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Query
from starlette.background import BackgroundTask
from starlette.responses import FileResponse, Response, StreamingResponse

from penstock.http.auth import AService, SignedIn
from penstock.http.errors import documented

routes = APIRouter(tags=["items"])
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
    headers, lines = service.app.acting_as(who.caller).items.export(job_id)
    name = {"Content-Disposition": f'attachment; filename="job-{job_id}.{file_format}"'}
    if file_format == "csv":
        from penstock.exports.csv_text import csv_chunks

        return StreamingResponse(csv_chunks(headers, lines), media_type="text/csv; charset=utf-8", headers=name)
    with service.exports.take():
        path = _write_workbook(headers, lines)
    return FileResponse(path, media_type=_XLSX, headers=name, background=BackgroundTask(path.unlink))


def _write_workbook(headers: tuple[str, ...], lines: Iterator[list[Any]]) -> Path:
    """A workbook in a temporary file, which the caller removes."""
    from penstock.exports.workbook import write_workbook

    with _new_file() as path:
        write_workbook(path, headers, lines)
        return path


@contextmanager
def _new_file() -> Iterator[Path]:
    """A name for a new file; nothing is left of it when the block fails."""
    with tempfile.NamedTemporaryFile(prefix="penstock-export-", suffix=".xlsx", delete=False) as file:
        path = Path(file.name)
    try:
        yield path
    except BaseException:
        path.unlink(missing_ok=True)
        raise
