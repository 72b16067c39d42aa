"""A payload that would not come back equal, over HTTP: 422 with the field, whoever wrote the route."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
from fastapi import APIRouter

from penstock import ItemContext, Penstock
from tests.http.conftest import Served, serving


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (rb'{"when": [1, "a\u0000"]}', "params.when[1]"),
        (rb'{"price": NaN}', "params.price"),
        (b'{"big": 36893488147419103232}', "params.big"),
        (b'{"deep": ' + b"[" * 300 + b"]" * 300 + b"}", "params.deep"),
    ],
)
def test_params_that_cannot_be_kept_are_the_callers_to_mend(app: Penstock, body: bytes, field: str) -> None:
    routes = APIRouter()

    @app.kind("greet")
    def greet(item: ItemContext) -> None: ...

    @routes.post("/greet")
    def ask(params: dict[str, Any]) -> str:
        return str(app.submit("greet", params).job.id)

    with serving(app, worker=False, more=[routes]) as served:
        answer = _posted(served, body)
    assert answer.status_code == 422, answer.text
    problem = answer.json()
    assert problem["code"] == "PAYLOAD_NOT_STORABLE"
    assert problem["field"].startswith(field)
    assert app.jobs.list() == []


def _posted(served: Served, body: bytes) -> httpx2.Response:
    return served.client().post("/greet", content=body, headers={"Content-Type": "application/json"})
