"""``/api/system``: how all of it is doing, for admins."""

from __future__ import annotations

from starlette.responses import Response

from penstock.http.auth import Admin, AService
from penstock.http.errors import documented
from penstock.http.responses import Json
from penstock.http.routing import Router
from penstock.http.system.report import system_report
from penstock.http.system.schemas import SystemShown

routes = Router(prefix="/api", tags=["operating"])


@routes.get(
    "/system", summary="How all of it is doing", response_model=SystemShown, responses=documented(401, 403, 422, 503)
)
def get_system(_who: Admin, service: AService) -> Response:
    """For admins. Counts are kept for some seconds, so that looking often costs nothing."""
    return Json(system_report(service.stats, service.app.store))
