"""A TCP proxy that loses connections in the ways networks do: cut, half closed, swallowed, refused."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class FaultProxy:
    """Hands bytes on between clients and one port, until it is told otherwise. Its own thread runs its event loop."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._server: asyncio.Server | None = None
        self._links: set[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = set()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="fault-proxy", daemon=True)
        self._thread.start()
        assert self._ready.wait(10)

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._questions, self._answers, self._over = asyncio.Event(), asyncio.Event(), asyncio.Event()
        await self._listen()
        self._ready.set()
        await self._over.wait()
        await self._stop_listening()

    @property
    def links(self) -> int:
        """How many connections there are. One that the server has closed counts until its client can see that."""
        return len(self._links)

    def cut(self) -> None:
        """Reset every connection, on both sides."""
        self._do(self._reset_all)

    def half_close(self) -> None:
        """Tell the clients that the other side will send nothing more, and let them talk."""
        self._do(self._end_answers)

    def swallow(self, *, answers_only: bool = False) -> None:
        """Hand nothing on any more, and say nothing of it; or only what comes back."""
        for flow in (self._answers,) if answers_only else (self._answers, self._questions):
            self._do(flow.clear)

    def refuse(self) -> None:
        """Be gone: reset every connection, and refuse new ones."""
        asyncio.run_coroutine_threadsafe(self._stop_listening(), self._loop).result(10)

    def resume(self) -> None:
        """Accept connections and hand everything on."""
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(10)

    def close(self) -> None:
        """End it."""
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(10)

    def _do(self, action: Callable[[], object]) -> None:
        """In the loop's thread; what it closes is closed one turn of the loop later."""
        done = threading.Event()
        self._loop.call_soon_threadsafe(lambda: (action(), self._loop.call_soon(done.set)))
        assert done.wait(10)

    async def _listen(self) -> None:
        self._questions.set()
        self._answers.set()
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)

    async def _stop_listening(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        self._reset_all()

    def _end_answers(self) -> None:
        for client, _ in self._links:
            client.write_eof()

    def _reset_all(self) -> None:
        for link in self._links:
            for writer in (one for one in link if not one.is_closing()):
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
                writer.transport.abort()
        self._links.clear()

    async def _serve(self, from_client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_connection("127.0.0.1", self._target)
        link = (to_client, to_server)
        self._links.add(link)
        try:
            await asyncio.gather(
                self._hand_on(from_client, to_server, self._questions),
                self._hand_on(from_server, to_client, self._answers),
            )
        except asyncio.CancelledError:
            pass  # the end of the proxy: start_server would call it an error
        finally:
            self._links.discard(link)
            for writer in link:
                writer.transport.abort()

    @staticmethod
    async def _hand_on(source: asyncio.StreamReader, sink: asyncio.StreamWriter, flowing: asyncio.Event) -> None:
        with suppress(ConnectionError, RuntimeError):
            while some := await source.read(1 << 16):
                await flowing.wait()
                sink.write(some)
                await sink.drain()
        with suppress(ConnectionError, RuntimeError):
            sink.close()


@contextmanager
def fault_proxy(target: int) -> Iterator[FaultProxy]:
    """A proxy in front of a port, for the length of a ``with`` block."""
    proxy = FaultProxy(target)
    try:
        yield proxy
    finally:
        proxy.close()
