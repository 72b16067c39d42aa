"""``penstock serve`` and ``penstock token``, from a terminal."""

from __future__ import annotations

import re
import signal
import socket
from collections import Counter

import httpx2

from tests.acceptance.terminal import Terminal, next_line


def test_it_serves_works_and_stops_when_told(real_terminal: Terminal) -> None:
    with real_terminal.running("serve", "--port", 0, PENSTOCK_SESSION_CHECK_SECONDS="0.000001") as server:
        said = next_line(server)
        assert said.startswith("serving on http://127.0.0.1:")
        address = said.split()[2].rstrip(";")
        token = real_terminal.run("token", "--user", "alice").out
        assert token.count("\n") == 1, "nothing but the token"
        job = real_terminal.app.submit("greet", {"name": "world"}, owner="alice").job
        done = real_terminal.app.jobs.wait(job.id, timeout=60)
        assert done.result == "hello world", "the embedded worker did it"
        with httpx2.Client(base_url=address, headers={"Authorization": f"Bearer {token.strip()}"}) as alice:
            shown = alice.get(f"/api/jobs/{job.id}").json()
            assert real_terminal.run("end-sessions", "--user", "alice").code == 0
            assert alice.get("/api/jobs").json()["code"] == "SESSION_ENDED"
        assert (shown["status"], shown["result"]) == ("completed", "hello world")
        server.send_signal(signal.SIGTERM)
        assert server.wait(timeout=60) == 0
        assert server.stderr is not None
        assert "Traceback" not in server.stderr.read()


def test_an_address_that_is_taken_is_said_plainly(terminal: Terminal) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = terminal.run("serve", "--port", taken.getsockname()[1])
    assert said.code == 2
    assert "(ADDRESS_IN_USE)" in said.err


def test_a_door_to_the_world_needs_a_key(terminal: Terminal) -> None:
    said = terminal.run("serve", "--host", "0.0.0.0", "--port", 0)
    assert (said.code, "(JWT_SECRET_MISSING)" in said.err) == (2, True)


def test_a_token_is_for_somebody(terminal: Terminal) -> None:
    wrong = terminal.run("token", "--user", "")
    assert (wrong.code, "(INVALID_INPUT)" in wrong.err) == (2, True)
    keys = {"PENSTOCK_JWKS_URL": "https://id.example/keys"}
    elsewhere = terminal.run("token", "--user", "alice", PENSTOCK_JWT_AUDIENCE="jobs", **keys)
    assert (elsewhere.code, "(TOKENS_FROM_ELSEWHERE)" in elsewhere.err) == (2, True)
    for_anybody = terminal.run("serve", "--port", 0, **keys)
    assert (for_anybody.code, "(JWT_AUDIENCE_MISSING)" in for_anybody.err) == (2, True)


def test_sessions_are_ended_for_somebody_or_for_everybody(terminal: Terminal) -> None:
    ada, everybody, nobody, both = terminal.run_each(
        ["end-sessions", "--user", "ada"],
        ["end-sessions", "--everybody"],
        ["end-sessions"],
        ["end-sessions", "--user", "ada", "--everybody"],
    )
    assert ada.out.startswith("the tokens of ada from before ")
    assert everybody.out.startswith("everybody's tokens from before ")
    for wrong in (nobody, both):
        assert (wrong.code, "--user NAME or --everybody (INVALID_INPUT)" in wrong.err) == (2, True)


TOLD = [
    "penstock.pdf: SUCCEEDED",
    "4 failed, as they should: torn.pdf .DOCUMENT_CORRUPT.",
    "1 canceled: slow-count after .* by owner demo: half was enough",
    "count-words found .* in 1,995 lines; 5 could not be read",
    "recipe: /soup: succeeded after .* - Miller's soup: 4 ingredients, 2 steps",
    "photos: scan: succeeded after .* - 44 done, 3 could not be read",
    "photos: thumbnails: succeeded after .* - 44 done",
    "photos: detect-duplicates: succeeded after .* groups with ",
    "photos: tag: succeeded after .* - 44 done",
    "products: products.csv: succeeded after .* - 36 done, 1 failed, 2 not found$",
    "products: 2 pictures: succeeded after .* - 2 done$",
]


def test_an_empty_database_gets_samples_and_one_that_is_not_keeps_its_own(terminal: Terminal) -> None:
    with terminal.running("serve", "--samples", "--port", 0) as server:
        address = next_line(server).split()[2].rstrip(";")
        link = next_line(server).rpartition(" ")[2]
        assert next_line(server) == "The database is empty. Sample jobs, for you to look at:"
        told = list(iter(lambda: next_line(server), "Ctrl-C stops the server."))
        assert any(line.startswith("13 succeeded: ") and "penstock.pdf" in line for line in told)
        for expected in TOLD:
            assert any(re.match(expected, line) for line in told), expected
        assert told[-1].endswith("token --user demo")
        assert told[-2].endswith(link), "the jobs have pushed it out of sight"
        with httpx2.Client(base_url=address, follow_redirects=True) as browser:
            assert 'data-user="demo" data-admin="true"' in browser.get(link).text, "the samples are demo's"
            assert "This link was used already" in browser.get(link).text
        token = terminal.run("token", "--user", "demo").out.strip()
        with httpx2.Client(base_url=address, headers={"Authorization": f"Bearer {token}"}) as demo:
            listed = demo.get("/api/jobs").json()
            assert demo.get("/", follow_redirects=True).status_code == 200
        statuses = Counter(one["status"] for one in listed)
        assert statuses == {"completed": 13, "failed": 4, "killed": 1}
        server.send_signal(signal.SIGINT)
        assert server.wait(timeout=60) == 0
        assert server.stderr is not None
        assert server.stderr.read() == ""
    with terminal.running("serve", "--samples", "--port", 0) as server:
        next_line(server)
        next_line(server)
        assert next_line(server) == "The database has jobs already: no samples are made."
        server.send_signal(signal.SIGTERM)
        assert server.wait(timeout=60) == 0


def test_samples_that_are_interrupted_are_left_to_the_next_server(terminal: Terminal) -> None:
    with terminal.running("serve", "--samples", "--port", 0) as server:
        next_line(server)
        list(iter(lambda: next_line(server).split(" ")[0], "count-words:"))
        server.send_signal(signal.SIGINT)
        assert server.wait(timeout=60) == 0
        assert server.stderr is not None
        assert "Traceback" not in server.stderr.read()
    assert not all(job.finished for job in terminal.app.jobs.list(limit=100)), "there is something left to do"


def test_samples_are_not_for_an_application_of_ones_own(terminal: Terminal) -> None:
    said = terminal.run("serve", "--samples", "--app", "workshop:app")
    assert (said.code, said.out) == (2, "")
    assert "the samples are of the installed applications, and need the worker" in said.err
