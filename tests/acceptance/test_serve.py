"""``penstock serve`` and ``penstock token``, from a terminal."""

from __future__ import annotations

import signal
import socket

import httpx2

from tests.acceptance.terminal import Terminal, next_line


def test_it_serves_works_and_stops_when_told(terminal: Terminal) -> None:
    with terminal.running("serve", "--port", 0) as server:
        said = next_line(server)
        assert said.startswith("serving on http://127.0.0.1:")
        address = said.split()[2].rstrip(";")
        token = terminal.run("token", "--user", "alice").out
        assert token.count("\n") == 1, "nothing but the token"
        job = terminal.app.submit("greet", {"name": "world"}, owner="alice").job
        done = terminal.app.wait(job.id, timeout=60)
        assert done.result == "hello world", "the embedded worker did it"
        with httpx2.Client(base_url=address, headers={"Authorization": f"Bearer {token.strip()}"}) as alice:
            shown = alice.get(f"/api/jobs/{job.id}").json()
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
    elsewhere = terminal.run("token", "--user", "alice", PENSTOCK_JWKS_URL="https://id.example/keys")
    assert (elsewhere.code, "(TOKENS_FROM_ELSEWHERE)" in elsewhere.err) == (2, True)
