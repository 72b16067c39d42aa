"""Mounted in an application that signs people in itself: its word counts, for the API, the pages and event streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import httpx2
import pytest
from fastapi import Depends, FastAPI, HTTPException
from starlette.requests import HTTPConnection

from penstock import Penstock, Settings, load_settings
from penstock.errors import NotSignedIn
from penstock.http import Authenticate, Identity
from penstock.server import create_app
from tests.http.conftest import NO_TLS, on_sqlite, served_site

OURS = {"Sec-Fetch-Site": "same-origin"}
THEIRS = {"Sec-Fetch-Site": "cross-site"}
PEOPLE = {"cookie-of-ada": "ada", "cookie-of-eve": "eve", "cookie-of-root": "root"}


class People:
    """Who is signed in at the site, and its own dependency."""

    def __init__(self) -> None:
        self.sessions = dict(PEOPLE)

    async def current_user(self, connection: HTTPConnection) -> str:
        """What routes of the site depend on."""
        name = self.sessions.get(connection.cookies.get("session", ""))
        if name is None:
            raise HTTPException(401, "sign in at the site")
        return name

    async def authenticate(self, connection: HTTPConnection) -> Identity:
        """What we are given."""
        name = await self.current_user(connection)
        return Identity(name, admin=name == "root")


@contextmanager
def site_with(app: Penstock, authenticate: Authenticate, people: People, **options: Any) -> Iterator[str]:
    """The address of a site that has us at ``/desk``."""
    jobs = create_app(app, authenticate=authenticate, **options)
    site = FastAPI(lifespan=jobs.router.lifespan_context)
    site.mount("/desk", jobs)

    async def me(name: str) -> str:
        return name

    me.__annotations__["name"] = Annotated[str, Depends(people.current_user)]
    site.get("/me")(me)
    with served_site(site) as address:
        yield address


@pytest.fixture
def own_settings(migrated_url: str, tmp_path: Path) -> Settings:
    """There is no secret for tokens, and none is made."""
    return load_settings(database_url=migrated_url, files_directory=tmp_path / "files", session_check_seconds=1e-9)


@pytest.fixture
def own_app(own_settings: Settings) -> Iterator[Penstock]:
    app = Penstock(settings=own_settings)
    app.system.migrate()
    app.kind("held")(lambda item: None)
    yield app
    app.close()


@pytest.fixture
def people() -> People:
    return People()


@pytest.fixture
def address(own_app: Penstock, people: People) -> Iterator[str]:
    with site_with(own_app, people.authenticate, people, sign_in_address="/login?from=jobs") as address:
        yield address


@contextmanager
def somebody(address: str, user: str | None) -> Iterator[httpx2.Client]:
    cookies = {} if user is None else {"session": f"cookie-of-{user}"}
    with httpx2.Client(base_url=address, timeout=30, verify=NO_TLS, cookies=cookies) as client:
        yield client


def test_the_sites_own_people_have_their_own_jobs(own_app: Penstock, address: str) -> None:
    job = own_app.submit("held", {}, owner="ada").job
    path = f"/desk/api/jobs/{job.id}"
    answers = {}
    for user in ("ada", "eve", "root", "stranger", None):
        with somebody(address, user) as client:
            answers[user] = (client.get(path).status_code, client.get("/desk/api/system").status_code)
    assert answers == {
        "ada": (200, 403),
        "eve": (404, 403),
        "root": (200, 200),
        "stranger": (401, 401),
        None: (401, 401),
    }
    with somebody(address, "ada") as client:
        assert client.get("/me").json() == "ada", "the same function is the site's dependency"
        assert client.get("/desk/api/jobs", headers={"Authorization": "Bearer forged"}).status_code == 200


@on_sqlite
def test_a_stranger_is_told_in_the_sites_words(address: str) -> None:
    with somebody(address, None) as client:
        answer = client.get("/desk/api/jobs")
    assert (answer.status_code, answer.json()["code"], answer.json()["message"]) == (
        401, "TOKEN_INVALID", "sign in at the site",
    )  # fmt: skip


@on_sqlite
def test_pages_lead_to_the_sites_sign_in_and_back(address: str) -> None:
    with somebody(address, None) as client:
        assert client.get("/desk/ui/jobs?q=a").headers["location"] == "/login?from=jobs&next=/desk/ui/jobs%3Fq%3Da"
        for asked, wanted in (("/desk/ui/system", "/desk/ui/system"), ("https://evil.example", "/desk/ui/jobs")):
            answer = client.get("/desk/ui/sign-in", params={"next": asked})
            assert answer.headers["location"] == f"/login?from=jobs&next={wanted}"
        for method, path in (("POST", "/desk/ui/sign-in"), ("POST", "/desk/ui/sign-out"), ("GET", "/desk/ui/enter/x")):
            assert client.request(method, path, headers=OURS).status_code in (404, 405), path
    with somebody(address, "ada") as client:
        page = client.get("/desk/ui/jobs")
        assert page.status_code == 200
        assert "ada" in page.text
        assert "Sign out" not in page.text


@on_sqlite
def test_without_a_sign_in_page_people_are_told(own_app: Penstock, people: People) -> None:
    with site_with(own_app, people.authenticate, people) as address, somebody(address, None) as client:
        page = client.get("/desk/ui/jobs")
    assert page.status_code == 401
    assert "Sign in first" in page.text


@on_sqlite
def test_a_page_of_another_site_changes_nothing(own_app: Penstock, address: str) -> None:
    job = own_app.submit("held", {}, owner="ada").job
    pause = f"/desk/api/jobs/{job.id}/pause"
    with somebody(address, "ada") as client:
        for headers in (THEIRS, {"Origin": "https://evil.example"}, {}, {"Authorization": "Basic YTpi"} | THEIRS):
            refused = client.post(pause, headers=headers)
            assert (refused.status_code, refused.json()["code"]) == (403, "OTHER_ORIGIN"), headers
        assert client.post(pause, headers=OURS).status_code == 200


@on_sqlite
def test_a_key_in_a_header_is_no_browsers_doing_unless_a_browser_says_so(own_app: Penstock, people: People) -> None:
    def by_key(connection: HTTPConnection) -> Identity | None:
        return Identity("ada") if connection.headers.get("x-api-key") == "key" else None

    job = own_app.submit("held", {}, owner="ada").job
    with site_with(own_app, by_key, people) as address, somebody(address, None) as client:
        key = {"X-Api-Key": "key"}
        assert client.post(f"/desk/api/jobs/{job.id}/pause", headers=key | THEIRS).json()["code"] == "OTHER_ORIGIN"
        assert client.post(f"/desk/api/jobs/{job.id}/pause", headers=key).status_code == 200
        assert client.get("/desk/api/jobs").json()["code"] == "TOKEN_MISSING"


def test_a_stream_ends_when_the_site_signs_somebody_out(own_app: Penstock, address: str, people: People) -> None:
    job = own_app.submit("held", {}, owner="ada").job
    for path in (f"/desk/api/jobs/{job.id}/events", "/desk/api/jobs/live"):
        people.sessions.update(PEOPLE)
        with somebody(address, "ada") as client, client.stream("GET", path) as stream:
            lines = stream.iter_lines()
            assert next(line for line in lines if line.startswith("data:"))
            del people.sessions["cookie-of-ada"]
            own_app.jobs.pause(job.id, reason="after the end")
            assert not [line for line in lines if "after the end" in line or '"paused"' in line], path
        own_app.jobs.resume(job.id)


class _Caller:
    """An object whose call is a coroutine."""

    async def __call__(self, connection: HTTPConnection) -> Identity:
        return Identity("ada")


async def _coroutine(user: str, connection: HTTPConnection) -> Identity:
    return Identity(user)


WAYS: dict[str, Callable[..., Any]] = {
    "a function": lambda connection: Identity("ada"),
    "an object": _Caller(),
    "a partial coroutine": partial(_coroutine, "ada"),
    "a function that answers with a coroutine": lambda connection: _coroutine("ada", connection),
}


def _raise(error: Exception) -> Callable[[HTTPConnection], None]:
    def fails(connection: HTTPConnection) -> None:
        raise error

    return fails


WRONG: dict[str, tuple[Callable[..., Any], int, str]] = {
    "a text": (lambda connection: "ada", 500, "IDENTITY_INVALID"),
    "no name": (lambda connection: Identity(""), 500, "IDENTITY_INVALID"),
    "a guest's": (lambda connection: Identity(None), 500, "IDENTITY_INVALID"),
    "a long name": (lambda connection: Identity("x" * 256), 500, "IDENTITY_INVALID"),
    "a line break": (lambda connection: Identity("a\n"), 500, "IDENTITY_INVALID"),
    "nobody": (lambda connection: None, 401, "TOKEN_MISSING"),
    "401": (_raise(HTTPException(401)), 401, "TOKEN_INVALID"),
    "403": (_raise(HTTPException(403)), 403, "NOT_ALLOWED"),
    "429": (_raise(HTTPException(429)), 429, "REQUEST_REFUSED"),
    "ours": (_raise(NotSignedIn("no")), 401, "TOKEN_MISSING"),
    "a defect": (_raise(RuntimeError("the password is swordfish")), 500, "INTERNAL_ERROR"),
}


@on_sqlite
def test_every_way_to_write_it_and_every_wrong_answer(own_app: Penstock, people: People) -> None:
    """One server for all: which function is asked is in a header."""

    def chosen(connection: HTTPConnection) -> Any:
        name = connection.headers["x-way"]
        way = WAYS[name] if name in WAYS else WRONG[name][0]
        return way(connection)

    with site_with(own_app, chosen, people) as address, somebody(address, None) as client:
        for name in WAYS:
            assert client.get("/desk/api/jobs", headers={"X-Way": name}).status_code == 200, name
        for name, (_, status, code) in WRONG.items():
            # A server closes the connection after a defect.
            headers = {"X-Way": name, "Connection": "close"}
            answer = client.get("/desk/api/jobs", headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (status, code), name
            assert "swordfish" not in answer.text
            assert client.get("/desk/ui/jobs", headers=headers).status_code == status, name


@on_sqlite
@pytest.mark.parametrize("way", WAYS)
def test_each_way_is_taken_by_itself(own_app: Penstock, people: People, way: str) -> None:
    with site_with(own_app, WAYS[way], people) as address, somebody(address, None) as client:
        assert client.get("/desk/api/jobs").json() == []


@on_sqlite
def test_sessions_of_the_site_are_ended_there_unless_it_says_when_they_began(own_app: Penstock, people: People) -> None:
    began: dict[str, float | None] = {"at": None}
    with (
        site_with(own_app, lambda connection: Identity("ada", issued_at=began["at"]), people) as address,
        somebody(address, None) as client,
    ):
        refused = client.post("/desk/api/sessions/end")
        assert (refused.status_code, refused.json()["code"]) == (422, "SESSIONS_FROM_ELSEWHERE")
        began["at"] = 1_700_000_000.0
        assert client.post("/desk/api/sessions/end").status_code == 200
        assert client.get("/desk/api/jobs").json()["code"] == "SESSION_ENDED"
