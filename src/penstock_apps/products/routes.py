"""Products over HTTP, beside the upload that the engine takes: what waits at a source, and a table to try."""

from __future__ import annotations

from dataclasses import asdict

from fastapi import Request
from starlette.responses import Response

from penstock.http import Json, Router, SignedIn, Submitting, documented
from penstock.ingest import UploadOptions
from penstock.lifecycle import JSON
from penstock_apps.products import schemas as shapes
from penstock_apps.products.forms import SAMPLE
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

    @routes.get(SAMPLE, summary="A table to try it with", response_class=Response, responses=_CSV | documented(401))
    async def get_sample_table(who: SignedIn) -> Response:
        """Products as people list them, some of them hard to find."""
        headers = {"Content-Disposition": 'attachment; filename="products.csv"'}
        return Response(sample_csv(), media_type="text/csv; charset=utf-8", headers=headers)

    return routes


def _address(request: Request) -> str | None:
    return request.client.host if request.client else None
