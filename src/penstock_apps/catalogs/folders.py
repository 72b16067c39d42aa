"""Walking through folders: only below the allowed roots, never through a link that leads out of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock import Permanent
from penstock.errors import InvalidInput

SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".gif", ".tif", ".tiff", ".heic", ".heif"})
_DEEPEST = 64


@dataclass(frozen=True, slots=True)
class PhotoFile:
    """A file that may be a photo."""

    path: str
    size: int
    modified: int


def require_below_roots(directories: Sequence[str], roots: Iterable[Path]) -> tuple[str, ...]:
    """The folders as they really are, if they are folders and below a root."""
    allowed_roots = tuple(roots)
    if not allowed_roots:
        raise InvalidInput(
            "no folder may be a catalog here: PENSTOCK_CATALOG_ROOTS names none", field="source_directories",
            code="CATALOG_ROOT_REFUSED",
        )  # fmt: skip
    real = []
    for name in directories:
        path = Path(name)
        if "\0" in name or not path.is_absolute():
            raise InvalidInput(f"{name!r} is not a whole path", field="source_directories")
        folder = path.resolve()
        if not any(folder == root or root in folder.parents for root in allowed_roots) or not folder.is_dir():
            # The same message for all of them: it must not tell what lies outside.
            raise InvalidInput(
                f"{name!r} is not a folder below the allowed roots", field="source_directories",
                code="CATALOG_ROOT_REFUSED",
            )  # fmt: skip
        real.append(str(folder))
    return tuple(dict.fromkeys(real))


def require_folders(directories: Iterable[str]) -> None:
    """A disk that is not mounted just now must not look like photos that were removed."""
    for directory in directories:
        if not Path(directory).is_dir():
            raise Permanent(f"the folder {directory} is not there", code="CATALOG_FOLDER_MISSING")


def walk(directories: Iterable[str]) -> Iterator[PhotoFile]:
    """Every file that may be a photo, in order; links are not followed."""
    for directory in directories:
        yield from _walk(directory, 0)


def _walk(directory: str, depth: int) -> Iterator[PhotoFile]:
    if depth > _DEEPEST:
        return
    try:
        with os.scandir(directory) as entries:
            in_order = sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return  # a folder that vanished, or is not ours to read, has no photos for us
    for entry in in_order:
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(entry.path, depth + 1)
        elif entry.is_file(follow_symlinks=False) and Path(entry.name).suffix.lower() in SUFFIXES:
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            yield PhotoFile(entry.path, status.st_size, status.st_mtime_ns)


def is_inside(path: str, directories: Iterable[str]) -> bool:
    """Is a file really in one of these folders, whatever links were put in its way since?"""
    real = Path(path).resolve()
    return any(Path(directory) in real.parents for directory in directories)
