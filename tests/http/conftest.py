"""A real server on a free port, with a client for each of its users."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import httpx2
import pytest
import uvicorn
from fastapi import APIRouter, FastAPI

from penstock import Penstock, Settings, load_settings
from penstock.http.uvicorn_server import Server
from penstock.server import create_app

NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # a client without one reads whom to trust, for 40 ms
SECRET = "a secret of sixty-four characters or more, which is what HS512 would like to have"

on_sqlite = pytest.mark.parametrize("migrated_url", ["sqlite"], indirect=True)


@dataclass
class Served:
    """A server, and who asks it."""

    app: Penstock
    server: Server
    url: str
    clients: list[httpx2.Client]

    def client(self, user: str | None = "ada", *, admin: bool = False, token: str | None = None) -> httpx2.Client:
        """Somebody with a token, or nobody."""
        tokens = self.server.config.app.state.penstock.tokens  # type: ignore[union-attr]
        if user is not None:
            token = tokens.issue(user, is_admin=admin)
        return self.client_with(headers={} if token is None else {"Authorization": f"Bearer {token}"})

    def client_with(self, **more: Any) -> httpx2.Client:
        """A client that is closed before the server."""
        made = httpx2.Client(base_url=self.url, timeout=30, verify=NO_TLS, **more)
        self.clients.append(made)
        return made


@contextmanager
def serving(app: Penstock, *, worker: bool, more: Sequence[APIRouter] = (), **options: Any) -> Iterator[Served]:
    """A server in a thread of this process; ``options`` are those of ``create_app``."""
    addresses: SimpleQueue[str] = SimpleQueue()
    api = create_app(app, worker=worker, more=more, **options)
    server = Server(api, host="127.0.0.1", port=0, grace=5, on_start=addresses.put)
    thread = threading.Thread(target=server.run)
    thread.start()
    one = Served(app, server, addresses.get(timeout=30), [])
    try:
        yield one
    finally:
        for client in one.clients:
            client.close()
        server.handle_exit(15, None)
        thread.join(30)
        assert not thread.is_alive(), "the server did not stop"


@contextmanager
def served_site(site: FastAPI) -> Iterator[str]:
    """Somebody's own application, served by uvicorn as they would; the answer is where."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(site, log_config=None, timeout_graceful_shutdown=5))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(30)
        listening.close()
        assert not thread.is_alive(), "the server did not stop"


@pytest.fixture
def settings(migrated_url: str, tmp_path: Path) -> Settings:
    """Short intervals, on each database."""
    return load_settings(
        database_url=migrated_url,
        files_directory=tmp_path / "files",
        heartbeat_seconds=0.05,
        sweep_seconds=0.5,
        jwt_secret=SECRET,
        session_check_seconds=3600,
    )


@pytest.fixture
def app(settings: Settings) -> Iterator[Penstock]:
    """A Penstock to serve."""
    one = Penstock(settings=settings)
    one.system.migrate()
    yield one
    one.close()


@pytest.fixture
def serve(app: Penstock) -> Iterator[Callable[..., Served]]:
    """Starts a server for ``app`` once its kinds are there."""
    opened = []

    def start(*, worker: bool = True) -> Served:
        context = serving(app, worker=worker)
        opened.append(context)
        return context.__enter__()

    yield start
    for context in opened:
        context.__exit__(None, None, None)
