"""Servers of our own for the tests of the sources: each on a free port of this machine, in a thread."""

from __future__ import annotations

import logging
import threading
import urllib.request
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from penstock.ingest.sources.ftp import Account
from penstock.ingest.sources.s3 import Access
from penstock_apps.loopback import serve_locally

BOUND_SECONDS = 20.0


class FtpServer:
    """A real FTP server over a folder, which a test can stop in the middle of anything."""

    def __init__(self, root: Path, *, without: tuple[str, ...] = ()) -> None:
        with warnings.catch_warnings():
            # On Python 3.11 it stands on asyncore, which warns of its end; on later ones it brings its own.
            warnings.simplefilter("ignore", DeprecationWarning)
            from pyftpdlib.authorizers import DummyAuthorizer  # type: ignore[import-untyped]
            from pyftpdlib.handlers import FTPHandler  # type: ignore[import-untyped]
            from pyftpdlib.ioloop import IOLoop  # type: ignore[import-untyped]
            from pyftpdlib.servers import FTPServer  # type: ignore[import-untyped]

        authorizer = DummyAuthorizer()
        authorizer.add_user("ann", "open sesame", str(root), perm="elr")
        handler = type(
            "Handler",
            (FTPHandler,),
            {
                "authorizer": authorizer,
                "unicode_errors": "surrogateescape",
                "auth_failed_timeout": 0,
                "proto_cmds": {name: said for name, said in FTPHandler.proto_cmds.items() if name not in without},
            },
        )
        self._server = FTPServer(("127.0.0.1", 0), handler, ioloop=IOLoop())
        self.account = Account("127.0.0.1", self._server.address[1], "ann", "open sesame")
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while not self._stopping.is_set():
            self._server.serve_forever(timeout=0.02, blocking=False, handle_exit=False)
        self._server.close_all()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(BOUND_SECONDS)
        assert not self._thread.is_alive()


@pytest.fixture
def ftp_servers() -> Iterator[Callable[..., FtpServer]]:
    """Starts FTP servers, and stops them after the test."""
    logging.getLogger("pyftpdlib").setLevel(logging.ERROR)
    started: list[FtpServer] = []

    def start(root: Path, **options: tuple[str, ...]) -> FtpServer:
        started.append(FtpServer(root, **options))
        return started[-1]

    yield start
    for server in started:
        server.stop()


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    """The URL of an S3 server for the whole run."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def s3_access(s3_endpoint: str) -> Access:
    return Access(key_id="key", secret="secret", endpoint=s3_endpoint)


@pytest.fixture
def s3_bucket(s3_endpoint: str) -> str:
    """The name of a new, empty bucket."""
    name = f"inbox-{uuid.uuid4().hex}"
    request = urllib.request.Request(f"{s3_endpoint}/{name}", method="PUT")
    with urllib.request.urlopen(request, timeout=BOUND_SECONDS) as answer:
        assert answer.status == 200
    return name


@contextmanager
def http_server_that_answers(status: int) -> Iterator[str]:
    """An HTTP server that has one answer for everything."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_HEAD(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            """Nothing: the tests' output is for the tests."""

    with serve_locally(Handler) as port:
        yield f"http://127.0.0.1:{port}"
