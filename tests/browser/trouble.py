"""What a page complains about while a test looks at it: the console, uncaught errors, requests without an answer."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, ConsoleMessage, Request, WebError

_HEARD = {"error", "warning"}
# A page that closes a stream, aborts a question or is left while one is open did so itself.
_GIVEN_UP = "net::ERR_ABORTED"


@dataclass
class Trouble:
    """All complaints of a test's pages. A test that provokes one says so, before the end."""

    complaints: list[str] = field(default_factory=list)
    _expected: list[str] = field(default_factory=list)
    _allowed: list[str] = field(default_factory=list)

    def expect(self, pattern: str) -> None:
        """A complaint like this has to come: the test provokes it."""
        self._expected.append(pattern)

    def allow(self, pattern: str) -> None:
        """A complaint like this may come, or not."""
        self._allowed.append(pattern)

    def listen(self, context: BrowserContext) -> None:
        """Hear all pages of a context."""
        context.on("console", self._console)
        context.on("weberror", self._error)
        context.on("requestfailed", self._request)

    def found(self, *, come_to_its_end: bool = True) -> list[str]:
        """What is wrong: complaints nobody expects, and, of a test that has come to its end, those still missing."""
        known = [re.compile(pattern) for pattern in (*self._expected, *self._allowed)]
        unexpected = [one for one in self.complaints if not any(pattern.search(one) for pattern in known)]
        missing = [
            f"expected, and did not come: {pattern}"
            for pattern in self._expected
            if come_to_its_end and not any(re.search(pattern, one) for one in self.complaints)
        ]
        return unexpected + missing

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in _HEARD:
            self.complaints.append(f"console {message.type}: {message.text} ({message.location.get('url', '')})")

    def _error(self, error: WebError) -> None:
        self.complaints.append(f"uncaught: {error.error.stack or error.error.message}")

    def _request(self, request: Request) -> None:
        if request.failure != _GIVEN_UP:
            self.complaints.append(f"no answer: {request.method} {request.url}: {request.failure}")
