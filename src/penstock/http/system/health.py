"""``/healthz``, ``/readyz`` and ``/metrics``: for those who look after the server."""

from __future__ import annotations

from fastapi import Depends
from starlette.responses import Response

from penstock.http.access import may_read_metrics
from penstock.http.auth import AService
from penstock.http.errors import documented
from penstock.http.responses import Json
from penstock.http.routing import Router
from penstock.http.system.metrics import CONTENT_TYPE

routes = Router(tags=["operating"])


@routes.get("/healthz", summary="Is the process alive?", response_model=dict[str, str])
async def get_health() -> Response:
    """Yes. It says nothing about the database."""
    return Json({"status": "ok"})


@routes.get("/readyz", summary="Can it serve?", response_model=dict[str, str], responses=documented(503))
def get_readiness(service: AService) -> Response:
    """The database answers and its schema is ours."""
    service.app.system.check_database()
    return Json({"status": "ok"})


@routes.get(
    "/metrics",
    summary="Figures for Prometheus",
    response_class=Response,
    dependencies=[Depends(may_read_metrics)],
    responses=documented(401, 403, 503),
)
def get_metrics(service: AService) -> Response:
    """In Prometheus' text format; for this machine, PENSTOCK_METRICS_NETWORKS and admins."""
    return Response(service.metrics.text(), media_type=CONTENT_TYPE)
