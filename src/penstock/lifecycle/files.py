"""Where a kept file's bytes are: by their SHA-256, so that the same content is kept once."""

from __future__ import annotations

import re
from pathlib import Path

from penstock.errors import InvalidInput

_DIGEST = re.compile("^[0-9a-f]{64}$")


def path_of(directory: Path, digest: str) -> Path:
    """The place of the content with that SHA-256 below ``directory``."""
    if not _DIGEST.match(digest):
        raise InvalidInput(f"{digest!r} is not a SHA-256 in hexadecimal", field="digest")
    return directory / digest[:2] / digest
