"""What can be wrong with a page: each failure with a stable code, and whether another try may help."""

from __future__ import annotations

from enum import Enum

from penstock import Permanent, Retryable
from penstock.errors import Postponed

_PATIENCE = 60.0


class PageFailure(Enum):
    """Why there is no recipe."""

    HOST_REFUSED = ("HOST_REFUSED", "the address leads to a host that is not fetched from")
    HOST_UNKNOWN = ("HOST_UNKNOWN", "there is no such host")
    TIMEOUT = ("FETCH_TIMEOUT", "the page took too long")
    FAILED = ("FETCH_FAILED", "the page could not be fetched")
    BUSY = ("PAGE_BUSY", "the site asks to come back later")
    NOT_FOUND = ("PAGE_NOT_FOUND", "there is no such page")
    FORBIDDEN = ("PAGE_FORBIDDEN", "the site does not show this page")
    THROTTLED = ("PAGE_THROTTLED", "the site does not want to be asked so often")
    CHALLENGE = ("PAGE_CHALLENGE", "the site wants to see a person's browser first")
    TOO_LARGE = ("PAGE_TOO_LARGE", "the page is larger than the limit")
    TOO_COMPLEX = ("PAGE_TOO_COMPLEX", "the page takes too long, or too much memory, to be read")
    NOT_HTML = ("PAGE_NOT_HTML", "the address does not lead to a page")
    REDIRECTS = ("TOO_MANY_REDIRECTS", "the address redirects too often")
    NO_RECIPE = ("NOT_A_RECIPE", "no recipe was found on the page")
    LLM = ("LLM_FAILED", "the language model could not be asked")
    LLM_REFUSED = ("LLM_REFUSED", "the language model refuses to be asked")
    SHARE_IN_USE = ("SHARE_IN_USE", "other pages that you asked for are being read, and this one is in line")
    HOST_IN_USE = ("HOST_IN_USE", "other pages of this site are being read, and this one is in line")

    def __init__(self, code: str, sentence: str) -> None:
        self.code = code
        self.sentence = sentence

    @property
    def retryable(self) -> bool:
        """May it work another time?"""
        return self in (
            PageFailure.TIMEOUT, PageFailure.FAILED, PageFailure.BUSY, PageFailure.THROTTLED, PageFailure.LLM,
            PageFailure.SHARE_IN_USE, PageFailure.HOST_IN_USE,
        )  # fmt: skip

    @property
    def refuses_servers(self) -> bool:
        """Does the site refuse a server what it may show in a person's browser?"""
        return self in (PageFailure.FORBIDDEN, PageFailure.THROTTLED, PageFailure.CHALLENGE)

    def error(self, detail: str = "", *, after: float | None = None) -> Permanent | Retryable:
        """What a handler raises; ``after`` is when the site wants to be asked again.

        A site that wants more patience than a person has is not waited for.
        """
        message = f"{self.sentence}: {detail}" if detail else self.sentence
        is_too_late = self is PageFailure.THROTTLED and after is not None and after > _PATIENCE
        if self.retryable and not is_too_late:
            return Retryable(message, code=self.code, retry_after=after)
        return Permanent(message, code=self.code)

    def postponement(self, after: float) -> Postponed:
        """What a handler raises that has not tried; it does so in ``after`` seconds."""
        return Postponed(self.sentence, code=self.code, retry_after=after)
