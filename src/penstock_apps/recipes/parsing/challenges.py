"""Pages that stand before a page: a site that wants to see a person's browser answers with one of these instead.

They come with any status, 200 too. Each mark is one that the page behind it does not have: the scripts which the same
firms put into ordinary pages are none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_HEADERS = {
    "cf-mitigated": ("challenge",),
    "x-amzn-waf-action": ("challenge", "captcha"),
}
_MARKS = re.compile(
    r"""<title>\s*+(?:just\ a\ moment\.\.\.|attention\ required!\s*+\|\s*+cloudflare)
    | window\._cf_chl_opt | \bcf-browser-verification\b | \bid=["']challenge-form["']
    | \bcaptcha-delivery\.com/
    | \bid=["']px-captcha["']
    | <iframe[^<>]{0,500}_Incapsula_Resource
    | window\.gokuProps
    """,
    re.IGNORECASE | re.VERBOSE,
)
_HEAD = 100_000


def is_announced(headers: Mapping[str, str]) -> bool:
    """Do the headers of an answer say that it is such a page?"""
    return any(headers.get(name, "").strip().lower() in values for name, values in _HEADERS.items())


def is_challenge(page: str) -> bool:
    """Is a page such a page, by its text?

    >>> is_challenge("<html><title>Just a moment...</title><script>window._cf_chl_opt = {}</script></html>")
    True
    >>> is_challenge('<title>Soup</title><script src="/cdn-cgi/challenge-platform/scripts/jsd/main.js"></script>')
    False
    """
    return _MARKS.search(page, 0, _HEAD) is not None
