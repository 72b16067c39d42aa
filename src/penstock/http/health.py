"""``/healthz``, ``/readyz`` and ``/metrics``: for those who look after the server."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from penstock.http.auth import AService
from penstock.http.errors import documented
from penstock.http.metrics import CONTENT_TYPE
from penstock.http.responses import Json

routes = APIRouter(tags=["operating"])


@routes.get("/healthz", summary="Is the process alive?", response_model=dict[str, str])
async def alive() -> Response:
    """Yes. It says nothing about the database."""
    return Json({"status": "ok"})


@routes.get("/readyz", summary="Can it serve?", response_model=dict[str, str], responses=documented(503))
def ready(one: AService) -> Response:
    """The database answers and its schema is ours."""
    one.app.system.check_database()
    return Json({"status": "ok"})


@routes.get("/metrics", summary="Figures for Prometheus", response_class=Response)
def metrics(one: AService) -> Response:
    """In Prometheus' text format."""
    return Response(one.metrics.text(), media_type=CONTENT_TYPE)
