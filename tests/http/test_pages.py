"""The frames of the pages: their headers, what they may load, and what stands where there is nothing."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable

import pytest

from penstock import Penstock
from penstock.web.assets import assets
from tests.http.conftest import Served, on_sqlite
from tests.http.test_sessions import browser

FIRST_LOAD_BYTES = 150_000
pytestmark = on_sqlite


@pytest.fixture
def served(app: Penstock, serve: Callable[..., Served]) -> Served:
    app.kind("hold")(lambda item: None)
    return serve(worker=False)


def policy(header: str) -> dict[str, str]:
    parts = (part.strip().partition(" ") for part in header.split(";"))
    return {name: value for name, _, value in parts}


@pytest.mark.parametrize("path", ["/ui/jobs", "/ui/sign-in", "/ui/nothing", "/ui/enter/x", "/ui/jobs/not-an-id"])
def test_every_page_is_shut_to_others(served: Served, path: str) -> None:
    headers = browser(served).get(path).headers
    allowed = policy(headers["content-security-policy"])
    assert allowed["default-src"] == "'none'"
    assert allowed["script-src"] == allowed["style-src"] == allowed["connect-src"] == "'self'"
    assert allowed["frame-ancestors"] == allowed["base-uri"] == "'none'"
    assert allowed["require-trusted-types-for"] == "'script'"
    assert headers["x-frame-options"] == "DENY"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"


def test_pages_have_no_script_or_style_of_their_own(served: Served) -> None:
    job = served.app.submit("hold", owner="ada").job.id
    one = browser(served, admin=True)
    for path in ("/ui/jobs", f"/ui/jobs/{job}", "/ui/system", "/ui/sign-in"):
        text = one.get(path).text
        assert not re.search(r"<script(?![^>]*\b(src=|type=\"application/json\"))", text), path
        assert not re.search(r"<style|\sstyle=|\son[a-z]+=|javascript:", text), path
        assert not re.search(r"(src|href|action)=\"(https?:)?//", text), path


def test_static_files_are_kept_by_their_content(served: Served) -> None:
    version = assets().version
    client = served.client(None)
    kept = client.get(f"/ui/static/{version}/core/base.css")
    assert kept.headers["content-type"] == "text/css; charset=utf-8"
    assert "immutable" in kept.headers["cache-control"]
    assert client.get("/ui/static/other/core/base.css").headers["cache-control"] == "no-cache"
    for name in ("nothing.js", "..%2fpages.py", "%2e%2e/pages.py", "core/../../pages.py", "__init__.py"):
        assert client.get(f"/ui/static/{version}/{name}").status_code == 404


def test_the_first_load_is_light(served: Served) -> None:
    """The page of jobs with all it loads; also every other page, each counted on its own."""
    job = served.app.submit("hold", owner="ada").job.id
    one = browser(served, admin=True)
    for path in ("/ui/jobs", f"/ui/jobs/{job}", "/ui/system"):
        page = one.get(path)
        loaded = set(re.findall(r"/ui/static/[^/]+/([\w./-]+)", page.text))
        waiting = [name for name in loaded if name.endswith(".js")]
        while waiting:
            module = waiting.pop()
            for address in re.findall(r"from \"(\.[\w./-]+)\"", assets().files[module].body.decode()):
                name = posixpath.normpath(posixpath.join(posixpath.dirname(module), address))
                if name not in loaded:
                    loaded.add(name)
                    waiting.append(name)
        weight = len(page.content) + sum(len(assets().files[name].body) for name in loaded)
        assert weight < FIRST_LOAD_BYTES, f"{path} weighs {weight:,} bytes"


def test_somebody_elses_job_is_a_page_that_says_so(served: Served) -> None:
    job = served.app.submit("hold", owner="ada").job.id
    answer = browser(served, "eve").get(f"/ui/jobs/{job}")
    assert answer.status_code == 404
    assert "There is no such page, or it is not yours" in answer.text


def test_the_system_is_for_admins(served: Served) -> None:
    answer = browser(served).get("/ui/system")
    assert answer.status_code == 403
    assert "That page is for administrators" in answer.text
    assert browser(served, "root", admin=True).get("/ui/system").status_code == 200
    assert "/ui/system" not in browser(served).get("/ui/jobs").text


def test_what_is_not_there_has_no_place_in_the_navigation(served: Served) -> None:
    one = browser(served)
    text = one.get("/ui/jobs").text
    for name, status in (("pending", 404), ("mailbox", 404)):
        assert f"/ui/{name}" not in text
        assert one.get(f"/ui/{name}").status_code == status


def test_names_of_users_are_text(served: Served) -> None:
    text = browser(served, '"><img src=x onerror=alert(1)>').get("/ui/jobs").text
    assert "<img src=x" not in text
    assert "&lt;img src=x" in text


def test_the_first_address_leads_to_the_jobs(served: Served) -> None:
    for path in ("/", "/ui", "/ui/"):
        answer = served.client(None).get(path)
        assert (answer.status_code, answer.headers["location"]) == (303, "/ui/jobs")


def test_a_database_that_is_away_is_a_page(app: Penstock, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    from penstock.errors import StoreUnavailable

    def away(*_: object, **__: object) -> None:
        raise StoreUnavailable("the database does not answer")

    job = served.app.submit("hold", owner="ada").job.id
    monkeypatch.setattr(app, "get", away)
    answer = browser(served).get(f"/ui/jobs/{job}")
    assert answer.status_code == 503
    assert "The database does not answer" in answer.text
