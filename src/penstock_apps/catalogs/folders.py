"""Walking through folders: only below the allowed roots, never through a link that leads out of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock import Permanent
from penstock.errors import InvalidInput
from penstock_apps.catalogs.photo_paths import outermost

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
        if not any(folder == root or root in folder.parents for root in allowed_roots) or not _is_folder(str(folder)):
            # The same message for all of them: it must not tell what lies outside.
            raise InvalidInput(
                f"{name!r} is not a folder below the allowed roots", field="source_directories",
                code="CATALOG_ROOT_REFUSED",
            )  # fmt: skip
        real.append(str(folder))
    return tuple(dict.fromkeys(real))


def require_a_folder(directories: Sequence[str]) -> None:
    """A catalog none of whose folders is there must not look like one without photos."""
    if not any(_is_folder(directory) for directory in directories):
        raise Permanent(f"the folder {directories[0]} is not there", code="CATALOG_FOLDER_MISSING")


class Walk:
    """Once through every file that may be a photo, in order; links are not followed.

    What could not be read on the way is known when it is over: whatever is below that may still be there.
    """

    def __init__(self, directories: Iterable[str]) -> None:
        self.unreadable: set[str] = set()
        """Folders, and files in them, that could not be looked at just now."""
        self.empty: set[str] = set()
        """Folders without anything in them, as that of a disk is which is not mounted."""
        self._roots = outermost(directories)

    def files(self) -> Iterator[PhotoFile]:
        """The files; a folder and one of its subfolders are walked through once."""
        for root in self._roots:
            if _is_folder(root):
                yield from self._below(root, 0)
            else:
                self.unreadable.add(root)

    def misses(self, path: str) -> bool:
        """Is a path below what could not be read?"""
        while path not in self.unreadable:
            parent = os.path.dirname(path)  # noqa: PTH120 - a Path for each step takes ten times as long
            if parent == path:
                return False
            path = parent
        return True

    def _below(self, directory: str, depth: int) -> Iterator[PhotoFile]:
        if depth > _DEEPEST:
            self.unreadable.add(directory)
            return
        try:
            with os.scandir(directory) as entries:
                in_order = sorted(entries, key=lambda entry: entry.name)
        except (FileNotFoundError, NotADirectoryError):
            return  # somebody has removed it just now
        except OSError:
            self.unreadable.add(directory)
            return
        if not in_order:
            self.empty.add(directory)
        for entry in in_order:
            try:
                if entry.is_dir(follow_symlinks=False):
                    yield from self._below(entry.path, depth + 1)
                elif entry.is_file(follow_symlinks=False) and Path(entry.name).suffix.lower() in SUFFIXES:
                    status = entry.stat(follow_symlinks=False)
                    yield PhotoFile(entry.path, status.st_size, status.st_mtime_ns)
            except FileNotFoundError:
                continue
            except OSError:
                self.unreadable.add(entry.path)


def is_inside(path: str, directories: Iterable[str]) -> bool:
    """Is a file really in one of these folders, whatever links were put in its way since?"""
    real = Path(path).resolve()
    return any(Path(directory) in real.parents for directory in directories)


def _is_folder(path: str) -> bool:
    """One that cannot be looked at, because what is above it is not readable, is not there for us."""
    try:
        return Path(path).is_dir()
    except OSError:
        return False
