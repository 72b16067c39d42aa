"""Products over HTTP, beside the upload that the engine takes: what waits at a source, and a table to try."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import Form, Request, UploadFile
from starlette.responses import Response

from penstock.http import Json, Router, SignedIn, Submitting, documented, limit_body
from penstock.ingest import NO_DELIMITER, HandedFile, TableShape, UploadOptions
from penstock.lifecycle import JSON
from penstock_apps.products import schemas as shapes
from penstock_apps.products.forms import COLUMNS, FIELD_NAMES, SAMPLE
from penstock_apps.products.retailer import sample_csv
from penstock_apps.products.service import Products

_CSV: dict[int | str, dict[str, JSON]] = {200: {"content": {"text/csv": {}}, "description": "The table."}}


def routes_of(products: Products) -> Router:
    """The addresses of a products application."""
    routes = Router(tags=["products"])

    @routes.post(
        "/api/ingestion/scan",
        summary="Take in what waits at a source",
        response_model=shapes.Scanned,
        responses=documented(400, 401, 403, 413, 422, 429, 503),
    )
    def scan_source(body: shapes.ScanAsked, who: Submitting, request: Request) -> Response:
        """One job for each new file; a file that was taken in keeps its job, however often it is asked for.

        The source is one of the user's own (`PENSTOCK_INGEST_OWNERS`), or any for an admin. `more` says that other
        files wait: ask again for them.
        """
        report = products.intake.scan(
            body.source,
            who.caller,
            user=who.user,
            options=UploadOptions(job_type=body.job_type),
            ip_address=_address(request),
        )
        return Json(
            {
                "taken": [{"name": name, "jobId": str(job.id)} for name, job in report.new_jobs],
                "already": len(report.known_jobs),
                "failed": [asdict(file) for file in report.refused_files],
                "more": report.has_more,
            }
        )

    @routes.post(
        COLUMNS,
        summary="Look at the columns of a table",
        response_model=shapes.TableColumns,
        responses=documented(400, 401, 413, 422, 429, 503),
    )
    @limit_body(products.intake.max_body_bytes, is_spooled=True)
    def look_at_columns(
        file: UploadFile,
        who: SignedIn,
        encoding: Annotated[str | None, Form(max_length=40)] = None,
        delimiter: Annotated[str | None, Form(max_length=1)] = None,
        sheet: Annotated[str | None, Form(max_length=100)] = None,
    ) -> Response:
        """What each is taken for, before the table is sent for good; nothing is kept of it.

        Of a CSV the first 300 kB are enough. What is wrong is corrected with `mapping` of `POST /api/jobs`.
        """
        table = products.intake.look_at_columns(
            HandedFile(file.file, file.filename or "table"),
            UploadOptions(encoding=encoding, delimiter=delimiter, sheet=sheet),
            who.user,
        )
        return Json(
            {
                "columns": [
                    {"name": column.name, "choice": column.field, "examples": column.examples}
                    for column in table.columns
                ],
                "choices": [{"id": field, "name": name} for field, name in FIELD_NAMES.items()],
                "note": _how_it_is_read(table.shape),
            }
        )

    @routes.get(SAMPLE, summary="A table to try it with", response_class=Response, responses=_CSV | documented(401))
    async def get_sample_table(who: SignedIn) -> Response:
        """Products as people list them, some of them hard to find."""
        headers = {"Content-Disposition": 'attachment; filename="products.csv"'}
        return Response(sample_csv(), media_type="text/csv; charset=utf-8", headers=headers)

    return routes


def _how_it_is_read(shape: TableShape) -> str:
    """What was found out about a file beside its columns, which its sender may know better."""
    if shape.sheet is not None:
        return f"The sheet {shape.sheet!r} is read."
    separator = "one column" if shape.delimiter == NO_DELIMITER else f"split at {shape.delimiter!r}"
    return f"Read as {shape.encoding}, {separator}."


def _address(request: Request) -> str | None:
    return request.client.host if request.client else None
