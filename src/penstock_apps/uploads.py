"""Files that are handed in, before they are kept."""

from __future__ import annotations

from hashlib import sha256
from typing import Protocol

_CHUNK_BYTES = 1 << 20


class Rewindable(Protocol):
    """A stream that can be read twice."""

    def read(self, size: int, /) -> bytes:
        """Up to ``size`` bytes; none at the end."""

    def seek(self, offset: int, /) -> int:
        """Go to a place."""


def sha256_of(stream: Rewindable, *, max_bytes: int | None = None) -> str:
    """The SHA-256 of a stream, or of its first ``max_bytes``; it is at its beginning again afterwards."""
    digest, remaining = sha256(), max_bytes
    while chunk := stream.read(_CHUNK_BYTES if remaining is None else min(remaining, _CHUNK_BYTES)):
        digest.update(chunk)
        remaining = None if remaining is None else remaining - len(chunk)
    stream.seek(0)
    return digest.hexdigest()
