"""One address, one name: what people paste becomes the same text for the same page, and a key for it.

The name is for finding alone. A page is fetched, kept and told of by the address as it was given: a site may know its
pages with a slash at the end and not without. ``docs/explanation/recipe-clients.md`` has each rule with its reason.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
import unicodedata
from urllib.parse import SplitResult, quote, urlsplit, urlunsplit

from penstock.errors import InvalidInput

LONGEST = 2048
_PORTS = {"http": 80, "https": 443}
_ALLOWED_IN_HOST = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-._")
_DOTS = re.compile("[.\u3002\uff0e\uff61]")
"""What people type for a dot between labels, in the scripts that have their own."""
_ASCII = "".join(map(chr, range(128)))
_STRAY_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def normalize_url(text: str) -> str:
    """The name of a page: what may be written in many ways without leading elsewhere is written in one.

    >>> normalize_url(" HTTPS://Example.COM:443/S%c3%bcppe/?a=B#top ")
    'https://example.com/S%C3%BCppe?a=B'
    """
    text = text.strip()
    if not text or len(text) > LONGEST:
        raise _invalid_url(f"an address has 1 to {LONGEST} characters")
    if any(ord(character) < 33 or ord(character) == 127 for character in text):
        raise _invalid_url("an address has no blanks or control characters in it")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise _invalid_url("an address has no half characters in it")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise _invalid_url(str(error)) from error
    scheme = parts.scheme.lower()
    if scheme not in _PORTS:
        raise _invalid_url("an address begins with http:// or https://")
    if parts.username is not None or parts.password is not None:
        raise _invalid_url("an address with a user name or password in it is not fetched")
    host = _host(parts)
    if port is not None and port != _PORTS[scheme]:
        host = f"{host}:{port}"
    return urlunsplit((scheme, host, _normalize_escapes(parts.path).rstrip("/"), _normalize_escapes(parts.query), ""))


def key_of(address: str) -> str:
    """The SHA-256 of a normalized address, by which everything about its page is kept."""
    return hashlib.sha256(address.encode()).hexdigest()


def host_of(address: str) -> str:
    """Whose page it is, as people are shown it."""
    return (urlsplit(address).hostname or "").removeprefix("www.")


def _host(parts: SplitResult) -> str:
    host = (parts.hostname or "").rstrip(".")
    if not host:
        raise _invalid_url("an address names a host")
    if ":" in host:
        return f"[{_number(host)}]"
    try:
        ascii_host = ".".join(_ascii_label(label) for label in _DOTS.split(host)).rstrip(".")
    except UnicodeError as error:
        raise _invalid_url(f"{host!r} is not the name of a host") from error
    if not ascii_host or not _ALLOWED_IN_HOST.issuperset(ascii_host) or len(ascii_host) > 253:
        raise _invalid_url(f"{host!r} is not the name of a host")
    return ascii_host


def _ascii_label(label: str) -> str:
    """A label as the name service knows it. Unlike Python's own codec it keeps ß apart from ss: they are two sites."""
    if label.isascii():
        return label.lower()
    return "xn--" + unicodedata.normalize("NFC", label.lower()).encode("punycode").decode("ascii")


def _normalize_escapes(text: str) -> str:
    """Percent signs as RFC 3986 wants them: capital digits, what needs none without, what is not ASCII with."""
    if text.isascii() and "%" not in text:
        return text
    return _ESCAPE.sub(_escape, quote(_STRAY_PERCENT.sub("%25", text), safe=_ASCII))


def _escape(match: re.Match[str]) -> str:
    character = chr(int(match[1], 16))
    return character if character in _UNRESERVED_CHARACTERS else match[0].upper()


def _number(host: str) -> str:
    try:
        return str(ipaddress.IPv6Address(host))
    except ValueError as error:
        raise _invalid_url(f"{host!r} is not the name of a host") from error


def _invalid_url(why: str) -> InvalidInput:
    return InvalidInput(why, field="url", code="URL_INVALID")
