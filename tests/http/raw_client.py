"""A client that sends what it likes, when it likes: bytes over a socket, and the answers that come."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

PATIENCE = 30.0


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def code(self) -> str:
        """The code of a problem."""
        problem: dict[str, Any] = json.loads(self.body)
        return str(problem["code"])


class RawClient:
    """One connection."""

    def __init__(self, url: str, *, source: str | None = None, receive_buffer: int | None = None) -> None:
        self.url = url
        address = urlsplit(url)
        self.socket = socket.socket()
        self.socket.settimeout(PATIENCE)
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        if source is not None:
            self.socket.bind((source, 0))
        self.socket.connect((address.hostname, address.port))
        self._reader = self.socket.makefile("rb")

    def send(self, data: bytes) -> RawClient:
        """Send some bytes."""
        self.socket.sendall(data)
        return self

    def send_while_open(self, piece: bytes, times: int) -> None:
        """Send a piece again and again, until the other side has enough."""
        try:
            for _ in range(times):
                self.socket.sendall(piece)
        except OSError:
            pass

    def send_head(self, method: str, path: str, *, token: str | None = None, **headers: object) -> RawClient:
        """Send a head; ``_`` in the name of a header stands for ``-``."""
        lines = [f"{method} {path} HTTP/1.1", "Host: localhost"]
        if token is not None:
            lines.append(f"Authorization: Bearer {token}")
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        return self.send("\r\n".join([*lines, "", ""]).encode())

    def send_chunk(self, data: bytes) -> RawClient:
        """Send part of a chunked body."""
        return self.send(b"%x\r\n%s\r\n" % (len(data), data))

    def answer(self) -> Answer:
        """The next answer, whole."""
        first = self._reader.readline()
        assert first, "the other side ended it without an answer"
        headers = {}
        while line := self._reader.readline().decode().strip():
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        return Answer(int(first.split()[1]), headers, self._reader.read(int(headers["content-length"])))

    def is_closed(self) -> bool:
        """Does the other side end it without another word? Waits until it says something."""
        try:
            return self._reader.read(1) == b""
        except ConnectionError:
            return True

    def rest(self) -> bytes:
        """All that still comes, until the other side ends it."""
        parts = []
        with suppress(ConnectionError):
            while part := self._reader.read1():
                parts.append(part)
        return b"".join(parts)

    def close(self) -> None:
        """Go away."""
        self._reader.close()
        self.socket.close()


@contextmanager
def connected(url: str, *, source: str | None = None, receive_buffer: int | None = None) -> Iterator[RawClient]:
    """A connection for the length of a ``with`` block."""
    client = RawClient(url, source=source, receive_buffer=receive_buffer)
    try:
        yield client
    finally:
        client.close()
