"""The small server of the samples: quiet about clients that leave, loud about mistakes of its own."""

import socket
from http.server import BaseHTTPRequestHandler

import pytest

from penstock_apps.loopback import serve_locally

RAISED = {"/left": ConnectionResetError("the client is gone"), "/mistake": RuntimeError("the shop is on fire")}


class Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        raise RAISED[self.path]

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def ask(port: int, path: str) -> bytes:
    """The whole answer; the connection ends after the server has dealt with the error."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        client.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
        return b"".join(iter(lambda: client.recv(1024), b""))


def test_a_client_that_went_away_is_not_worth_a_line(capfd: pytest.CaptureFixture[str]) -> None:
    with serve_locally(Answer) as port:
        assert ask(port, "/left") == b""
    assert capfd.readouterr().err == ""


def test_a_mistake_of_the_server_is_shown(capfd: pytest.CaptureFixture[str]) -> None:
    with serve_locally(Answer) as port:
        assert ask(port, "/mistake") == b""
    assert "the shop is on fire" in capfd.readouterr().err
