"""What the pages are made of: templates, and static files under an address that changes with their content."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

_HERE = Path(__file__).parent
_MEDIA_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file as browsers get it."""

    body: bytes
    media_type: str


@dataclass(frozen=True, slots=True)
class Assets:
    """All static files, read once, and the version that stands in their addresses."""

    files: dict[str, StaticFile]
    version: str


@cache
def assets() -> Assets:
    """The files of this installation; they are few, and small."""
    paths = sorted(path for path in (_HERE / "static").iterdir() if path.suffix in _MEDIA_TYPES)
    files = {path.name: StaticFile(path.read_bytes(), _MEDIA_TYPES[path.suffix]) for path in paths}
    digest = sha256()
    for name, file in files.items():
        digest.update(f"{name} {len(file.body)} ".encode() + file.body)
    return Assets(files, digest.hexdigest()[:12])


@cache
def templates() -> Environment:
    """The templates; whatever is put into one is text, unless the template itself says otherwise."""
    return Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
