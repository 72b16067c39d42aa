"""Servers on loopback that speak HTTP as badly as they like: each connection is given to a function of the test."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

Behaviour = Callable[[socket.socket, threading.Event], None]


@dataclass
class Attacker:
    """Where it listens, what it was sent, and how much it could get rid of."""

    port: int
    over: threading.Event
    heard: list[bytes] = field(default_factory=list)
    sent_bytes: int = 0

    @property
    def host(self) -> str:
        """Its name and port."""
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """Where its page is."""
        return f"http://{self.host}/"

    def send(self, link: socket.socket, data: bytes) -> None:
        """Send, and count it."""
        link.sendall(data)
        self.sent_bytes += len(data)


@contextmanager
def attacking(behave: Callable[[Attacker, socket.socket], None]) -> Iterator[Attacker]:
    """A server for the length of a ``with`` block; each connection has a thread, which the client may hang up on."""
    door = socket.create_server(("127.0.0.1", 0), backlog=64)
    attacker = Attacker(door.getsockname()[1], threading.Event())
    threads: list[threading.Thread] = []

    def converse(link: socket.socket) -> None:
        with link, suppress(OSError):
            link.settimeout(20)
            attacker.heard.append(link.recv(65_536))
            behave(attacker, link)

    def accept() -> None:
        with suppress(OSError):
            while True:
                link, _ = door.accept()
                threads.append(threading.Thread(target=converse, args=(link,)))
                threads[-1].start()

    accepting = threading.Thread(target=accept)
    accepting.start()
    try:
        yield attacker
    finally:
        attacker.over.set()
        door.shutdown(socket.SHUT_RDWR)
        door.close()
        accepting.join()
        for thread in threads:
            thread.join()
