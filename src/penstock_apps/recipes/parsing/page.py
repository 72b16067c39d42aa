"""A page on its way to the process that reads it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from penstock import Permanent, Retryable
from penstock_apps.recipes.failures import PageFailure
from penstock_apps.recipes.parsing.challenges import is_challenge
from penstock_apps.recipes.parsing.texts import decode_page


@dataclass(frozen=True, slots=True)
class Page:
    """What a site sent, and from where in the end."""

    address: str
    body: bytes
    charset: str | None = None
    failure: Permanent | Retryable | None = None
    """Why it is no page, unless it is a challenge."""

    def read(self) -> str:
        """Its text; what stands before a page is none."""
        text = decode_page(self.body, self.charset)
        if is_challenge(text):
            raise PageFailure.CHALLENGE.error("it answers with a page for browsers alone")
        if self.failure is not None:
            raise self.failure
        return text


@dataclass(frozen=True, slots=True)
class KeptPage:
    """What a client sent, as a file that is kept."""

    address: str
    path: Path

    def read(self) -> str:
        """Its text."""
        return self.path.read_text("utf-8")
