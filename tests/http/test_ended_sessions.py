"""Sessions that are ended: by whom, how soon every server knows, and what it costs."""

from __future__ import annotations

import time
from asyncio import run
from collections.abc import Callable

import httpx2
import pytest

from penstock import Penstock, Settings
from penstock.errors import NotSignedIn, StoreUnavailable
from penstock.http.ended_sessions import EndedSessions
from penstock.http.sessions import SESSION_COOKIE
from penstock.http.tokens import Identity
from penstock.store.observation import observe
from tests.http.conftest import Served, on_sqlite, serving

Serve = Callable[..., Served]
END = "/api/sessions/end"
AT_ONCE = 1e-9


def code_of(client: httpx2.Client) -> str:
    answer = client.get("/api/jobs")
    return "" if answer.status_code == 200 else answer.json()["code"]


def test_a_user_ends_all_of_their_own_and_nobody_elses(serve: Serve) -> None:
    served = serve(worker=False)
    first, second, bob = served.client(), served.client(), served.client("bob")
    answer = first.post(END)
    assert (answer.status_code, answer.json()["user"]) == (200, "ada")
    assert [code_of(client) for client in (first, second, bob)] == ["SESSION_ENDED", "SESSION_ENDED", ""]
    assert code_of(served.client()) == "", "a token that is made afterwards is good, in the same second too"


def test_an_admin_ends_those_of_others_and_everybodys(serve: Serve) -> None:
    served = serve(worker=False)
    ada, bob, root = served.client(), served.client("bob"), served.client("root", admin=True)
    for asked in ({"user": "bob"}, {"everybody": True}):
        refused = ada.post(END, json=asked)
        assert (refused.status_code, refused.json()["code"]) == (403, "ADMINS_ONLY")
    assert root.post(END, json={"user": "ada"}).json()["user"] == "ada"
    assert [code_of(client) for client in (ada, bob, root)] == ["SESSION_ENDED", "", ""]
    assert root.post(END, json={"everybody": True}).json()["user"] is None
    assert [code_of(client) for client in (bob, root)] == ["SESSION_ENDED", "SESSION_ENDED"]
    assert code_of(served.client("bob")) == ""


@on_sqlite
@pytest.mark.parametrize(
    "asked",
    [{"user": ""}, {"user": "x" * 256}, {"user": 7}, {"user": "a\0"}, {"all": True}, {"user": "a", "everybody": True}],
)
def test_a_wrong_question_ends_nothing(serve: Serve, asked: dict[str, object]) -> None:
    served = serve(worker=False)
    root = served.client("root", admin=True)
    assert root.post(END, json=asked).status_code == 422
    assert code_of(root) == ""


@on_sqlite
def test_a_page_of_another_site_ends_nothing(serve: Serve) -> None:
    served = serve(worker=False)
    token = served.client().headers["Authorization"].removeprefix("Bearer ")
    browser = served.client_with(cookies={SESSION_COOKIE: token})
    assert browser.post(END, headers={"Sec-Fetch-Site": "cross-site"}).json()["code"] == "OTHER_ORIGIN"
    assert code_of(browser) == ""


def test_another_server_of_the_same_database_notices_and_one_that_starts_later_knows(
    app: Penstock, serve: Serve, settings: Settings
) -> None:
    here = serve(worker=False)
    ada = here.client()
    elsewhere = Penstock(settings=settings.model_copy(update={"session_check_seconds": AT_ONCE}))
    later = Penstock(settings=settings)
    headers = dict(ada.headers)
    with serving(elsewhere, worker=False) as there:
        assert code_of(there.client_with(headers=headers)) == ""
        ada.post(END)
        assert code_of(there.client_with(headers=headers)) == "SESSION_ENDED"
    with serving(later, worker=False) as there:
        assert code_of(there.client_with(headers=headers)) == "SESSION_ENDED"
    elsewhere.close()
    later.close()


@on_sqlite
def test_the_command_ends_them_too(app: Penstock, serve: Serve) -> None:
    served = serve(worker=False)
    service = served.server.config.app.state.penstock  # type: ignore[union-attr]
    ada = served.client()
    app.system.end_sessions("ada")  # what `penstock end-sessions` calls, in a process of its own
    assert code_of(ada) == "", "the next look is an hour away"
    service.ended_sessions._due = 0.0
    assert code_of(ada) == "SESSION_ENDED"


def test_requests_cost_no_read_and_what_was_ended_is_known_after_the_interval(app: Penstock) -> None:
    moment = 100.0
    sessions = EndedSessions(app, every=5.0, now=lambda: moment)
    ada = Identity("ada", issued_at=time.time())
    names: list[str] = []
    with observe(app.store, lambda name, connection: names.append(name)):
        for _ in range(100):
            run(sessions.require_open(ada))
        assert names == ["ended_since"]
        app.system.end_sessions("ada")
        names.clear()
        moment = 104.9
        run(sessions.require_open(ada))
        assert names == []
        moment = 105.0
        with pytest.raises(NotSignedIn, match="was ended"):
            run(sessions.require_open(ada))
        assert names == ["ended_since"]


@on_sqlite
def test_nobody_is_let_in_while_it_cannot_be_known(app: Penstock, monkeypatch: pytest.MonkeyPatch) -> None:
    sessions = EndedSessions(app, every=5.0)

    def away(since: object) -> None:
        raise StoreUnavailable("the database is not available")

    monkeypatch.setattr(app.system, "ended_sessions", away)
    with pytest.raises(StoreUnavailable):
        run(sessions.require_open(Identity("ada", issued_at=time.time())))


@on_sqlite
def test_what_is_known_does_not_grow_with_sessions_that_have_run_out(app: Penstock) -> None:
    sessions = EndedSessions(app, every=3600.0)
    for number in range(20):
        sessions.end(Identity("ada", issued_at=1.0, expires_at=time.time() - 3600, session=f"{number:064}"))
    sessions.end(Identity("ada", issued_at=1.0, expires_at=1e300, session="long"))
    assert list(sessions._issued_before) == ["session:long"]


def test_a_stream_ends_with_its_session(app: Penstock, settings: Settings) -> None:
    """Before the next event: what happened after the end is not told."""
    app.kind("held")(lambda item: None)
    elsewhere = Penstock(settings=settings.model_copy(update={"session_check_seconds": AT_ONCE}))
    elsewhere.kind("held")(lambda item: None)
    job = app.submit("held", {}, owner="ada").job
    with serving(elsewhere, worker=False) as served:
        for address in (f"/api/jobs/{job.id}/events", f"/api/jobs/{job.id}/stream", "/api/jobs/live"):
            ada = served.client()
            with ada.stream("GET", address) as stream:
                lines = stream.iter_lines()
                begun = next(line for line in lines if line.startswith("data:"))
                app.system.end_sessions("ada")
                app.jobs.pause(job.id, reason="after the end")
                rest = list(lines)
            assert begun
            assert not [line for line in rest if "after the end" in line or '"paused"' in line], address
            app.jobs.resume(job.id)
    elsewhere.close()


@on_sqlite
def test_a_stream_ends_with_its_token(app: Penstock, serve: Serve) -> None:
    """The token has run out, within the seconds that clocks may differ: it lets in, and ends before the first event."""
    app.kind("held")(lambda item: None)
    served = serve(worker=False)
    job = app.submit("held", {}, owner="ada").job
    token = served.server.config.app.state.penstock.tokens.issue("ada", seconds=-2)  # type: ignore[union-attr]
    with served.client(None, token=token).stream("GET", f"/api/jobs/{job.id}/events") as stream:
        assert stream.status_code == 200
        assert not [line for line in stream.iter_lines() if line.startswith("data:")]


@on_sqlite
def test_a_stream_of_a_job_to_which_nothing_happens_ends_with_its_token(app: Penstock, serve: Serve) -> None:
    app.kind("held")(lambda item: None)
    served = serve(worker=False)
    job = app.submit("held", {}, owner="ada").job
    token = served.server.config.app.state.penstock.tokens.issue("ada", seconds=2)  # type: ignore[union-attr]
    with served.client(None, token=token).stream("GET", f"/api/jobs/{job.id}/events") as stream:
        assert any(line.startswith("data:") for line in stream.iter_lines())
