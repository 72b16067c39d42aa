"""From the address that a person wrote to the source behind it, if it is one that this server may read.

What may be read is said by the operator, never by who asks: folders below ``PENSTOCK_INGEST_ROOTS`` (separated by
``:``), buckets of ``PENSTOCK_INGEST_BUCKETS`` and servers of ``PENSTOCK_INGEST_FTP_HOSTS`` (``host`` for port 21,
``host:port`` for another; both separated by commas). Nothing is allowed where nothing is said. Keys and passwords come
from the environment alone: an address ends up in logs, in histories and on screens.

What may be read belongs to somebody (``PENSTOCK_INGEST_OWNERS``): to those who are named, and to admins, programs of
the operator's and the command line. Whoever else asks is told the same as of a place that may not be read at all.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from penstock.errors import InvalidInput, NotAllowed
from penstock.ingest.sources.contract import Source, quote_path, unquote_path
from penstock.ingest.sources.folder import Folder
from penstock.ingest.sources.ftp import Account, Server
from penstock.ingest.sources.owners import OwnedPlaces, with_port
from penstock.ingest.sources.s3 import Access, Bucket
from penstock.ingest.sources.settings import SourceSettings
from penstock.lifecycle.callers import Caller

_FORMS = "/a/folder, folder:/a/folder, s3://bucket/prefix, ftp://host/path or ftps://host/path"


def source_of(
    address: str, *, caller: Caller, roots: Sequence[Path], settings: SourceSettings, settle_seconds: float = 2.0
) -> Source:
    """The source at ``address``: a path below one of ``roots``, or what the settings allow, if it is the caller's."""
    places = OwnedPlaces(settings.owners, caller)
    scheme = address.partition(":")[0].lower()
    if address.startswith("/"):
        return _folder(address, roots, places, settle_seconds)
    if scheme == "folder":
        return _folder(unquote_path(address[len("folder:") :]), roots, places, settle_seconds)
    if scheme in {"s3", "ftp", "ftps"} and address[len(scheme) :].startswith("://"):
        parts = _parts(address)
        if scheme == "s3":
            return _bucket(parts, settings, places)
        return _server(parts, settings, places, settle_seconds)
    # The address may be a mistyped one with a password in it, so only the start is repeated.
    raise _wrong(f"an address begins with one of {_FORMS}, not with {scheme[:20]!r}")


def _folder(path: str, roots: Sequence[Path], places: OwnedPlaces, settle_seconds: float) -> Source:
    if not path.startswith("/") or "\0" in path:
        raise _wrong(f"a folder is a whole path, as in folder:/inbox, not {quote_path(path)[:200]!r}")
    # After links: a link below a root that leads elsewhere is judged by where it leads.
    real = Path(os.path.realpath(path))
    if not any(places.has_folder(root) for root in roots if real.is_relative_to(os.path.realpath(root))):
        raise _not_allowed(quote_path(path), "PENSTOCK_INGEST_ROOTS")
    return Folder(real, settle_seconds=settle_seconds)


def _bucket(parts: SplitResult, settings: SourceSettings, places: OwnedPlaces) -> Source:
    if parts.netloc not in settings.buckets or not places.has_bucket(parts.netloc):
        raise _not_allowed(f"the bucket {parts.netloc}", "PENSTOCK_INGEST_BUCKETS")
    return Bucket(parts.netloc, unquote_path(parts.path.removeprefix("/")), Access.of(settings))


def _server(parts: SplitResult, settings: SourceSettings, places: OwnedPlaces, settle_seconds: float) -> Source:
    try:
        host, port = (parts.hostname or "").lower(), parts.port or 21
    except ValueError:
        raise _wrong("the port of an FTP address is a number from 1 to 65535") from None
    allowed_hosts = map(with_port, settings.ftp_hosts)
    if not host or f"{host}:{port}" not in allowed_hosts or not places.has_server(f"{host}:{port}"):
        raise _not_allowed(f"the FTP server {host}:{port}", "PENSTOCK_INGEST_FTP_HOSTS")
    path = unquote_path(parts.path)
    if any(character in path for character in "\r\n\0") or ".." in path.split("/"):
        raise _wrong("the path of an FTP address has no line breaks and no ..")
    account = Account(
        host=host,
        port=port,
        user=settings.ftp_user,
        password=settings.ftp_password.get_secret_value(),
        tls=ssl.create_default_context() if parts.scheme == "ftps" else None,
    )
    return Server(account, path, settle_seconds=settle_seconds)


def _parts(address: str) -> SplitResult:
    """The parts of a URL; ? and # are ordinary characters of a key or a file's name."""
    scheme, _, rest = address.partition("://")
    place, slash, path = rest.partition("/")
    # A password may hold a slash; an @ before the path is then in what we took for the path, with a colon before it.
    if "@" in place or (":" in place and "@" in path and not place.rpartition(":")[2].isdigit()):
        raise _wrong(
            "an address holds no user and no password: set PENSTOCK_INGEST_FTP_USER and PENSTOCK_INGEST_FTP_PASSWORD, "
            "or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, where Penstock runs"
        )
    try:
        host = urlsplit(f"{scheme}://{place}")
    except ValueError:
        raise _wrong("the host of the address cannot be read") from None
    return SplitResult(scheme.lower(), host.netloc, slash + path, "", "")


def _not_allowed(what: str, variable: str) -> NotAllowed:
    """The same words for a place nobody may read and for one that is somebody else's."""
    return NotAllowed(
        f"You may not take files in from {what}: an operator adds it to {variable}, and its users to "
        "PENSTOCK_INGEST_OWNERS.",
        code="SOURCE_NOT_ALLOWED",
    )


def _wrong(what: str) -> InvalidInput:
    return InvalidInput(f"The source cannot be read: {what}.", field="source", code="SOURCE_ADDRESS_WRONG")
