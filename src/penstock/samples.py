"""Samples: how an application shows what it does, for ``penstock demo`` and ``penstock serve --samples``."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen
from uuid import UUID, uuid4

from penstock.lifecycle.job import Job
from penstock.lifecycle.states import JobState
from penstock.settings import Settings

__all__ = ["SampleJob", "Samples", "Visitor"]

_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class SampleJob:
    """A job of the samples, and how it must end for that to be a success."""

    id: UUID
    name: str
    state: JobState = JobState.SUCCEEDED
    error_code: str | None = None
    counts: tuple[int, int, int] | None = None
    """Items that must be done, not found and failed, where that is known."""

    def ended_as_expected(self, job: Job) -> bool:
        """Did it end as it should?"""
        counts = (job.progress.done, job.progress.not_found, job.progress.failed)
        return (job.state, job.error_code) == (self.state, self.error_code) and self.counts in (None, counts)


class Visitor:
    """Somebody who uses a server as a person with a script would: over HTTP, with a token."""

    def __init__(self, address: str, token: str) -> None:
        self._address = address
        self._authorization = f"Bearer {token}"

    def send(self, path: str, value: Any) -> Any:
        """Post JSON; the answer is what comes back."""
        return self.ask("POST", path, json.dumps(value).encode(), "application/json")

    def upload(self, path: str, *files: Path) -> Any:
        """Post files, each as a part named ``file``."""
        boundary = uuid4().hex
        body = bytearray()
        for file in files:
            head = (
                f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{file.name}"\r\n'
                "Content-Type: application/octet-stream\r\n\r\n"
            )
            body += head.encode() + file.read_bytes() + b"\r\n"
        body += f"--{boundary}--\r\n".encode()
        return self.ask("POST", path, bytes(body), f"multipart/form-data; boundary={boundary}")

    def stop(self, job: UUID, reason: str) -> None:
        """Stop a job."""
        self.ask("DELETE", f"/api/jobs/{job}?{urlencode({'reason': reason})}")

    def ask(self, method: str, path: str, body: bytes | None = None, media_type: str | None = None) -> Any:
        """One request, and its answer as JSON."""
        headers = {"Authorization": self._authorization} | ({"Content-Type": media_type} if media_type else {})
        request = Request(f"{self._address}{path}", data=body, headers=headers, method=method)
        with urlopen(request, timeout=_SECONDS) as answer:
            return json.load(answer)


class Samples(ABC):
    """An application's sample jobs; a subclass says which they are."""

    next_steps: tuple[str, ...] = ()
    """What to try after the samples, line by line."""

    def __init__(self, folder: Path, engine: Settings) -> None:
        self.folder = folder
        self.engine = engine

    @contextmanager
    def set_up(self, settings: Any) -> Iterator[Any]:
        """Prepare what the samples ask (a site, a shop) for as long as they are shown; the settings to install with."""
        yield settings

    def why_left_out(self) -> str | None:
        """Why they cannot be shown here; None if they can."""
        return None

    @abstractmethod
    def submit(self, visitor: Visitor) -> Iterable[SampleJob]:
        """The first jobs."""

    def go_on(self, ended_job: Job, visitor: Visitor) -> Iterable[SampleJob]:
        """The jobs to submit after one of them has ended."""
        return ()
