"""The frame of the job page, as the server makes it: what is in it without any script, and who gets none."""

from __future__ import annotations

from collections.abc import Callable
from html import unescape
from uuid import uuid4

import pytest

from penstock import Penstock, owner
from penstock.lifecycle.transitions import TRANSITIONS
from penstock.web.assets import assets
from tests.http.conftest import Served

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def served(app: Penstock, serve: Callable[..., Served]) -> Served:
    """A server whose jobs wait for ever."""

    @app.kind("idle")
    def idle(item: object) -> None:
        """Nothing."""

    return serve(worker=False)


def test_the_page_knows_the_job_before_any_script_runs(app: Penstock, served: Served) -> None:
    job = app.submit("idle", {}, owner="ada", by=owner("ada"), title=HOSTILE).job
    answer = served.client("ada").get(f"/ui/jobs/{job.id}")
    assert answer.status_code == 200
    assert f'data-job="{job.id}"' in answer.text
    assert HOSTILE not in answer.text
    assert HOSTILE in unescape(answer.text)
    assert "owner: ada" in answer.text


def test_every_legal_way_stands_in_the_page(app: Penstock, served: Served) -> None:
    job = app.submit("idle", {}, owner="ada", by=owner("ada")).job
    text = served.client("ada").get(f"/ui/jobs/{job.id}").text
    for one in TRANSITIONS:
        sources = " ".join(sorted(one.sources))
        assert f'data-sources="{sources}" data-target="{one.target.value}"><th scope="row">{one.name}<' in text


def test_every_known_state_has_its_place_in_the_drawing() -> None:
    drawing = assets().files["components/lifecycle_diagram.js"].body.decode()
    states = {state.shown_as for one in TRANSITIONS for state in (*one.sources, one.target)}
    assert [state for state in sorted(states) if f"\n  {state.value}: [" not in drawing] == []


def test_a_job_of_somebody_else_is_a_page_that_says_so(app: Penstock, served: Served) -> None:
    job = app.submit("idle", {}, owner="ada", by=owner("ada"), title="ada's own").job
    for address in (job.id, uuid4()):
        answer = served.client("eve").get(f"/ui/jobs/{address}")
        assert answer.status_code == 404
        assert answer.headers["content-type"].startswith("text/html")
        assert "ada's own" not in unescape(answer.text)
        assert "There is no such page, or it is not yours" in answer.text
    assert served.client("root", admin=True).get(f"/ui/jobs/{job.id}").status_code == 200


def test_an_address_that_is_no_id_is_a_page_too(served: Served) -> None:
    answer = served.client("ada").get("/ui/jobs/nonsense")
    assert answer.status_code == 404
    assert "<h1>There is no such page</h1>" in answer.text
