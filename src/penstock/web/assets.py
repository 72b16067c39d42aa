"""What the pages are made of: templates, and static files under an address that changes with their content.

The engine's static files are in ``core``, ``components`` and ``pages``. An application's are beside the engine's, below
its name: ``notes/list.html``, ``notes/list.js``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

from jinja2 import BaseLoader, ChoiceLoader, Environment, FileSystemLoader, PrefixLoader, StrictUndefined

Folders = tuple[tuple[str, Path], ...]
"""The applications that have pages, and the folders with their ``templates`` and ``static``."""

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
def assets(folders: Folders = ()) -> Assets:
    """The files of this installation; they are few, and small."""
    files = _static_files("", _HERE)
    for name, folder in folders:
        files |= _static_files(f"{name}/", folder)
    digest = sha256()
    for name, file in files.items():
        digest.update(f"{name} {len(file.body)} ".encode() + file.body)
    return Assets(files, digest.hexdigest()[:12])


def _static_files(prefix: str, folder: Path) -> dict[str, StaticFile]:
    static = folder / "static"
    paths = sorted(path for path in static.rglob("*") if path.suffix in _MEDIA_TYPES)
    return {
        f"{prefix}{path.relative_to(static).as_posix()}": StaticFile(path.read_bytes(), _MEDIA_TYPES[path.suffix])
        for path in paths
    }


@cache
def templates(folders: Folders = ()) -> Environment:
    """The templates; whatever is put into one is text, unless the template itself says otherwise."""
    of_applications: dict[str, BaseLoader] = {name: FileSystemLoader(folder / "templates") for name, folder in folders}
    return Environment(
        loader=ChoiceLoader([FileSystemLoader(_HERE / "templates"), PrefixLoader(of_applications)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
