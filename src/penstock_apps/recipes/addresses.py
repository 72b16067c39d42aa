"""One address, one name: what people paste becomes the same text for the same page, and a key for it."""

from __future__ import annotations

import hashlib
import ipaddress
from urllib.parse import SplitResult, urlsplit, urlunsplit

from penstock.errors import InvalidInput

LONGEST = 2048
_PORTS = {"http": 80, "https": 443}
_ALLOWED_IN_HOST = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-._")


def normalize_url(text: str) -> str:
    """Scheme and host in small letters, no default port, no fragment, no slash at the end; path and query as they are.

    >>> normalize_url(" HTTPS://Example.COM:443/Soup/?a=B#top ")
    'https://example.com/Soup?a=B'
    """
    text = text.strip()
    if not text or len(text) > LONGEST:
        raise _invalid_url(f"an address has 1 to {LONGEST} characters")
    if any(ord(character) < 33 or ord(character) == 127 for character in text):
        raise _invalid_url("an address has no blanks or control characters in it")
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
    return urlunsplit((scheme, host, parts.path.rstrip("/"), parts.query, ""))


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
        ascii_host = host.encode("ascii" if host.isascii() else "idna").decode().lower()
    except UnicodeError as error:
        raise _invalid_url(f"{host!r} is not the name of a host") from error
    if not _ALLOWED_IN_HOST.issuperset(ascii_host) or len(ascii_host) > 253:
        raise _invalid_url(f"{host!r} is not the name of a host")
    return ascii_host


def _number(host: str) -> str:
    try:
        return str(ipaddress.IPv6Address(host))
    except ValueError as error:
        raise _invalid_url(f"{host!r} is not the name of a host") from error


def _invalid_url(why: str) -> InvalidInput:
    return InvalidInput(why, field="url", code="URL_INVALID")
