"""Five hundred ask for one page at once, at several servers on PostgreSQL: it is fetched once, and all are served."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from uuid import UUID

import httpx2

from penstock import JobState, Penstock, load_settings
from penstock.applications import install_applications
from penstock.http.tokens import OwnSecret, Tokens
from penstock_apps.recipes.kinds import RECIPE
from tests.applications.recipes.pages import PAGES
from tests.applications.recipes.site import Site
from tests.http.conftest import SECRET
from tests.sizes import size

SERVERS = 3
USERS = 50
SUBMISSIONS = size(200, 500)
PATIENCE = 60.0


@contextmanager
def server(programs: Path, database_url: str, site: Site) -> Iterator[str]:
    """``penstock serve`` in a process of its own; its address."""
    environment = os.environ | {
        "PENSTOCK_DATABASE_URL": database_url,
        "PENSTOCK_JWT_SECRET": SECRET,
        "PENSTOCK_FETCH_ALLOW_HOSTS": site.host,
        "PENSTOCK_GUEST_REQUESTS_PER_MINUTE": "100000",
        "PENSTOCK_LOG_LEVEL": "ERROR",
    }
    command = [str(programs / "penstock"), "serve", "--port", "0"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            assert said.startswith("serving on "), said
            yield said.split()[2].rstrip(";")
        finally:
            process.terminate()


def test_one_page_for_a_crowd(postgres_url: str, site: Site, programs: Path) -> None:
    app = install_applications(Penstock(settings=load_settings(database_url=postgres_url)))
    app.system.migrate()
    with ExitStack() as stack:
        addresses = [stack.enter_context(server(programs, postgres_url, site)) for _ in range(SERVERS)]
        gate = site.gate("/soup", PAGES["plain"])
        tokens = Tokens(OwnSecret(SECRET))
        users = [f"user {number}" for number in range(USERS)]
        headers = [{"Authorization": f"Bearer {tokens.issue(user)}"} for user in users]
        clients = [stack.enter_context(httpx2.Client(base_url=one, timeout=PATIENCE)) for one in addresses]

        def ask(number: int) -> tuple[str | None, str]:
            """Every other one is a user, the others are guests; the answer is who it was, and the request."""
            is_user = number % 2 == 0
            who = number // 2 % USERS
            answer = clients[number % SERVERS].post(
                "/parse-requests", json={"url": site.url("/soup")}, headers=headers[who] if is_user else {}
            )
            assert answer.status_code == 202, answer.text
            return (users[who] if is_user else None), answer.json()["requestId"]

        with ThreadPoolExecutor(16) as crowd:
            asked = Counter(crowd.map(ask, range(SUBMISSIONS)))
        assert len(asked) == USERS + 1, "one request for each user, and one for all guests"
        assert len({request for _, request in asked}) == USERS + 1, "and none is shared by others"
        gate.set()
        for _, request in asked:
            assert app.jobs.wait(UUID(request), timeout=PATIENCE).state is JobState.SUCCEEDED
        for user, request in asked:
            stranger = headers[0] if user != users[0] else headers[1]
            assert clients[0].get(f"/parse-requests/{request}", headers=stranger).status_code == 404
        shown = clients[1].get(f"/parse-requests/{asked_by_guests(asked)}").json()
        assert shown["recipe"]["title"] == "Tomato soup"
        assert clients[2].post("/parse-requests", json={"url": site.url("/soup")}).status_code == 200
    assert site.asked["/soup"] == 1
    assert len(app.jobs.list(kind=RECIPE, limit=1000)) == USERS + 1
    assert all(job.title is not None and job.title.startswith("http") for job in app.jobs.list(kind=RECIPE, limit=1000))
    app.close()


def asked_by_guests(asked: Counter[tuple[str | None, str]]) -> str:
    """The request that all guests share."""
    [request] = [request for user, request in asked if user is None]
    return request
