"""Somebody who uses the server as a person with a script would: over HTTP, with a token."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen
from uuid import UUID, uuid4

_SECONDS = 60.0


class Visitor:
    """A client of one server."""

    def __init__(self, address: str, token: str) -> None:
        self._address = address
        self._authorization = f"Bearer {token}"

    def hand_in(self, document: Path) -> UUID:
        """Upload a document and let it be processed; the answer is its job."""
        job = UUID(self._upload("/api/documents/jobs", [document])["jobId"])
        self._ask("POST", f"/api/documents/jobs/{job}/submit")
        return job

    def look_up(self, *files: Path) -> UUID:
        """Upload a table of products, or pictures of them; the answer is its job."""
        return UUID(self._upload("/api/jobs", files)["jobId"])

    def parse(self, url: str) -> UUID:
        """Ask for the recipe on a page; the answer is its job."""
        return UUID(self._send("/recipes/parse-url/async", {"url": url, "use_llm_fallback": False})["id"])

    def catalog(self, name: str, folder: Path) -> UUID:
        """Make a catalog of a folder."""
        made = self._send("/api/catalogs", {"name": name, "source_directories": [str(folder.resolve())]})
        return UUID(made["id"])

    def start(self, catalog: UUID, action: str) -> UUID:
        """Let something be done with a catalog; the answer is its job."""
        return UUID(self._send(f"/api/catalogs/{catalog}/{action}", {})["job_id"])

    def stop(self, job: UUID, reason: str) -> None:
        """Stop a job."""
        self._ask("DELETE", f"/api/jobs/{job}?{urlencode({'reason': reason})}")

    def _upload(self, path: str, files: Sequence[Path]) -> Any:
        boundary = uuid4().hex
        body = bytearray()
        for file in files:
            head = (
                f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{file.name}"\r\n'
                "Content-Type: application/octet-stream\r\n\r\n"
            )
            body += head.encode() + file.read_bytes() + b"\r\n"
        body += f"--{boundary}--\r\n".encode()
        return self._ask("POST", path, bytes(body), f"multipart/form-data; boundary={boundary}")

    def _send(self, path: str, value: Any) -> Any:
        return self._ask("POST", path, json.dumps(value).encode(), "application/json")

    def _ask(self, method: str, path: str, body: bytes | None = None, kind: str | None = None) -> Any:
        headers = {"Authorization": self._authorization} | ({"Content-Type": kind} if kind is not None else {})
        asked = Request(f"{self._address}{path}", data=body, headers=headers, method=method)
        with urlopen(asked, timeout=_SECONDS) as answer:
            return json.load(answer)
