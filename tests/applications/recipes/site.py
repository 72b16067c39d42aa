"""A web site on this machine, for tests of fetching: what it answers is said by each test."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from penstock_apps.loopback import serve_locally

Reply = Callable[[BaseHTTPRequestHandler], None]


@dataclass
class Site:
    """Pages by path; how often each was asked for, and with what."""

    port: int = 0
    pages: dict[str, Reply] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)
    headers: list[dict[str, str]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)

    @property
    def host(self) -> str:
        """Its name and port, as a list of trusted hosts has them."""
        return f"127.0.0.1:{self.port}"

    def url(self, path: str) -> str:
        """Where a page is."""
        return f"http://{self.host}{path}"

    def page(self, path: str, text: str | bytes, *, status: int = 200, **headers: str) -> str:
        """Have a page; the answer is its address."""
        body = text.encode() if isinstance(text, str) else text
        sent = {"Content-Type": "text/html; charset=utf-8", "Content-Length": str(len(body))}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}

        def reply(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(status)
            for name, value in sent.items():
                handler.send_header(name, value)
            handler.end_headers()
            handler.wfile.write(body)

        self.pages[path] = reply
        return self.url(path)

    def gate(self, path: str, text: str) -> threading.Event:
        """Have a page that comes once the answer is set."""
        opened = threading.Event()
        self.page(path, text)
        at_once = self.pages[path]

        def reply(handler: BaseHTTPRequestHandler) -> None:
            opened.wait(30)
            at_once(handler)

        self.pages[path] = reply
        return opened


@contextmanager
def open_site() -> Iterator[Site]:
    """A site for the length of a ``with`` block."""
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.asked[self.path] += 1
            site.headers.append(dict(self.headers.items()))
            reply = site.pages.get(self.path)
            if reply is None:
                self.send_error(404)
            else:
                reply(self)

        def do_POST(self) -> None:
            site.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.do_GET()

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with serve_locally(Handler) as site.port:
        yield site
