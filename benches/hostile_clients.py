"""A hostile crowd: connections that drip, bodies without tokens, one user's bombs, and guests' pages that never come.

``python -m benches.hostile_clients`` attacks a server from a process of its own: which one is said on its standard
input.
"""

from __future__ import annotations

import asyncio
import io
import json
import struct
import sys
import zipfile
import zlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from functools import cache, partial
from urllib.parse import urlsplit

_PIECE = b"[]," * 20_000
_BOUNDARY = "penstock-bench"
_PATIENCE = 60.0


@dataclass(frozen=True, slots=True)
class Size:
    """How many of each."""

    drips: int = 200
    drip_seconds: float = 0.5
    bodies: int = 4
    body_bytes: int = 50_000_000
    bombs: int = 12
    pages: int = 100


@dataclass
class Crowd:
    """Attacks one server, and counts what became of it."""

    url: str
    token: str
    """Of the user who throws the bombs."""
    site: str
    """Where the pages are that never come."""
    size: Size = field(default_factory=Size)
    counts: Counter[str] = field(default_factory=Counter)
    requests: list[str] = field(default_factory=list)
    """What guests were promised."""

    async def attack(self, seconds: float) -> None:
        """All at once; what is over begins again until the time is."""
        _document(), _archive()  # they take a while to make, and the others would wait
        until = asyncio.get_running_loop().time() + seconds
        again: list[Callable[[], Awaitable[None]]] = [
            *[partial(self._drip, number) for number in range(self.size.drips)],
            *[self._send_body] * self.size.bodies,
        ]
        once = [self._throw_bomb(number) for number in range(self.size.bombs)]
        once += [self._ask_for_page(number) for number in range(self.size.pages)]
        async with asyncio.TaskGroup() as group:
            for attack in again:
                group.create_task(_repeat(attack, until))
            for attempt in once:
                group.create_task(_give_up(attempt))

    async def _drip(self, number: int) -> None:
        """A head, a byte at a time, until the server has enough."""
        reader, writer = await self._connect(2 + number // 50)
        answer = asyncio.create_task(_first_bytes(reader))
        try:
            writer.write(self._head("GET", "/healthz", "X-Drip: ").rstrip())
            while not answer.done():
                writer.write(b"x")
                await asyncio.wait([answer], timeout=self.size.drip_seconds)
            self._count("drip", await answer)
        finally:
            answer.cancel()
            writer.close()

    async def _send_body(self) -> None:
        """A body that is large once it is parsed, without a token."""
        reader, writer = await self._connect(20)
        answer = asyncio.create_task(_first_bytes(reader))
        sent = 0
        try:
            writer.write(self._head("POST", "/recipes/parse-url/async", "Transfer-Encoding: chunked"))
            with suppress(OSError):
                while sent < self.size.body_bytes and not answer.done():
                    writer.write(b"%x\r\n%s\r\n" % (len(_PIECE), _PIECE))
                    sent += len(_PIECE)
                    await writer.drain()
                    await asyncio.sleep(0)
            self._count("body", await answer)
            self.counts["body bytes sent"] += sent
        finally:
            answer.cancel()
            writer.close()

    async def _throw_bomb(self, number: int) -> None:
        """JSON of a megabyte that becomes many; a document, or an archive of a picture, that does."""
        if number % 3 == 0:
            body = b"[" + b"[]," * 340_000 + b"1]"
            await self._post("bomb of JSON", "/recipes", body, "application/json", source=30, token=self.token)
            return
        kind = f"multipart/form-data; boundary={_BOUNDARY}"
        if number % 3 == 1:
            archive = _form("a.zip", _archive())
            await self._post("bomb of a picture", "/api/jobs", archive, kind, source=30, token=self.token)
            return
        path = "/api/documents/jobs"
        document = _form("a.docx", _document())
        answer = await self._post("document", path, document, kind, source=30, token=self.token)
        with suppress(ValueError, KeyError):
            job = json.loads(answer.partition(b"\r\n\r\n")[2])["jobId"]
            await self._post("bomb of a document", f"{path}/{job}/submit", b"", "", source=30, token=self.token)

    async def _ask_for_page(self, number: int) -> None:
        body = json.dumps({"url": f"{self.site}/{number}"}).encode()
        answer = await self._post("page", "/parse-requests", body, "application/json", source=40 + number // 40)
        with suppress(ValueError, KeyError):
            self.requests.append(json.loads(answer.partition(b"\r\n\r\n")[2])["requestId"])

    async def _post(
        self, what: str, path: str, body: bytes, kind: str, *, source: int, token: str | None = None
    ) -> bytes:
        reader, writer = await self._connect(source)
        try:
            more = [f"Content-Type: {kind}", f"Content-Length: {len(body)}", "Connection: close"]
            writer.write(self._head("POST", path, *more, token=token) + body)
            answer = await reader.read()
            self._count(what, answer)
            return answer
        finally:
            writer.close()

    async def _connect(self, source: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """From an address of its own, as far as one machine can."""
        address = urlsplit(self.url)
        return await asyncio.open_connection(address.hostname, address.port, local_addr=(f"127.0.0.{source}", 0))

    def _head(self, method: str, path: str, *headers: str, token: str | None = None) -> bytes:
        lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *headers]
        lines += [] if token is None else [f"Authorization: Bearer {token}"]
        return "\r\n".join([*lines, "", ""]).encode()

    def _count(self, what: str, answer: bytes) -> None:
        self.counts[f"{what} {answer[9:12].decode() or 'closed'}"] += 1


@asynccontextmanager
async def site_without_end() -> AsyncIterator[str]:
    """A site whose answers come a byte a second; its address."""

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.CancelledError), closing(writer):
            writer.write(b"HTTP/1.1 200 OK\r\nX-Drip: ")
            while not reader.at_eof() and not writer.is_closing():
                writer.write(b"x")
                await asyncio.sleep(1)

    server = await asyncio.start_server(drip, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()[:2]
    try:
        yield f"http://{host}:{port}"
    finally:
        server.close()


async def _first_bytes(reader: asyncio.StreamReader) -> bytes:
    """How an answer begins; nothing if the connection is ended without one."""
    with suppress(OSError):
        return await reader.read(64)
    return b""


async def _repeat(attack: Callable[[], Awaitable[None]], until: float) -> None:
    """Again and again; what has begun when the time is over goes on until the server has enough of it."""
    while asyncio.get_running_loop().time() < until:
        with suppress(OSError, TimeoutError):
            await asyncio.wait_for(attack(), _PATIENCE)


async def _give_up(attempt: Awaitable[None]) -> None:
    with suppress(OSError, TimeoutError):
        await asyncio.wait_for(attempt, _PATIENCE)


@cache
def _document() -> bytes:
    """A DOCX of some kilobytes that unpacks to a hundred megabytes."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("word/document.xml", b"<w>" + b" " * 100_000_000)
    return file.getvalue()


@cache
def _archive() -> bytes:
    """A ZIP of a picture of fifty megapixels, of one colour."""
    width, height = 10_000, 5_000
    packer = zlib.compressobj(1)
    pixels = b"".join(packer.compress(bytes(1 + 3 * width)) for _ in range(height)) + packer.flush()
    header = struct.pack(">2L5B", width, height, 8, 2, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", pixels), (b"IEND", b"")]
    picture = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">L", len(body)) + name + body + struct.pack(">L", zlib.crc32(name + body)) for name, body in parts
    )
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("picture.png", picture)
    return file.getvalue()


def _form(name: str, content: bytes) -> bytes:
    disposition = f'Content-Disposition: form-data; name="file"; filename="{name}"'
    return f"--{_BOUNDARY}\r\n{disposition}\r\n\r\n".encode() + content + f"\r\n--{_BOUNDARY}--\r\n".encode()


async def main() -> None:
    """Say where the pages are that never come; attack who is named then, and say what became of it."""
    async with site_without_end() as site:
        print(site, flush=True)
        target = json.loads(await asyncio.to_thread(sys.stdin.readline))
        crowd = Crowd(target["url"], target["token"], site)
        await crowd.attack(target["seconds"])
        print(json.dumps({"counts": crowd.counts, "requests": crowd.requests}), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
