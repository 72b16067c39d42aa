"""Kept files: what is recorded of each, and where their bytes are."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from uuid import UUID

from penstock.errors import InvalidInput

_DIGEST = re.compile("^[0-9a-f]{64}$")


@dataclass(frozen=True, slots=True)
class StoredFile:
    """An uploaded file."""

    id: UUID
    user_id: str | None
    name: str
    media_type: str | None
    size_bytes: int
    sha256: str
    created_at: datetime


def path_of(directory: Path, digest: str) -> Path:
    """The place of the content with that SHA-256 below ``directory``: the same content is kept once."""
    if not _DIGEST.match(digest):
        raise InvalidInput(f"{digest!r} is not a SHA-256 in hexadecimal", field="digest")
    return directory / digest[:2] / digest
