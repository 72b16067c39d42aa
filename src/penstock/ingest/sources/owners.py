"""Whose the places are that files are taken in from: a folder, a bucket or a server is for those whom it belongs to.

``PENSTOCK_INGEST_OWNERS`` names them: ``{"/srv/inbox": ["ada"], "s3://incoming": ["*"], "ftp://files.example.org":
["ben"]}``. A key is one of the roots, buckets or servers that may be read at all, written as it is there. What is not
named belongs to admins. Who owns a folder owns what is below it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from penstock.errors import ConfigurationError
from penstock.ingest.sources.settings import SourceSettings
from penstock.lifecycle.callers import Caller, Visibility

EVERYBODY = "*"
_FTP_PORT = 21


class OwnedPlaces:
    """The places that are a caller's; all of them are an admin's, the system's and the command line's."""

    def __init__(self, owners: Mapping[str, Sequence[str]], caller: Caller) -> None:
        self._has_all = caller.sight is Visibility.EVERYTHING
        self._places = {
            _canonical(place)
            for place, users in owners.items()
            if caller.id is not None and (caller.id in users or EVERYBODY in users)
        }

    def has_folder(self, root: Path) -> bool:
        """Is this root theirs?"""
        return self._has_all or _canonical(str(root)) in self._places

    def has_bucket(self, name: str) -> bool:
        """Is this bucket theirs?"""
        return self._has_all or _canonical(f"s3://{name}") in self._places

    def has_server(self, host: str) -> bool:
        """Is the server of this host and port theirs?"""
        return self._has_all or _canonical(f"ftp://{host}") in self._places


def require_known_places(roots: Sequence[Path], settings: SourceSettings) -> None:
    """Refuse owners of a place that nobody may read: a mistyped one would keep its users out without a word."""
    places = {
        *(_canonical(str(root)) for root in roots),
        *(_canonical(f"s3://{bucket}") for bucket in settings.buckets),
        *(_canonical(f"ftp://{host}") for host in settings.ftp_hosts),
    }
    for place in settings.owners:
        if _canonical(place) not in places:
            raise ConfigurationError(
                f"PENSTOCK_INGEST_OWNERS names {place!r}, from where nothing is taken in: name a folder of "
                "PENSTOCK_INGEST_ROOTS, s3:// with a bucket of PENSTOCK_INGEST_BUCKETS, or ftp:// with a server of "
                "PENSTOCK_INGEST_FTP_HOSTS, as they are written there",
                code="INGEST_OWNERS_WRONG",
            )


def with_port(host: str) -> str:
    """A server as it is compared.

    >>> with_port("Files.example.org"), with_port("files.example.org:2121"), with_port("::1"), with_port("[::1]:2121")
    ('files.example.org:21', 'files.example.org:2121', '::1:21', '::1:2121')
    """
    name, colon, port = host.lower().rpartition(":")
    if not colon or not port.isdigit() or (":" in name and not name.endswith("]")):
        name, port = host.lower(), str(_FTP_PORT)
    return f"{name.strip('[]')}:{port}"


def _canonical(place: str) -> str:
    scheme, separator, rest = place.partition("://")
    if separator and scheme.lower() in ("ftp", "ftps"):
        return f"ftp://{with_port(rest)}"
    if separator and scheme.lower() == "s3":
        return f"s3://{rest}"
    return os.path.realpath(place)
