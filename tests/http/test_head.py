"""HEAD: wherever GET is, with the same status and headers, and without a body."""

from __future__ import annotations

from collections.abc import Callable

import httpx2

from penstock import Penstock
from tests.http.conftest import Served, on_sqlite

Serve = Callable[..., Served]
pytestmark = on_sqlite
"""One database will do: what is asked is GET's."""

_CHANGING = {"date", "x-request-id", "content-length", "transfer-encoding"}
"""What two answers may differ in; a page's length too, when a job's age grows by a digit."""


def headers_of(answer: httpx2.Response) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name not in _CHANGING}


def test_head_is_answered_as_get_is_at_every_address(app: Penstock, serve: Serve) -> None:
    app.kind("held")(lambda item: None)
    root = serve(worker=False).client("root", admin=True)
    job = app.submit("held", {}, owner="root").job
    described = root.get("/openapi.json").json()["paths"]
    addresses = [path for path, methods in described.items() if "get" in methods and "{" not in path]
    addresses += [f"/api/jobs/{job.id}", f"/api/jobs/{job.id}/items", f"/api/jobs/{job.id}/items/export"]
    addresses += ["/docs", "/openapi.json", "/ui/jobs", f"/ui/jobs/{job.id}", "/ui/sign-in", "/ui/nowhere", "/nowhere"]
    streams = ["/api/jobs/live", f"/api/jobs/{job.id}/events", f"/api/jobs/{job.id}/stream"]
    assert {"/healthz", "/readyz", "/metrics", "/api/jobs"} <= set(addresses)
    for address in {*addresses, *streams}:
        head = root.head(address)
        with root.stream("GET", address) as got:
            assert (head.status_code, headers_of(head)) == (got.status_code, headers_of(got)), address
        assert head.content == b"", address
    measured = root.head("/healthz")
    assert measured.headers["content-length"] == str(len(root.get("/healthz").content))
    metrics = root.get("/metrics").text
    assert 'penstock_http_request_seconds_count{method="HEAD",route="/api/jobs/{job_id}",status="200"} 1.0' in metrics


def test_a_stream_that_only_its_head_was_asked_of_gives_its_place_back(app: Penstock, serve: Serve) -> None:
    served = serve(worker=False)
    ada = served.client()
    for _ in range(2 * app.settings.streams_per_user):
        assert ada.head("/api/jobs/live").status_code == 200


def test_what_cannot_be_asked_with_get_cannot_be_asked_with_head(app: Penstock, serve: Serve) -> None:
    ada = serve(worker=False).client()
    refused = ada.head("/api/sessions/end")
    assert (refused.status_code, refused.headers["allow"]) == (405, "POST")
    assert ada.put("/api/jobs").headers["allow"].startswith("GET, HEAD")


def test_a_link_that_signs_in_once_is_not_used_up_by_those_who_only_look(app: Penstock, serve: Serve) -> None:
    served = serve(worker=False)
    service = served.server.config.app.state.penstock  # type: ignore[union-attr]
    link = f"/ui/enter/{service.links.make(service.tokens.issue('ada'))}"
    somebody = served.client(None)
    looked = somebody.head(link)
    assert (looked.status_code, "set-cookie" in looked.headers) == (303, False)
    entered = somebody.get(link)
    assert (entered.status_code, "set-cookie" in entered.headers) == (303, True)
