"""Files that are handed in, before they are kept."""

from __future__ import annotations

from hashlib import sha256
from typing import Protocol

_READ_AT_ONCE = 1 << 20


class Rewindable(Protocol):
    """A stream that can be read twice."""

    def read(self, size: int, /) -> bytes:
        """Up to ``size`` bytes; none at the end."""

    def seek(self, offset: int, /) -> int:
        """Go to a place."""


def sha256_of(stream: Rewindable, *, most: int | None = None) -> str:
    """The SHA-256 of a stream, or of its first ``most`` bytes; it is at its beginning again afterwards."""
    digest, left = sha256(), most
    while chunk := stream.read(_READ_AT_ONCE if left is None else min(left, _READ_AT_ONCE)):
        digest.update(chunk)
        left = None if left is None else left - len(chunk)
    stream.seek(0)
    return digest.hexdigest()
